"""One line for each decision, removal and loss of a node: `dovetail top --lines`.

A pure function of what successive calls of `LiveCluster.whole` returned. The first call also
reports the last decisions before it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from functions.cli.plan.gap_in_words import gap_in_words
from functions.cli.watch.outcome import outcome_text
from functions.cli.watch.view import GOING, LAUNCHING
from shared.model.dollars_and_counts import (
    counted,
    counted_kinds,
    dollars,
    first_names,
    pods_that_wait,
)

_NAMED: Final = 2
# A decision is read some seconds after it was made: what nodes do waits for it, so that lines keep
# the order of time.
HELD: Final = timedelta(seconds=15)

View = Mapping[str, Any]


class DecisionLines:
    """Remembers what was reported, so that nothing is reported twice."""

    def __init__(self) -> None:
        self._decisions: set[str] = set()
        self._outcomes: set[str] = set()
        self._nodes: dict[str, View] = {}
        self._going: set[str] = set()
        self._held: list[tuple[str, str]] = []
        self._last = ""

    def new_lines(self, whole: Mapping[str, Any], now: datetime) -> list[str]:
        """Return a line for each thing that is new, in the order of time.

        Args:
            whole: As `LiveCluster.whole` returns it.
            now: UTC. Each line begins with the time of what happened, that of Nodes with this, and
                is returned up to `HELD` later. What is read later still begins with the time of the
                line before, and names its own.
        """
        if not whole["synced"]:
            return []
        fresh = [made for made in whole["decisions"] if made["id"] not in self._decisions]
        self._decisions.update(made["id"] for made in fresh)
        nodes = {node["name"]: node for node in whole["nodes"] if node["phase"] != LAUNCHING}
        lines = [(made["at"], decision_line(made)) for made in reversed(fresh)]
        lines += self._came(whole["decisions"])
        changed = self._nodes_changed(nodes, whole["totals"])
        self._held += [(now.isoformat(), line) for line in changed]
        self._nodes = nodes
        due = max([_second(at) for at, _ in lines], default="")
        due = max(due, _second((now - HELD).isoformat()))
        lines += [held for held in self._held if _second(held[0]) <= due]
        self._held = [held for held in self._held if _second(held[0]) > due]
        return [self._timed(*line) for line in sorted(lines, key=lambda line: _second(line[0]))]

    def _timed(self, at: str, line: str) -> str:
        """Return a line with its time, which is never before that of the last line."""
        is_late = _second(at) < self._last
        self._last = max(self._last, _second(at))
        return f"{self._last[11:]} {line}" + (f" (at {at[11:19]})" if is_late else "")

    def _came(self, decisions: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
        """Yield what came of decisions and when, each once it is over."""
        for made in reversed(decisions):
            if made["id"] not in self._outcomes and (text := outcome_text(made)):
                self._outcomes.add(made["id"])
                yield made["outcome"]["at"], f"{text} (planned at {made['at'][11:19]})"

    def _nodes_changed(self, nodes: Mapping[str, View], totals: Mapping[str, Any]) -> Iterator[str]:
        going = [
            node
            for name, node in nodes.items()
            if node["phase"] == GOING and name not in self._going
        ]
        lost = [
            node
            for name, node in self._nodes.items()
            if name not in nodes and name not in self._going and node["ours"]
        ]
        self._going = (self._going & {*nodes}) | {node["name"] for node in going}
        stays = totals["price"] - sum(node["price"] or 0 for node in nodes.values() if _goes(node))
        for reason, group in _by_reason(going):
            yield f"removes {_nodes_text(group)}: {reason}; {dollars(stays)}/h stays"
        if lost:
            yield f"lost {_nodes_text(lost)}: the Node is gone; {dollars(stays)}/h stays"


def first_line(whole: Mapping[str, Any], server: str) -> str:
    """Return what there is before anything happens: nodes, dollars per hour and pods.

    Args:
        whole: As `LiveCluster.whole` returns it.
        server: Address of the API server.
    """
    totals = whole["totals"]
    waiting = f", {pods_that_wait(totals['waiting'])}" if totals["waiting"] else ""
    return (
        f"{server}: {counted(totals['nodes'], 'node')} for {dollars(totals['price'])}/h, "
        f"{counted(totals['pods'], 'pod')}{waiting}; a line for each decision and removal follows"
    )


def decision_line(made: Mapping[str, Any]) -> str:
    """Return one decision in one line: what it plans or replaces, $/h, gap, and why.

    Args:
        made: As `recent_decisions.summary` returns it.
    """
    did = []
    if made["nodes"]:
        count = sum(row[0] for row in made["nodes"])
        bound = f", bound {dollars(made['bound'])}/h" if made["bound"] else ""
        did.append(
            f"plans {counted(count, 'node')} for {counted(made['pods'], 'pod')}: "
            f"{planned_nodes(made)}; {dollars(made['cost'])}/h{bound}, {decision_gap(made)}"
        )
    if made["remove"]:
        did.append(f"replaces {counted(len(made['remove']), 'node')}: {_names(made['remove'])}")
    if made["placed"]:
        did.append(f"places {counted(made['placed'], 'pod')} on nodes that are there")
    if made["unplaced"]:
        did.append(f"has no place for {counted(made['unplaced'], 'pod')} (`dovetail why POD`)")
    return f"{'; '.join(did) or 'changes nothing'}; {made['cause']}"


def planned_nodes(made: Mapping[str, Any]) -> str:
    """Return the new nodes of a decision by type and capacity type, empty for none."""
    return ", ".join(f"{count} × {kind} {paid}" for count, kind, paid in made["nodes"])


def decision_gap(made: Mapping[str, Any]) -> str:
    """Return as text how far the cost of a decision may be above the lowest possible."""
    proved = made["bound"] > 0
    return gap_in_words(made["gap_percent"], proved=proved, close=made["bound_is_close"])


def _second(at: str) -> str:
    return at[:19]


def _goes(node: View) -> bool:
    return bool(node["phase"] == GOING)


def _by_reason(nodes: Iterable[View]) -> list[tuple[str, list[View]]]:
    found: dict[str, list[View]] = {}
    for node in nodes:
        found.setdefault(node["reason"], []).append(node)
    return sorted(found.items())


def _nodes_text(nodes: Sequence[View]) -> str:
    """Return count, types, price and names of nodes."""
    kinds = counted_kinds(
        f"{node['type'] or '?'} {node['capacity_type']}".rstrip() for node in nodes
    )
    price = sum(node["price"] or 0 for node in nodes)
    named = _names([node["name"] for node in nodes])
    return f"{counted(len(nodes), 'node')}, {kinds}, {dollars(price)}/h ({named})"


def _names(names: Sequence[str]) -> str:
    return first_names(sorted(names), _NAMED)
