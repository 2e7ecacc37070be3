"""The report in a few lines, for a terminal."""

from functions.cli.render.report.words import NO_PRICE, TITLES, a_month, an_hour, percent
from shared.planning.explanation import counted
from shared.savings.survey import Survey


def summary_lines(found: Survey) -> tuple[str, ...]:
    """Return what the cluster costs, and each way that it could cost less."""
    if not found.running.nodes:
        return (NO_PRICE,)
    now = found.running.cost_micros_per_hour
    nodes = counted(len(found.running.nodes), "node")
    lines = [f"as it runs: {an_hour(now)}/h, {a_month(now)} a month, {nodes}"]
    for way, outcome in found.ways.items():
        price, bound = outcome.cost_micros_per_hour, outcome.lower_bound_micros_per_hour
        proved = "" if bound is None else f", lower bound {an_hour(bound)}/h"
        lines.append(
            f"{TITLES[way].lower()}: {an_hour(price)}/h, {counted(len(outcome.nodes), 'node')}, "
            f"saves {percent(now - price, now)}{proved}"
        )
    return tuple(lines)
