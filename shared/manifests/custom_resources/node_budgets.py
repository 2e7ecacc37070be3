"""Reads disruption budgets of objects without the pydantic models: timers need them, too.

Source: https://karpenter.sh/docs/concepts/disruption/#nodepool-disruption-budgets (2026-11).
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

from shared.manifests.custom_resources.schedules import read_schedule
from shared.manifests.raw_json import Raw, mapping
from shared.manifests.spans import read_span
from shared.model import labels as keys
from shared.model.errors import fault_line
from shared.model.node_budgets import DEFAULT_PERCENT, DisruptionReason, NodeBudget

_MOST: Final = 50
_NODES: Final = re.compile(r"(?P<share>100|\d{1,2})%\Z|(?P<number>\d{1,9})\Z", re.ASCII)
_BLOCKS: Final = "all disruption of its nodes is blocked until it can be read; write"
_NODES_REMEDY: Final = "a number of nodes, or a share from 0% to 100%"
_SCHEDULE_REMEDY: Final = "five fields of cron in UTC with weekdays from 0 to 6, as 0 9 * * mon-fri"
_DURATION_REMEDY: Final = "hours and minutes, as 8h or 1h30m, beside a schedule"


def read_budgets(
    listed: object, default: tuple[NodeBudget, ...] | None
) -> tuple[NodeBudget, ...] | None:
    """Return budgets; a budget that cannot be read blocks all disruption, as with Karpenter.

    Args:
        listed: The list in the manifest.
        default: The budgets where the manifest has none.
    """
    if listed is None:
        return default
    if not isinstance(listed, list):
        return (NodeBudget(fault=fault_line("budgets", listed, f"{_BLOCKS} a list")),)
    return tuple(_budget(mapping(entry)) for entry in listed)


def annotated_budgets(annotations: Mapping[str, Any]) -> tuple[NodeBudget, ...] | None:
    """Return the budgets in the annotation of a Provisioner, None without it.

    An annotation that cannot be read blocks all disruption.
    """
    written = annotations.get(keys.DISRUPTION_BUDGETS)
    if written is None:
        return None
    listed = budgets_in(written)
    return read_budgets(written if listed is None else listed, None)


def budgets_in(written: object) -> list[object] | None:
    """Return the list in an annotation, None if it is no list or one of more than 50 budgets."""
    try:
        found = json.loads(str(written))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) and len(found) <= _MOST else None


def unreadable_budgets(budgets: Iterable[NodeBudget], field: str) -> Iterator[str]:
    """Yield what is wrong in budgets, for people.

    Args:
        field: Path of the budgets.
    """
    for number, budget in enumerate(budgets):
        if budget.fault:
            yield f"{field}[{number}].{budget.fault}"


def _budget(raw: Raw) -> NodeBudget:
    written = raw.get("nodes")
    nodes = _NODES.match(str(f"{DEFAULT_PERCENT}%" if written is None else written))
    if nodes is None:
        return _faulty("nodes", written, _NODES_REMEDY)
    schedule, duration = "", timedelta(0)
    if raw.get("schedule") is not None or raw.get("duration") is not None:
        try:
            schedule = read_schedule(str(raw.get("schedule")))
        except ValueError:
            return _faulty("schedule", raw.get("schedule"), _SCHEDULE_REMEDY)
        found = _span(raw.get("duration"))
        if found is None:
            return _faulty("duration", raw.get("duration"), _DURATION_REMEDY)
        duration = found
    listed = raw.get("reasons")
    reasons = [str(entry) for entry in listed] if isinstance(listed, list) else []
    return NodeBudget(
        nodes=int(nodes["number"]) if nodes["number"] else None,
        percent=int(nodes["share"] or 0),
        schedule=schedule,
        duration=duration,
        reasons=tuple(reason for reason in DisruptionReason if reason in reasons),
    )


def _span(written: object) -> timedelta | None:
    try:
        return read_span(written)
    except ValueError:
        return None


def _faulty(field: str, value: object, remedy: str) -> NodeBudget:
    return NodeBudget(fault=fault_line(field, value, f"{_BLOCKS} {remedy}"))
