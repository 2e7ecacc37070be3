"""The page of the report as a whole."""

from collections import Counter
from collections.abc import Sequence
from datetime import date
from html import escape
from typing import Final

from msgspec import Struct

from functions.cli.report import price_text
from functions.cli.report.actions_page import actions_section, rules_section
from functions.cli.report.cost_report import Alternative, CostReport
from functions.cli.report.price_text import (
    hourly_price_text,
    monthly_price_text,
    percent_text,
)
from functions.cli.report.repacking import Outcome, on_spot_prices
from functions.cli.report.shares import DAEMONSETS, UNUSED, shares_by_namespace
from functions.cli.report.tables_and_bars import (
    TableCell,
    bullet_list,
    fact,
    fill_cell,
    node_tiles,
    number,
    price_bar,
    table,
    whole_page,
)
from shared.instance_types.summary import CatalogSummary
from shared.model.dollars_and_counts import counted
from shared.model.resources import CPU, MEMORY
from shared.provisioning.savings.inventory import FilledNode, by_pool, cost
from shared.provisioning.savings.pools import Pool, PoolKind

_HELD_SHOWN: Final = 20
_METHOD: Final = """\
Every plan is made by Dovetail's planner, which also plans launches: it keeps requests, node \
selectors, affinity, spreads, taints, volumes' zones and host ports, and reserves what DaemonSets \
take on each node. It reads requests, not usage.
From consolidated to spot, each plan allows what the one before it allows, and more. What is found \
under the stricter rules counts under the freer ones, too: none costs more than the one before.
The lower bound is proved for each plan: no choice of new nodes under the same rules costs less.
A pool is what its NodePool or Provisioner declares. A node group declares nothing in the cluster: \
it is taken to launch the types, zones and capacity types that its nodes have.
A pool that names no architecture is planned on that of its nodes, as a cluster does not say of \
which an image is. What arm64 would save besides is an action of its own.
A namespace pays for a pod's share of its node's price: the mean of its shares of cpu, memory and \
devices. What no pod requests is a row of its own.
Prices are list prices, but for a discount that a note names: no Savings Plans, Reserved Instances \
or credits, no volumes, traffic, EKS or EKS Auto Mode fees. A month has 730 hours."""
_FOOTER: Final = (
    "<footer>Made by dovetail report. Nothing was installed in the cluster, and nothing was "
    "written to it.</footer>"
)


class Subject(Struct, frozen=True, kw_only=True):
    """What the page is about.

    Attributes:
        cluster: Its name, empty when not known.
        read_at: When it was read, in words.
        prices: Where prices come from.
        today: By which they are old.
        notes: What was left out or assumed, one line each.
    """

    cluster: str
    read_at: str
    prices: CatalogSummary
    today: date
    notes: Sequence[str]


def page(report: CostReport, subject: Subject) -> str:
    """Return the whole page as HTML. The same report gives the same page."""
    read = f"{subject.read_at}. P{subject.prices.line(subject.today).removeprefix('p')}."
    title = f"What {subject.cluster or 'this cluster'} costs, and what it could cost"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="soft">{escape(read)}</p>',
        _verdict(report),
        _alternatives(report),
        _pools(report),
        _namespaces(report),
        _fleets(report),
        rules_section(report),
        _left_out(report, subject.notes),
        "<h2>How these figures are made</h2>",
        bullet_list([*_METHOD.splitlines(), f"Prices: {subject.prices}."]),
        actions_section(report),
        _FOOTER,
    ]
    return whole_page(title, parts)


def _verdict(report: CostReport) -> str:
    if not report.running.nodes:
        return f'<div class="verdict">{fact("–", price_text.NO_PRICE)}</div>'
    now = report.running.cost_micros_per_hour
    facts = [
        fact(
            f"{hourly_price_text(now)}/h",
            f"is what {counted(len(report.running.nodes), 'node')} cost, "
            f"{monthly_price_text(now)} a month",
        )
    ]
    best = report.cheapest
    if best is None:
        facts.append(fact("0 %", "could be saved without more spot: the cluster is packed well"))
    else:
        outcome = report.alternatives[best]
        saved = now - outcome.cost_micros_per_hour
        on_spot = on_spot_prices(report.running, outcome)
        how = best.value
        facts.append(
            fact(
                f"{hourly_price_text(outcome.cost_micros_per_hour)}/h",
                f"would be enough: {how}, {percent_text(saved, now)} less, "
                f"saves {monthly_price_text(saved)} a month"
                f"{price_text.spot_text(report, on_spot=on_spot)}",
                good=True,
            )
        )
    unused = shares_by_namespace(report.running.nodes).get(UNUSED, 0)
    facts.append(
        fact(
            percent_text(unused, now),
            f"of it pays for room that no pod requests: {monthly_price_text(unused)} a month",
        )
    )
    return f'<div class="verdict">{"".join(facts)}</div>'


def _alternatives(report: CostReport) -> str:
    now = report.running
    ways = [("As it runs", "", now)] + [
        (alternative.capitalize(), price_text.description_text(alternative, report), outcome)
        for alternative, outcome in report.alternatives.items()
    ]
    variants = [(name, "", outcome) for name, outcome in report.variants]
    longest = max(outcome.cost_micros_per_hour for *_, outcome in (*ways, *variants))
    headings = ("", "", ">$/h", ">lower bound", ">nodes", ">saves", ">a month")
    tables = "".join(
        table(caption, headings, [_alternative_row(*row, report, longest) for row in rows])
        for caption, rows in (
            (
                "The same pods, under other rules. The mark on a bar is the proved lower bound.",
                ways,
            ),
            ("All c, m and r types, under other settings.", variants),
        )
        if rows
    )
    return f"<h2>What it could cost</h2>{tables}"


def _alternative_row(
    title: str, description: str, outcome: Outcome, report: CostReport, longest: int
) -> Sequence[TableCell]:
    now = report.running
    price, bound = outcome.cost_micros_per_hour, outcome.lower_bound_micros_per_hour
    saved = now.cost_micros_per_hour - price
    return (
        TableCell(
            text=title,
            below=f"{description}{_crowded_text(report, outcome)}{_prices_text(report, outcome)}",
        ),
        price_bar(price, longest, bound, now=outcome is now),
        number(hourly_price_text(price)),
        TableCell(
            text="–" if bound is None else hourly_price_text(bound),
            below="" if bound is None else price_text.above_bound_text(price, bound),
            kind="n",
        ),
        number(f"{len(outcome.nodes):,}"),
        number(
            "" if outcome is now else percent_text(saved, now.cost_micros_per_hour), saves=saved
        ),
        number("" if outcome is now else monthly_price_text(saved), saves=saved),
    )


def _crowded_text(report: CostReport, outcome: Outcome) -> str:
    """Return the risk of more pods on a node than there are now; empty where there are none."""
    now, then = report.running.most_pods, outcome.most_pods
    return f" Up to {counted(then, 'pod')} would end with one node, now {now}." * (then > now)


def _prices_text(report: CostReport, outcome: Outcome) -> str:
    told = price_text.spot_text(report, on_spot=on_spot_prices(report.running, outcome))
    return f" The saving rests{told}." if told else ""


def _pools(report: CostReport) -> str:
    now = report.running.nodes
    repacked, any_type = (
        report.nodes_of(which) for which in (Alternative.REPACKED, Alternative.OTHER_TYPES)
    )
    then, other = by_pool(repacked), by_pool(any_type)
    rows = [
        _pool_row(_pool_cells(pool, nodes, report), nodes, then.get(pool, ()), other.get(pool, ()))
        for pool, nodes in sorted(by_pool(now).items(), key=lambda row: (-cost(row[1]), row[0]))
    ]
    last = _pool_row((TableCell(text="All pools"), TableCell()), now, repacked, any_type)
    shown = table(
        "What pods request of each pool, and each pool launched anew.",
        ("pool", "nodes", "cpu", "memory", ">$/h", ">repacked", ">saves", ">all types"),
        rows,
        last,
    )
    return f"<h2>Pool by pool</h2>{shown}"


def _pool_cells(
    pool: Pool, nodes: Sequence[FilledNode], report: CostReport
) -> tuple[TableCell, TableCell]:
    """Return the cells that name a pool and its nodes."""
    declares = pool.kind in (PoolKind.NODE_POOL, PoolKind.PROVISIONER)
    told = "; keeps a fixed number of nodes" if pool in report.fixed else ""
    if declares and not told and pool not in report.declared:
        told = "; what it may launch is taken from its nodes"
    return (
        TableCell(text=pool.name or str(pool), below=(str(pool.kind) if pool.name else "") + told),
        TableCell(text=price_text.types_of(nodes), below=price_text.capacity_of(nodes)),
    )


def _pool_row(
    first: tuple[TableCell, TableCell],
    nodes: Sequence[FilledNode],
    then: Sequence[FilledNode],
    other: Sequence[FilledNode],
) -> Sequence[TableCell]:
    return (
        *first,
        fill_cell(nodes, CPU),
        fill_cell(nodes, MEMORY),
        number(hourly_price_text(cost(nodes))),
        *_after(nodes, then),
        *_after(nodes, other)[:1],
    )


def _after(nodes: Sequence[FilledNode], then: Sequence[FilledNode]) -> tuple[TableCell, TableCell]:
    saved = cost(nodes) - cost(then)
    price = TableCell(
        text=hourly_price_text(cost(then)), below=f"{counted(len(then), 'node')}", kind="n"
    )
    return price, number(percent_text(saved, cost(nodes)), saves=saved)


def _namespaces(report: CostReport) -> str:
    now = shares_by_namespace(report.running.nodes)
    then = shares_by_namespace(report.nodes_of(Alternative.REPACKED))
    longest = max(now.values(), default=0)
    ordered = sorted(
        now.items(), key=lambda entry: (entry[0] in (DAEMONSETS, UNUSED), -entry[1], entry[0])
    )
    pods = Counter(pod.namespace for node in report.running.nodes for pod in node.pods)
    rows = [
        (
            TableCell(text=name),
            number(f"{pods[name]:,}" if name in pods else ""),
            price_bar(micros, longest, None, now=name in (DAEMONSETS, UNUSED)),
            *_namespace_prices(micros, then.get(name, 0)),
        )
        for name, micros in ordered
    ]
    shown = table(
        "What the requests of each namespace cost, as it runs and repacked.",
        ("namespace", ">pods", "", ">$/h", ">a month", ">repacked"),
        rows,
        (
            TableCell(text="All nodes"),
            number(f"{sum(pods.values()):,}"),
            TableCell(),
            *_namespace_prices(sum(now.values()), sum(then.values())),
        ),
    )
    return f"<h2>Namespace by namespace</h2>{shown}"


def _namespace_prices(now: int, then: int) -> tuple[TableCell, ...]:
    return tuple(
        map(number, (hourly_price_text(now), monthly_price_text(now), hourly_price_text(then)))
    )


def _fleets(report: CostReport) -> str:
    key = (
        '<p class="soft">How much of each node pods request:'
        '<span class="key" style="background:var(--cpu)"></span>cpu'
        '<span class="key" style="background:var(--memory)"></span>memory</p>'
    )
    now = report.running.nodes
    drawn = node_tiles(f"As it runs: {_in_short(report.running)}.", now)
    best = report.cheapest
    if best is not None:
        outcome = report.alternatives[best]
        drawn += node_tiles(f"{best.capitalize()}: {_in_short(outcome)}.", outcome.nodes)
    return f"<h2>The nodes</h2>{key}{drawn}"


def _in_short(outcome: Outcome) -> str:
    price = hourly_price_text(outcome.cost_micros_per_hour)
    return f"{counted(len(outcome.nodes), 'node')}, {price}/h"


def _left_out(report: CostReport, notes: Sequence[str]) -> str:
    lines = list(price_text.left_out_lines(report))
    held = report.alternatives[Alternative.REPACKED].held if report.alternatives else ()
    lines += [
        f"{name} keeps its node in every repacking: {why}." for name, why in held[:_HELD_SHOWN]
    ]
    if len(held) > _HELD_SHOWN:
        lines.append(f"So do {len(held) - _HELD_SHOWN:,} more pods.")
    lines += notes
    return f"<h2>What the figures leave out</h2>{bullet_list(lines)}" if lines else ""
