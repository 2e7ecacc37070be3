"""A compiler for the part of CEL that `x-kubernetes-validations` rules use.

Read: literals, lists, maps, `self` and `oldSelf`, fields and indexes, `?:`, `||`, `&&`, `!`,
comparisons, `in`, arithmetic; the macros has, all, exists, exists_one, filter and map; and the
functions of cel_values. Not read: bytes, timestamps, quantities, URLs, IP addresses, optionals,
`type()`, cost limits and static types: a rule that is ill-typed fails when it runs, not when the
definition is created.

Source: https://kubernetes.io/docs/reference/using-api/cel/, 2025-06.
"""

import ast
import re
from dataclasses import dataclass
from typing import Any

from infra.local.kube.schemas.cel_nodes import (
    Names,
    Node,
    Selection,
    applied,
    comprehension,
    constant,
    either,
    truth,
)
from infra.local.kube.schemas.cel_values import FUNCTIONS, OPERATORS, CelError, index, select

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>\d+\.\d+(?:[eE][+-]?\d+)?|0x[0-9a-fA-F]+|\d+)u?
    | (?P<string>[rR]?(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"))
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<sign>\|\||&&|[=!<>]=|[-+*/%<>!?:.,()\[\]{}])
    )""",
    re.VERBOSE,
)
_LEVELS = (("==", "!=", "<", "<=", ">", ">=", "in"), ("+", "-"), ("*", "/", "%"))
_CONSTANTS = {"true": True, "false": False, "null": None}
_ESCAPES = {"__dash__": "-", "__dot__": ".", "__slash__": "/", "__underscores__": "__"}
_MACROS = {"all", "exists", "exists_one", "filter", "map"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A compiled rule.

    Attributes:
        uses_old: It compares with the former state, so it is skipped where there is none.
    """

    node: Node
    uses_old: bool

    def run(self, names: Names) -> Any:
        """Return what the rule says of these values.

        Raises:
            CelError: It cannot be decided.
        """
        return self.node(names)


def compile_rule(rule: str) -> Program:
    """Compile a rule.

    Raises:
        CelError: It is malformed, or uses what is not read here.
    """
    parser = _Parser(_tokens(rule), rule)
    node = parser.expression()
    if parser.peek():
        raise CelError(f"unexpected {parser.peek()!r} in rule {rule!r}")
    return Program(node=node, uses_old="oldSelf" in parser.names)


def _tokens(rule: str) -> list[tuple[str, str]]:
    found = []
    place, text = 0, rule.rstrip()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None or match.lastgroup is None:
            raise CelError(f"cannot read {text[place : place + 10]!r} in rule {rule!r}")
        found.append((match.lastgroup, match[match.lastgroup]))
        place = match.end()
    return found


def _field_name(name: str) -> str:
    for escape, text in _ESCAPES.items():
        name = name.replace(escape, text)
    match = re.fullmatch(r"__(\w+)__", name)
    return match[1] if match else name


class _Parser:
    """Recursive descent; every method returns a function of the names in scope."""

    def __init__(self, tokens: list[tuple[str, str]], rule: str) -> None:
        self._tokens = tokens
        self._place = 0
        self._rule = rule
        self.names: set[str] = set()

    def peek(self) -> str:
        return self._tokens[self._place][1] if self._place < len(self._tokens) else ""

    def _take(self) -> tuple[str, str]:
        if self._place >= len(self._tokens):
            raise CelError(f"rule {self._rule!r} ends too early")
        self._place += 1
        return self._tokens[self._place - 1]

    def _accept(self, sign: str) -> bool:
        if self.peek() == sign:
            self._place += 1
            return True
        return False

    def _expect(self, sign: str) -> None:
        if not self._accept(sign):
            raise CelError(f"{sign!r} expected before {self.peek()!r} in rule {self._rule!r}")

    def expression(self) -> Node:
        test = self._or()
        if not self._accept("?"):
            return test
        yes = self._or()
        self._expect(":")
        no = self.expression()
        return lambda names: yes(names) if truth(test(names)) else no(names)

    def _or(self) -> Node:
        node = self._and()
        while self._accept("||"):
            node = either(node, self._and(), decides=True)
        return node

    def _and(self) -> Node:
        node = self._binary(0)
        while self._accept("&&"):
            node = either(node, self._binary(0), decides=False)
        return node

    def _binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._unary()
        node = self._binary(level + 1)
        while self.peek() in _LEVELS[level]:
            operator = OPERATORS[self._take()[1]]
            node = applied(operator, node, self._binary(level + 1))
        return node

    def _unary(self) -> Node:
        if self._accept("!"):
            inner = self._unary()
            return lambda names: not truth(inner(names))
        if self._accept("-"):
            inner = self._unary()
            return applied(OPERATORS["-"], constant(0), inner)
        return self._member()

    def _member(self) -> Node:
        node = self._primary()
        while True:
            if self._accept("."):
                node = self._after_dot(node)
            elif self._accept("["):
                key = self.expression()
                self._expect("]")
                node = applied(index, node, key)
            else:
                return node

    def _after_dot(self, node: Node) -> Node:
        kind, name = self._take()
        if kind != "name":
            raise CelError(f"a name expected before {name!r} in rule {self._rule!r}")
        if not self._accept("("):
            field = _field_name(name)
            return Selection(node, field)
        if name in _MACROS:
            return self._macro(name, node)
        return self._call(name, [node, *self._arguments(")")])

    def _macro(self, name: str, node: Node) -> Node:
        variable = self._take()[1]
        self._expect(",")
        bodies = self._arguments(")")
        if not 1 <= len(bodies) <= (2 if name == "map" else 1):
            raise CelError(f"{name}(): wrong number of arguments in rule {self._rule!r}")
        return comprehension(name, node, variable, bodies)

    def _arguments(self, end: str) -> list[Node]:
        found: list[Node] = []
        while not self._accept(end):
            if found:
                self._expect(",")
                if self._accept(end):
                    break
            found.append(self.expression())
        return found

    def _call(self, name: str, arguments: list[Node]) -> Node:
        least, most, function = FUNCTIONS.get(name, (0, -1, truth))
        if not least <= len(arguments) <= most:
            raise CelError(f"undeclared function or wrong arguments: {name} in {self._rule!r}")
        return lambda names: function(*(argument(names) for argument in arguments))

    def _primary(self) -> Node:
        kind, text = self._take()
        if kind == "number":
            return constant(float(text) if "." in text else int(text, 0))
        if kind == "string":
            return constant(ast.literal_eval(text))
        if text == "(":
            node = self.expression()
            self._expect(")")
            return node
        if text == "[":
            items = self._arguments("]")
            return lambda names: [item(names) for item in items]
        if text == "{":
            return self._map()
        if kind == "name":
            return self._name(text)
        raise CelError(f"unexpected {text!r} in rule {self._rule!r}")

    def _name(self, name: str) -> Node:
        if name in _CONSTANTS:
            return constant(_CONSTANTS[name])
        if not self._accept("("):
            self.names.add(name)
            return lambda names: select(names, name)
        arguments = self._arguments(")")
        if name == "has":
            if len(arguments) != 1 or not isinstance(arguments[0], Selection):
                raise CelError(f"has() needs a field selection in rule {self._rule!r}")
            return arguments[0].is_set
        return self._call(name, arguments)

    def _map(self) -> Node:
        pairs: list[tuple[Node, Node]] = []
        while not self._accept("}"):
            if pairs:
                self._expect(",")
            key = self.expression()
            self._expect(":")
            pairs.append((key, self.expression()))
        return lambda names: {key(names): value(names) for key, value in pairs}


__all__ = ["CelError", "Program", "compile_rule"]
