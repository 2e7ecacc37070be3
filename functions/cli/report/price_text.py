"""Amounts and names as the page writes them."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from functions.cli.report.cost_report import Alternative, CostReport
from functions.cli.report.repacking import Outcome, on_spot_prices
from shared.model.dollars_and_counts import HOURS_A_MONTH, MICROS, counted
from shared.model.resources import Resources
from shared.provisioning.savings.inventory import FilledNode

_TYPES_SHOWN: Final = 3
NO_PRICE: Final = (
    "no node has a known price: --live-prices asks AWS, --catalog FILE reads a catalogue"
)
DESCRIPTIONS: Final = {
    Alternative.CONSOLIDATED: (
        "Nodes removed or replaced until nothing saves 5 % and $0.01/h, only by moves that "
        "PodDisruptionBudgets and annotations allow now. Pods stay in their pools."
    ),
    Alternative.REPACKED: (
        "Each pool launched anew for the pods that run on it, of whatever it may launch; on the "
        "architecture of its nodes, unless it names others."
    ),
    Alternative.OTHER_TYPES: (
        "The same, where general pools may launch any c, m and r type since the third generation, "
        "of the same architecture and capacity types."
    ),
    Alternative.SPOT: (
        "The same, with spot instances beside on-demand ones. EC2 interrupts them with two "
        "minutes' notice, and their prices change."
    ),
}


def hourly_price_text(micros: int) -> str:
    """Return a price, such as $1,234.57."""
    amount = abs(micros) / MICROS
    return f"{'−' if micros < 0 else ''}${amount:,.{2 if amount >= 100 else 4}f}"


def monthly_price_text(micros: int) -> str:
    """Return what a price per hour amounts to in 730 hours, in whole dollars."""
    whole = round(abs(micros) * HOURS_A_MONTH / MICROS)
    return f"{'−' if micros < 0 else ''}${whole:,}"


def percent_text(part: int, whole: int) -> str:
    """Return a share, such as 12 %; a dash where there is no whole."""
    return f"{100 * part / whole:.0f} %".replace("-", "−") if whole else "–"


def saved_text(report: CostReport, outcome: Outcome) -> str:
    """Return what share of its price an outcome saves the cluster, and whether on real prices."""
    now = report.running.cost_micros_per_hour
    share = percent_text(now - outcome.cost_micros_per_hour, now)
    return share + spot_text(report, on_spot=on_spot_prices(report.running, outcome))


def spot_text(report: CostReport, *, on_spot: bool) -> str:
    """Return the clause after a saving part of which are spot prices that nobody pays."""
    return " on made-up spot prices" if on_spot and report.made_up_spot else ""


def resource_percent(nodes: Iterable[FilledNode], name: str) -> int:
    """Return how much of the nodes' allocatable resource pods request, in percent."""
    listed = list(nodes)
    allocatable = Resources.total(node.allocatable for node in listed)[name]
    used = Resources.total(node.used for node in listed)[name]
    return round(100 * used / allocatable) if allocatable else 0


def types_of(nodes: Iterable[FilledNode]) -> str:
    """Return the types of the nodes, those with the most nodes first."""
    counts = Counter(node.instance_type or "unknown" for node in nodes)
    ordered = sorted(counts.items(), key=lambda found: (-found[1], found[0]))
    shown = [f"{count} × {name}" for name, count in ordered[:_TYPES_SHOWN]]
    more = len(ordered) - _TYPES_SHOWN
    return ", ".join(shown) + (f" and {counted(more, 'more type')}" if more > 0 else "")


def capacity_of(nodes: Iterable[FilledNode]) -> str:
    """Return the capacity types of the nodes, such as on-demand or on-demand, spot."""
    return ", ".join(sorted({node.capacity_type.value for node in nodes})) or "–"
