"""Nodes of a compiled CEL rule: functions of the names in scope."""

from collections.abc import Callable, Mapping
from typing import Any

from infra.local.kube.schemas.cel_values import CelError, items_of, select

Names = Mapping[str, Any]
Node = Callable[[Names], Any]


def constant(value: Any) -> Node:
    """Return a node that is always the same value."""
    return lambda _: value


class Selection:
    """The field of a map; `has()` asks whether it is there."""

    def __init__(self, parent: Node, field: str) -> None:
        self._parent = parent
        self._field = field

    def __call__(self, names: Names) -> Any:
        """Return the field's value."""
        return select(self._parent(names), self._field)

    def is_set(self, names: Names) -> bool:
        """Whether the field is there and not null."""
        parent = self._parent(names)
        return isinstance(parent, dict) and parent.get(self._field) is not None


def truth(value: Any) -> bool:
    """Return a bool as it is.

    Raises:
        CelError: It is no bool.
    """
    if not isinstance(value, bool):
        raise CelError(f"no such overload: a bool is needed, found {type(value).__name__}")
    return value


def applied(function: Callable[[Any, Any], Any], left: Node, right: Node) -> Node:
    """Return a node that applies a function of two values."""
    return lambda names: function(left(names), right(names))


def either(left: Node, right: Node, *, decides: bool) -> Node:
    """Join two tests; one that decides the outcome makes an error of the other harmless."""

    def run(names: Names) -> bool:
        try:
            if truth(left(names)) is decides:
                return decides
        except CelError:
            if truth(right(names)) is decides:
                return decides
            raise
        return truth(right(names))

    return run


def comprehension(name: str, node: Node, variable: str, bodies: list[Node]) -> Node:
    """Return the node of a macro over the items of a list or the keys of a map."""

    def scopes(names: Names) -> list[dict[str, Any]]:
        return [{**names, variable: item} for item in items_of(node(names))]

    last = bodies[-1]
    if name == "map":
        test = bodies[0] if len(bodies) == 2 else constant(value=True)
        return lambda names: [last(scope) for scope in scopes(names) if truth(test(scope))]
    if name == "filter":
        return lambda names: [scope[variable] for scope in scopes(names) if truth(last(scope))]
    if name == "exists_one":
        return lambda names: sum(truth(last(scope)) for scope in scopes(names)) == 1
    decides = name == "exists"

    def run(names: Names) -> bool:
        failure: CelError | None = None
        for scope in scopes(names):
            try:
                if truth(last(scope)) is decides:
                    return decides
            except CelError as error:
                failure = error
        if failure is not None:
            raise failure
        return not decides

    return run
