"""The part of CEL that the rules in `infra/cluster` use.

Read: `self`, its fields, text, integers, lists, `!`, `&&`, `||`, one comparison or `in` at a time,
`has(a.b)`, `size(a)`, `a.all(x, test)`, `a.exists(x, test)`, `a.matches(b)`, `a.startsWith(b)`.
Everything else, `oldSelf` included, is refused when the definition is created. A real server
also checks types and costs, and an error beside `||` or `&&` need not decide the outcome there.

This part of CEL is Python's grammar but for the signs of the logical operators, so Python parses
it. Source: https://kubernetes.io/docs/reference/using-api/cel/, 2025-06.
"""

import ast
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

Names = Mapping[str, Any]
Program = Callable[[Names], Any]

_STRING_OR_SIGN: Final = re.compile(r"""'[^'\\]*'|"[^"\\]*"|&&|\|\||!=|.""", re.DOTALL)
# `~` binds as tightly as the `!` of CEL does; the `not` of Python does not. No Python has `?`.
_PYTHON: Final = {"&&": " and ", "||": " or ", "!": " ~", "~": "?"}
_COMPARISONS: Final[Mapping[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, items: item in items,
}
_METHODS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "matches": lambda text, pattern: re.search(pattern, text) is not None,
    "startsWith": str.startswith,
}
_MACROS: Final = {"all": all, "exists": any}


class CelError(Exception):
    """A rule cannot be read, or cannot be decided for a value."""


def compile_rule(rule: str) -> Callable[[Any], bool]:
    """Return a function of the value that a rule is about: whether it keeps the rule.

    Raises:
        CelError: The rule is malformed or uses what is not read here. The function raises it when
            the rule cannot be decided for a value.
    """
    parts = _STRING_OR_SIGN.findall(" ".join(rule.split()))
    text = "".join(_PYTHON.get(part, part) for part in parts).strip()
    refusal = CelError(f"not in the part of CEL that is read here: {rule!r}")
    if "\\" in rule:
        raise refusal
    try:
        program = _compiled(ast.parse(text, mode="eval").body, frozenset({"self"}))
    except SyntaxError as error:
        raise refusal from error

    def keeps(value: Any) -> bool:
        try:
            return bool(program({"self": value}))
        except (AttributeError, TypeError, KeyError, re.error) as error:
            raise CelError(f"{type(error).__name__}: {error}") from error

    return keeps


def _compiled(node: ast.expr, names: frozenset[str]) -> Program:
    if isinstance(node, ast.Call) and not node.keywords:
        return _call(node, names)

    def inner(part: ast.expr) -> Program:
        return _compiled(part, names)

    match node:
        case ast.Constant(value=str() | int() as constant):
            return lambda _: constant
        case ast.Name(id=name) if name in names:
            return operator.itemgetter(name)
        case ast.List(elts=parts):
            items = [inner(part) for part in parts]
            return lambda found: [item(found) for item in items]
        case ast.Attribute(value=parent, attr=field):
            of = inner(parent)
            return lambda found: of(found)[field]
        case ast.BoolOp(op=joint, values=parts):
            tests = [inner(part) for part in parts]
            decide = all if isinstance(joint, ast.And) else any
            return lambda found: decide(test(found) for test in tests)
        case ast.UnaryOp(op=ast.Invert(), operand=part):
            test = inner(part)
            return lambda found: not test(found)
        case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in _COMPARISONS:
            return _applied(_COMPARISONS[type(sign)], inner(left), inner(right))
    raise SyntaxError


def _call(call: ast.Call, names: frozenset[str]) -> Program:
    match call.func, call.args:
        case ast.Name(id="has"), [ast.Attribute(value=parent, attr=field)]:
            of = _compiled(parent, names)
            return lambda found: of(found).get(field) is not None
        case ast.Name(id="size"), [part]:
            of = _compiled(part, names)
            return lambda found: len(of(found))
        case ast.Attribute(value=parent, attr=macro), [ast.Name(id=name), part] if macro in _MACROS:
            of, test = _compiled(parent, names), _compiled(part, names | {name})
            return lambda found: _MACROS[macro](test({**found, name: item}) for item in of(found))
        case ast.Attribute(value=parent, attr=method), [part] if method in _METHODS:
            return _applied(_METHODS[method], _compiled(parent, names), _compiled(part, names))
    raise SyntaxError


def _applied(function: Callable[[Any, Any], bool], left: Program, right: Program) -> Program:
    return lambda found: function(left(found), right(found))
