"""Amounts and names as the page writes them."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from functions.cli.report.cost_report import Alternative, CostReport
from functions.cli.report.repacking import Outcome, on_spot_prices
from shared.model.dollars_and_counts import HOURS_A_MONTH, MICROS, counted
from shared.model.resources import Resources
from shared.provisioning.savings.inventory import LINUX, FilledNode
from shared.provisioning.savings.pools import PoolKind

_TYPES_SHOWN: Final = 3
NO_PRICE: Final = (
    "no node has a known price: --live-prices asks AWS, --catalog FILE reads a catalogue"
)
_DESCRIPTIONS: Final = {
    Alternative.CONSOLIDATED: (
        "Nodes removed or replaced until nothing saves 5 % and $0.01/h, only by moves that "
        "{limits} allow now. Pods stay in their pools. Karpenter replaces spot nodes by spot nodes "
        "only with its feature gate SpotToSpotConsolidation."
    ),
    Alternative.REPACKED: (
        "Each pool launched anew for the pods that run on it, of whatever it may launch; on the "
        "architecture of its nodes, unless it names others."
    ),
    Alternative.OTHER_TYPES: (
        "The same, where general pools may launch any c, m and r type since the third generation, "
        "of any size, of the same architecture and capacity types."
    ),
    Alternative.SPOT: (
        "The same, with spot instances beside on-demand ones. EC2 interrupts them with two "
        "minutes' notice, and their prices change."
    ),
}


def description_text(alternative: Alternative, report: CostReport) -> str:
    """Return what an alternative changes, in sentences."""
    limits = "PodDisruptionBudgets and annotations" if report.budgets_known else "annotations"
    return _DESCRIPTIONS[alternative].format(limits=limits)


def left_out_lines(report: CostReport) -> Iterator[str]:
    """Yield what is in none of the figures, and what they rest on that could not be read."""
    fargate = [node for node in report.excluded if node.pool.kind == PoolKind.FARGATE]
    others = [node for node in report.excluded if node.pool.kind != PoolKind.FARGATE]
    foreign = [node for node in others if node.os != LINUX]
    others = [node for node in others if node.os == LINUX]
    if fargate:
        yield (
            f"Fargate runs {_pods_of(fargate)}, each on a node of its own. It is paid by pod, "
            "and is in none of the figures."
        )
    if foreign:
        systems = ", ".join(sorted({node.os for node in foreign}))
        yield (
            f"Prices are known of Linux alone: {counted(len(foreign), 'node')} of {systems} and "
            f"{_pods_of(foreign)} are in none of the figures."
        )
    if others:
        yield (
            f"The catalogue has no price for {types_of(others)}: {counted(len(others), 'node')} "
            f"and {_pods_of(others)} are in none of the figures."
        )
    if report.waiting:
        yield (
            f"{counted(report.waiting, 'pod')} without a node are in none of the figures."
            if report.waiting > 1
            else "1 pod without a node is in none of the figures."
        )
    if not report.budgets_known:
        yield (
            "No PodDisruptionBudget was read: those of the cluster may forbid some of what "
            "consolidation saves here."
        )
    for pool in report.unread:
        yield (
            f"{pool} was not read: what it may launch is taken from its nodes, and whether its "
            "autoscaler consolidates them already is not known."
        )


def _pods_of(nodes: Iterable[FilledNode]) -> str:
    return counted(sum(len(node.pods) for node in nodes), "pod")


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


def above_bound_text(micros: int, bound: int) -> str:
    """Return how much more than its lower bound a plan costs, such as costs 7.8 % more."""
    return f"costs {100 * (micros - bound) / bound:.1f} % more" if bound else ""


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
