"""`dovetail plan` under other circumstances: what each would cost, in one table."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from functions.cli.plan.job_runs import WITHOUT_JOBS, job_run_lines
from functions.cli.plan.planned import Planned
from functions.cli.plan.scenarios import TODAY
from functions.cli.plan.what_if import totals
from functions.cli.plan.without_place import without_place, without_place_lines
from functions.cli.printable_text import aligned, markdown_table, printable_text
from shared.model.codec import to_plain
from shared.model.dollars_and_counts import HOURS_A_MONTH, MICROS

# The heading of a column, and the plan for it.
Column = tuple[str, Planned]


def scenarios_text(columns: Sequence[Column], output: str) -> str:
    """Return the plans side by side; the first is today's."""
    if output in ("json", "yaml"):
        document = {"scenarios": list(map(_document, columns))}
        if output == "json":
            return json.dumps(document, indent=2) + "\n"
        return str(yaml.safe_dump(document, sort_keys=False))
    rows = [("", *(name for name, _ in columns)), *_rows([one for _, one in columns])]
    lines = (
        markdown_table(rows) if output == "markdown" else aligned(rows, range(1, len(columns) + 1))
    )
    return printable_text([*lines, *job_run_lines(columns[0][1]), *_left(columns)])


def _rows(columns: Sequence[Planned]) -> Iterator[tuple[str, ...]]:
    plans = [one.plan for one in columns]
    found = [totals(plan) for plan in plans]
    costs = [one.cost_micros_per_hour for one in found]
    yield "nodes", *(f"{one.nodes:,}" for one in found)
    yield "$/h", *(f"${cost / MICROS:,.4f}" for cost in costs)
    yield "against today", *(_change(costs[0], cost) for cost in costs)
    always = [one.cost_without_jobs for one in columns]
    of_what = WITHOUT_JOBS if always != costs else ""
    if of_what:
        yield f"$/h{of_what}", *(f"${cost / MICROS:,.4f}" for cost in always)
    yield f"$/month{of_what}", *(f"${cost * HOURS_A_MONTH / MICROS:,.2f}" for cost in always)
    yield "pods placed", *(f"{one.placed:,}" for one in found)
    yield "pods without a place", *(f"{one.waiting:,}" for one in found)
    if any(plan.preferences.stated for plan in plans):
        kept = (f"{plan.preferences.kept}/{plan.preferences.stated}" for plan in plans)
        yield "preferences kept", *kept


def _change(before: int, after: int) -> str:
    if before == after:
        return "–"
    return f"{100 * (after - before) / before:+.1f} %" if before else "more"


def _left(columns: Sequence[Column]) -> Iterator[str]:
    """Yield which pods have no place, for each plan that leaves other pods than today's."""
    today = {left.pod.key for left in columns[0][1].plan.unschedulable}
    for name, planned in columns:
        if name == TODAY or {left.pod.key for left in planned.plan.unschedulable} != today:
            for line in without_place_lines(without_place(planned)):
                yield f"{name}: {line}"


def _document(column: Column) -> dict[str, Any]:
    name, planned = column
    plan = planned.plan
    found = totals(plan)
    return {
        "name": name,
        "nodes": found.nodes,
        "cost_micros_per_hour": found.cost_micros_per_hour,
        "cost_without_jobs_micros_per_hour": planned.cost_without_jobs,
        "placed": found.placed,
        "no_place": to_plain(without_place(planned)),
        "preferences": {"kept": plan.preferences.kept, "stated": plan.preferences.stated},
    }
