"""Which nodes `dovetail top` shows, in which order and with which labels.

Options and their meaning are those of eks-node-viewer, so that its users need not learn others.
Source: https://github.com/awslabs/eks-node-viewer (README, 2026-11).
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from functions.cli.watch.view import GOING, LAUNCHING, NOT_READY
from shared.manifests.affinity import label_selector
from shared.model.kubernetes.pods import LabelSelector
from shared.model.values import replace

# In the order in which the key for it goes through them.
ORDERS: Final = ("state", "creation", "name", "cpu", "memory", "price")
_STATES: Final = (NOT_READY, GOING, LAUNCHING, "launched", "registered", "initialized")
# Those of which the largest is looked for.
_LARGEST_FIRST: Final = frozenset({"cpu", "memory", "price"})
_REQUIREMENT: Final = re.compile(
    r"\s*(?:!\s*(?P<absent>[^\s,=!()]+)"
    r"|(?P<key>[^\s,=!()]+)\s*(?:(?P<sign>==?|!=)\s*(?P<value>[^\s,=!()]*)"
    r"|\s(?P<word>in|notin)\s*\((?P<values>[^()]*)\))?)\s*(?:,|$)"
)
_SELECTOR: Final = "write it as for kubectl get -l, such as karpenter.sh/nodepool=general"
_ORDER: Final = f"give {', '.join(ORDERS)} or a label, with =asc or =dsc if you like"


class Order(Struct, frozen=True):
    """By what nodes are sorted: one of `ORDERS`, or the key of a label."""

    by: str = ORDERS[0]
    descending: bool = False

    @classmethod
    def parse(cls, text: str) -> "Order":
        """Read it as it is written on the command line, such as `price=dsc`.

        Raises:
            ValueError: If it is none.
        """
        by, _, direction = text.partition("=")
        if not by or direction not in ("", "asc", "dsc"):
            raise ValueError(f"{text}: {_ORDER}")
        return cls(by, direction == "dsc" if direction else by in _LARGEST_FIRST)

    @property
    def following(self) -> "Order":
        """The next of `ORDERS`."""
        known = ORDERS.index(self.by) if self.by in ORDERS else -1
        return Order.parse(ORDERS[(known + 1) % len(ORDERS)])

    @property
    def reversed(self) -> "Order":
        """The same the other way round."""
        return replace(self, descending=not self.descending)

    def sort(
        self, nodes: Sequence[Mapping[str, Any]], labels: Mapping[str, Mapping[str, str]]
    ) -> list[Mapping[str, Any]]:
        """Return the nodes in this order, equal ones by name.

        Args:
            labels: Of each node, by its name.
        """
        named = sorted(nodes, key=lambda node: str(node["name"]))

        def key(node: Mapping[str, Any]) -> Any:
            match self.by:
                case "state":
                    return _STATES.index(node["phase"])
                case "creation":
                    return node["since"]
                case "name":
                    return node["name"]
                case "cpu" | "memory":
                    return used_share(node, self.by)
                case "price":
                    return node["price"] or 0
                case label:
                    return labels.get(node["name"], {}).get(label, "")

        return sorted(named, key=key, reverse=self.descending)


def used_share(node: Mapping[str, Any], resource: str) -> float:
    """Return how much of a node's allocatable amount its pods request, 1 for all."""
    used = sum(share[resource] for share in node["pods"])
    return used / node[resource] if node[resource] else 0.0


class TopOptions(Struct, frozen=True, kw_only=True):
    """How nodes are listed.

    Attributes:
        first: How many nodes are above the screen.
        extra_labels: Labels that have a column.
    """

    order: Order = Order()
    first: int = 0
    extra_labels: tuple[str, ...] = ()

    def after(self, key: str, page: int) -> "TopOptions":
        """Return how they are listed after a key was pressed.

        Args:
            page: Nodes of a screen.
        """
        match key:
            case "s":
                return replace(self, order=self.order.following, first=0)
            case "r":
                return replace(self, order=self.order.reversed, first=0)
            case "down" | "j":
                return replace(self, first=self.first + 1)
            case "up" | "k":
                return replace(self, first=max(0, self.first - 1))
            case "page down" | " ":
                return replace(self, first=self.first + page)
            case "page up":
                return replace(self, first=max(0, self.first - page))
        return self

    @property
    def keys(self) -> str:
        """The keys that work, and what they do."""
        arrow = "↓" if self.order.descending else "↑"
        return f"q quit   s sort: {self.order.by} {arrow}   r reverse   ↑ ↓ PgUp PgDn scroll"


def node_selector(text: str) -> LabelSelector:
    """Read a selector of labels as kubectl reads it.

    Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
    (2026-11).

    Raises:
        ValueError: If it is none.
    """
    expressions: list[dict[str, Any]] = []
    at = 0
    while at < len(text):
        found = _REQUIREMENT.match(text, at)
        if found is None:
            raise ValueError(f"{text}: {_SELECTOR}")
        expressions.append(_expression(found))
        at = found.end()
    problems: list[str] = []
    selector = label_selector({"matchExpressions": expressions}, "node-selector", problems)
    if problems or selector is None or not expressions:
        raise ValueError(f"{text}: {'; '.join(problems) or _SELECTOR}")
    return selector


def _expression(found: re.Match[str]) -> dict[str, Any]:
    absent, key, sign, word = found["absent"], found["key"], found["sign"], found["word"]
    if absent:
        return {"key": absent, "operator": "DoesNotExist"}
    if sign:
        return {
            "key": key,
            "operator": "NotIn" if sign == "!=" else "In",
            "values": [found["value"]],
        }
    if word:
        values = [value.strip() for value in found["values"].split(",")]
        return {"key": key, "operator": "In" if word == "in" else "NotIn", "values": values}
    return {"key": key, "operator": "Exists"}
