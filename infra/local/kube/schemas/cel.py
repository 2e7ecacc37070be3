"""The part of CEL that rules in `infra/cluster`, and in Karpenter's EC2NodeClass, use.

Read: `self`, its fields and items, text, integers, `true`, `false`, lists, `!`, `&&`, `||`,
`a ? b : c`, one comparison or `in` at a time, `has(a.b)`, `size(a)`, the macros and methods below.
Everything else, `oldSelf` included, is refused when the definition is created. A real server
also checks types and costs, and an error beside `||` or `&&` need not decide the outcome there.

This part of CEL is Python's grammar but for the signs of the logical operators and the
conditional, which are rewritten, so Python parses it. Source:
https://kubernetes.io/docs/reference/using-api/cel/, 2025-06.
"""

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

Names = Mapping[str, Any]
Program = Callable[[Names], Any]

_STRING_OR_SIGN: Final = re.compile(r"""'[^'\\]*'|"[^"\\]*"|&&|\|\||!=|.""", re.DOTALL)
# `~` binds as tightly as the `!` of CEL does; the `not` of Python does not. No Python has `$`, and
# words that are Python's alone may not stand in a rule.
_PYTHON: Final = {"&&": " and ", "||": " or ", "!": " ~", "~": "$"}
_CLOSING: Final = {"(": ")", "[": "]", "{": "}"}
_CONSTANTS: Final = {"true": True, "false": False}
# What a conditional becomes: a call, for the `if` of Python is none of CEL's.
_IF: Final = "_if"
_COMPARISONS: Final[Mapping[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, items: item in items,
}
_METHODS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "endsWith": str.endswith,
    "find": lambda text, pattern: found[0] if (found := re.search(pattern, text)) else "",
    "matches": lambda text, pattern: re.search(pattern, text) is not None,
    "split": str.split,
    "startsWith": str.startswith,
}
_MACROS: Final[Mapping[str, Callable[[Any, Program], Any]]] = {
    "all": lambda items, test: all(map(test, items)),
    "exists": lambda items, test: any(map(test, items)),
    "filter": lambda items, test: [*filter(test, items)],
}


class CelError(Exception):
    """A rule cannot be read, or cannot be decided for a value."""


def compile_rule(rule: str) -> Callable[[Any], bool]:
    """Return a function of the value that a rule is about: whether it keeps the rule.

    Raises:
        CelError: The rule is malformed or uses what is not read here. The function raises it when
            the rule cannot be decided for a value.
    """
    parts = _STRING_OR_SIGN.findall(" ".join(rule.split()))
    refusal = CelError(f"not in the part of CEL that is read here: {rule!r}")
    if "\\" in rule:
        raise refusal
    try:
        text = _in_python(iter(parts)).strip()
        program = _compiled(ast.parse(text, mode="eval").body, frozenset({"self"}))
    except SyntaxError as error:
        raise refusal from error

    def keeps(value: Any) -> bool:
        try:
            return bool(program({"self": value}))
        except (AttributeError, TypeError, LookupError, re.error) as error:
            raise CelError(f"{type(error).__name__}: {error}") from error

    return keeps


def _in_python(parts: Iterator[str], closing: str = "") -> str:
    """Return what stands before a closing sign, each of its expressions rewritten.

    Raises:
        SyntaxError: The sign, or a part of a conditional, is missing.
    """
    found: list[str] = []
    now: list[str] = []
    for part in parts:
        if part in _CLOSING:
            now.append(part + _in_python(parts, _CLOSING[part]) + _CLOSING[part])
        elif part not in (closing, ","):
            now.append(part)
        else:
            found.append(_conditional(now))
            now = []
            if part == closing:
                return ",".join(found)
    if closing:
        raise SyntaxError
    return ",".join([*found, _conditional(now)])


def _conditional(parts: list[str]) -> str:
    """Return one expression; what stands in brackets is one part of it."""
    if "?" not in parts:
        return "".join(_PYTHON.get(part, part) for part in parts)
    end = parts.index("?")
    if ":" not in parts[end:]:
        raise SyntaxError
    other = parts.index(":", end)
    three = map(_conditional, (parts[:end], parts[end + 1 : other], parts[other + 1 :]))
    return f"{_IF}({','.join(f'({part})' for part in three)})"


def _compiled(node: ast.expr, names: frozenset[str]) -> Program:
    if isinstance(node, ast.Call) and not node.keywords:
        return _call(node, names)

    def inner(part: ast.expr) -> Program:
        return _compiled(part, names)

    match node:
        case ast.Constant() | ast.Name():
            return _word(node, names)
        case ast.Subscript(value=parent, slice=place):
            return _applied(operator.getitem, inner(parent), inner(place))
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


def _word(node: ast.Constant | ast.Name, names: frozenset[str]) -> Program:
    match node:
        case ast.Constant(value=str() | int() as constant):
            return lambda _: constant
        case ast.Name(id=name) if name in names:
            return operator.itemgetter(name)
        case ast.Name(id=name) if name in _CONSTANTS:
            return lambda _: _CONSTANTS[name]
    raise SyntaxError


def _call(call: ast.Call, names: frozenset[str]) -> Program:
    match call.func, call.args:
        case ast.Name(id="has"), [ast.Attribute(value=parent, attr=field)]:
            of = _compiled(parent, names)
            return lambda found: of(found).get(field) is not None
        case (ast.Name(id="size"), [part]) | (ast.Attribute(value=part, attr="size"), []):
            of = _compiled(part, names)
            return lambda found: len(of(found))
        case ast.Name(id=name), [test, one, other] if name == _IF:
            holds, *outcomes = (_compiled(part, names) for part in (test, one, other))
            return lambda found: outcomes[0 if holds(found) else 1](found)
        case ast.Attribute(value=parent, attr=macro), [ast.Name(id=name), part] if macro in _MACROS:
            of, test_of = _compiled(parent, names), _compiled(part, names | {name})
            return lambda found: _MACROS[macro](
                of(found), lambda item: test_of({**found, name: item})
            )
        case ast.Attribute(value=parent, attr=method), [part] if method in _METHODS:
            return _applied(_METHODS[method], _compiled(parent, names), _compiled(part, names))
    raise SyntaxError


def _applied(function: Callable[[Any, Any], bool], left: Program, right: Program) -> Program:
    return lambda found: function(left(found), right(found))
