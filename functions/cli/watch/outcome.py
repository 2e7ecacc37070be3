"""What came of a decision: what EC2 launched, at which price, and what it refused."""

from collections import Counter
from collections.abc import Mapping, Sequence
from textwrap import shorten
from typing import Any

from shared.model.dollars_and_counts import counted, dollars
from shared.nodes.launch.launch_results import LaunchResult

_MOST_LETTERS = 120


def outcome(results: Sequence[LaunchResult], *, planned: int, ended: bool) -> dict[str, Any]:
    """Return what came of a decision as plain JSON.

    Args:
        results: Of its launch groups that are over, at least one.
        planned: The nodes that it planned.
        ended: Whether no launch of it is under way.

    Returns:
        `at`, when the last was over, `launched` as count, instance type and capacity type, `cost`
        in micro-dollars per hour, `refused` as code and text, and whether it has `ended`.
    """
    kinds: Counter[tuple[str, str]] = Counter()
    cost = 0
    refused: dict[tuple[str, str], None] = {}
    for result in results:
        for kind in result.launched:
            kinds[kind.offering.instance_type, kind.offering.capacity_type.value] += kind.count
            cost += kind.count * kind.price_micros_per_hour
        refused |= dict.fromkeys((error.code, error.message) for error in result.refused)
    return {
        "at": max(result.at for result in results).isoformat(),
        "launched": [[count, *names] for names, count in kinds.most_common()],
        "cost": cost,
        "refused": [list(error) for error in refused],
        "ended": ended or sum(result.planned for result in results) >= planned,
    }


def outcome_text(made: Mapping[str, Any]) -> str:
    """Return what came of a decision in words, empty while it is not over or was not recorded.

    Args:
        made: As `recent_decisions.summary` returns it.
    """
    came = made.get("outcome")
    if not came or not came["ended"]:
        return ""
    planned = sum(row[0] for row in made["nodes"])
    launched = sum(row[0] for row in came["launched"])
    why = "; ".join(
        f"{code}: {shorten(message, _MOST_LETTERS, placeholder=' …')}"
        for code, message in came["refused"][:1]
    )
    if not launched:
        return f"launched no node of {planned}{why and f': EC2 refused: {why}'}"
    kinds = ", ".join(f"{count} × {kind} {paid}" for count, kind, paid in came["launched"])
    text = f"launched {counted(launched, 'node')}: {kinds}; {dollars(came['cost'])}/h"
    more = came["cost"] - made["cost"]
    if launched < planned:
        return f"{text}; {planned - launched} not{why and f': EC2 refused: {why}'}"
    if more:
        word = "more" if more > 0 else "less"
        return f"{text}, {dollars(abs(more))}/h {word} than planned{why and f': {why}'}"
    return text
