"""The report in a few lines, for a terminal."""

from collections.abc import Sequence
from typing import Final

from functions.cli.report.cost_report import CostReport
from functions.cli.report.price_text import (
    NO_PRICE,
    above_bound_text,
    hourly_price_text,
    left_out_lines,
    monthly_price_text,
    saved_text,
    spot_text,
)
from shared.model.dollars_and_counts import counted

_ACTIONS_SHOWN: Final = 3


def summary_lines(report: CostReport, notes: Sequence[str]) -> tuple[str, ...]:
    """Return what the cluster costs and would cost, three actions, and what is left out.

    Args:
        notes: What was left out or assumed when the cluster was read, one line each.
    """
    left_out = tuple(f"note: {line}" for line in (*left_out_lines(report), *notes))
    if not report.running.nodes:
        return (NO_PRICE, *left_out)
    now = report.running.cost_micros_per_hour
    nodes = counted(len(report.running.nodes), "node")
    lines = [f"as it runs: {hourly_price_text(now)}/h, {monthly_price_text(now)} a month, {nodes}"]
    for alternative, outcome in report.alternatives.items():
        price, bound = outcome.cost_micros_per_hour, outcome.lower_bound_micros_per_hour
        proved = ""
        if bound is not None:
            proved = f", lower bound {hourly_price_text(bound)}/h, {above_bound_text(price, bound)}"
        if (most := outcome.most_pods) > report.running.most_pods:
            proved += f", up to {counted(most, 'pod')} on a node"
        lines.append(
            f"{alternative.value}: {hourly_price_text(price)}/h, "
            f"{counted(len(outcome.nodes), 'node')}, "
            f"saves {saved_text(report, outcome)}{proved}"
        )
    for place, action in enumerate(report.actions.listed[:_ACTIONS_SHOWN], 1):
        saved = action.saving_micros_per_hour
        lines.append(
            f"action {place}: {action.title}: saves {hourly_price_text(saved)}/h, "
            f"{monthly_price_text(saved)} a month{spot_text(report, on_spot=action.on_spot_prices)}"
        )
    return (*lines, *left_out)
