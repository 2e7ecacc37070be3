"""The report of a shadow record: lines for a terminal, and one HTML file."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from html import escape
from typing import Final

from functions.cli.printable_text import aligned
from functions.cli.report.price_text import hourly_price_text, percent_text
from functions.cli.report.tables_and_bars import (
    TableCell,
    bullet_list,
    fact,
    number,
    price_bar,
    table,
    whole_page,
)
from functions.cli.shadow.figures import Cost, Costs, ShadowFigures, is_comparable
from functions.cli.shadow.fleet import ComparedPurchase, Observation, RecordProgress
from functions.cli.shadow.record import Recorded
from shared.model.dollars_and_counts import MICROS, counted

_SHOWN: Final = 500
# A shorter time shows no night, no weekend and few of a day's deployments.
_TELLS_LITTLE: Final = timedelta(days=1)
_HEADINGS: Final = (
    ">really ran",
    ">Dovetail",
    ">saves",
    ">node-hours",
    ">Dovetail",
    ">most nodes",
    ">Dovetail",
)
_METHOD: Final = """\
At the first observation the shadow fleet is what runs. From then on only Dovetail's own decisions \
change it: pods that come are planned onto it, nodes are launched where it has no room, and nodes \
are removed by Dovetail's consolidation, emptiness and expiration, within consolidateAfter, \
disruption budgets and PodDisruptionBudgets.
A pod is on the shadow fleet for as long as it is in the cluster. A pod that the real autoscaler \
evicts leaves, and its successor comes.
A node of the shadow fleet is paid from its plan, 60 s before its pods would start, until it is \
drained: 30 s after its replacement has booted. A real node is paid from the creation of its Node \
until it was last seen, so its boot is not counted.
EC2 refuses nothing, no spot instance is interrupted and no instance fails in the shadow fleet; \
volumes keep the zone that they really have.
Prices are list prices of the time at which a node was first seen, but for a discount that a note \
names: no Savings Plans, volumes, traffic and EKS fees. Times without observation count on neither \
side."""
_FOOTER: Final = (
    "<footer>Made by dovetail shadow. Nothing was installed in the cluster, and nothing was "
    "written to it.</footer>"
)


def dollars_text(micros: int) -> str:
    """Return an amount in dollars and cents, such as $1,234.57."""
    return f"{'−' if micros < 0 else ''}${abs(micros) / MICROS:,.2f}"


def continued_text(
    began_at: datetime,
    progress: RecordProgress,
    known: Collection[str],
    first: Observation,
    longest_pause: timedelta,
) -> str:
    """Return what a record that is continued holds, and what it missed, in words.

    Args:
        began_at: Time of its first observation.
        progress: After its last observation.
        known: Uids of the nodes that really ran then.
        first: The observation that continues it.
        longest_pause: A longer time without observation counts on neither side.
    """
    record = (
        f"continues the record begun {_time(began_at)}, of "
        f"{counted(progress.observations, 'observation')}"
    )
    missed = first.at - progress.last_at
    if missed <= longest_pause:
        return f"{record}; nothing is missed"
    came = sum((node.created_at or first.at) > progress.last_at for node in first.nodes)
    went = len({*known} - {node.uid for node in first.nodes})
    return (
        f"{record}; since {_time(progress.last_at)} it was stopped: {_hours(missed)} that count on "
        f"neither side, in which {counted(came, 'node')} came and {went} went"
    )


def summary_lines(recorded: Recorded, figures: ShadowFigures) -> tuple[str, ...]:
    """Return what was found, for a terminal."""
    rows = [("", "really ran", "Dovetail", "saves", "")]
    rows += [
        (
            name,
            dollars_text(costs.real.micros),
            dollars_text(costs.shadow.micros),
            _saves(costs),
            caution,
        )
        for name, costs, caution in (
            *((day, costs, "") for day, costs in figures.days.items()),
            *((str(pool), costs, "") for pool, costs in figures.pools.items()),
            ("all", figures.total, _over(figures.observed)),
        )
    ]
    total = figures.total
    nodes = (
        f"node-hours {_node_hours(total.real)} and {_node_hours(total.shadow)}; most nodes at once "
        f"{total.real.most_nodes} and {total.shadow.most_nodes}"
    )
    return (
        f"observed for {_hours(figures.observed)} since {_time(recorded.spans[0].began_at)}"
        + (f", with {counted(len(figures.gaps), 'gap')}" if figures.gaps else ""),
        *aligned(rows, right_aligned={1, 2, 3}),
        nodes,
        _purchases_text(figures),
        *_caveats(recorded, figures),
    )


def shadow_page(recorded: Recorded, figures: ShadowFigures) -> str:
    """Return the report as HTML. The same record gives the same page."""
    total, about = figures.total, recorded.about
    title = "What Dovetail would have cost beside what really ran"
    facts = (
        fact(dollars_text(total.real.micros), f"is what really ran in {_hours(figures.observed)}"),
        fact(
            dollars_text(total.shadow.micros),
            f"is Dovetail's shadow fleet over the same time: saves {_saves(total)} "
            f"{_over(figures.observed)}",
            good=total.saved_micros > 0,
        ),
        fact(
            f"{_node_hours(total.shadow)} h",
            f"of nodes in place of {_node_hours(total.real)}; at most {total.shadow.most_nodes} at "
            f"once in place of {total.real.most_nodes}",
        ),
    )
    settings = f" Settings: {', '.join(about.settings)}." if about.settings else ""
    subject = (
        f"{about.cluster}, {_time(recorded.spans[0].began_at)} to "
        f"{_time(recorded.progress.last_at)}. Prices: {about.prices}.{settings}"
    )
    parts = (
        f"<h1>{escape(title)}</h1>",
        f'<p class="soft">{escape(subject)}</p>',
        f'<div class="verdict">{"".join(facts)}</div>',
        "<h2>Day by day</h2>",
        _table("Days in UTC.", "day", figures.days, total),
        "<h2>Pool by pool</h2>",
        _table(
            "A pod may go to any pool that is compared and takes it.",
            "pool",
            {str(pool): costs for pool, costs in figures.pools.items()},
            total,
        ),
        "<h2>Purchase by purchase</h2>",
        f"<p>{escape(_purchases_text(figures))}</p>",
        _purchases(recorded.purchases),
        "<h2>What Dovetail would have done</h2>",
        _decisions(recorded),
        "<h2>What to know of these figures</h2>",
        bullet_list(_caveats(recorded, figures)),
        "<h2>How these figures are made</h2>",
        bullet_list(_METHOD.splitlines()),
        _FOOTER,
    )
    return whole_page(title, parts)


def _table(caption: str, first: str, rows: Mapping[str, Costs], total: Costs) -> str:
    longest = max(
        (max(costs.real.micros, costs.shadow.micros) for costs in rows.values()), default=0
    )
    return table(
        f"{caption} The mark on a bar is what the shadow fleet costs.",
        (first, "", *_HEADINGS),
        [
            (
                TableCell(text=name),
                price_bar(costs.real.micros, longest, costs.shadow.micros, now=True),
                *_cells(costs),
            )
            for name, costs in rows.items()
        ],
        (TableCell(text="All"), TableCell(), *_cells(total)),
    )


def _cells(costs: Costs) -> tuple[TableCell, ...]:
    return (
        number(dollars_text(costs.real.micros)),
        number(dollars_text(costs.shadow.micros)),
        number(_saves(costs), saves=costs.saved_micros),
        number(_node_hours(costs.real)),
        number(_node_hours(costs.shadow)),
        number(f"{costs.real.most_nodes:,}"),
        number(f"{costs.shadow.most_nodes:,}"),
    )


def _purchases(purchases: Sequence[ComparedPurchase]) -> str:
    rows = [
        (
            TableCell(text=_time(entry.at)),
            number(f"{entry.pods:,}"),
            TableCell(text=entry.bought),
            number(_hourly(entry.bought_micros_per_hour)),
            TableCell(text=entry.planned or "none", below=entry.unplaced),
            number(_hourly(entry.planned_micros_per_hour)),
            _purchase_saves(entry),
        )
        for entry in purchases[-_SHOWN:]
    ]
    return table(
        "Each in the cluster as it really was then: room on nodes that were there counts.",
        ("joined at", ">pods", "bought", ">$/h", "Dovetail plans", ">$/h", ">saves"),
        rows,
    ) + _more(len(purchases), "purchase")


def _purchase_saves(entry: ComparedPurchase) -> TableCell:
    if not is_comparable(entry):
        return number("–")
    bought = entry.bought_micros_per_hour or 0
    saved = bought - entry.planned_micros_per_hour
    return number(percent_text(saved, bought), saves=saved)


def _decisions(recorded: Recorded) -> str:
    lines = [f"{_time(entry.at)}: {entry.text}" for entry in recorded.decisions[-_SHOWN:]]
    return bullet_list(lines) + _more(len(recorded.decisions), "decision")


def _more(count: int, noun: str) -> str:
    left = count - _SHOWN
    return f"<p>{counted(left, noun)} before are only in the JSON form.</p>" if left > 0 else ""


def _purchases_text(figures: ShadowFigures) -> str:
    sums = figures.purchases
    left = f"; {sums.left_out} not comparable" if sums.left_out else ""
    return (
        f"{counted(sums.count, 'purchase')} for {counted(sums.pods, 'pod')}: "
        f"{counted(sums.bought_nodes, 'node')} for {_hourly(sums.bought_micros_per_hour)}/h "
        f"bought, {counted(sums.planned_nodes, 'node')} for "
        f"{_hourly(sums.planned_micros_per_hour)}/h planned by Dovetail{left}"
    )


def _caveats(recorded: Recorded, figures: ShadowFigures) -> Iterator[str]:
    """Yield what to know before the figures are believed."""
    for gap in figures.gaps:
        yield (
            f"not observed from {_time(gap.began_at)} to {_time(gap.ended_at)} "
            f"({_hours(gap.ended_at - gap.began_at)}): counts on neither side"
        )
    seconds = recorded.progress.unplaced_pod_seconds
    if seconds:
        yield (
            f"running pods had no node in the shadow fleet for {seconds / 3600:,.1f} pod-hours: "
            "that much of the saving is none"
        )
    yield from recorded.notes


def _hourly(micros: int | None) -> str:
    return "unknown" if micros is None else hourly_price_text(micros)


def _saves(costs: Costs) -> str:
    return percent_text(costs.saved_micros, costs.real.micros)


def _over(observed: timedelta) -> str:
    """Return over what time a saving was found, and whether that is too short to rely on."""
    caution = ": under a day says little" if observed < _TELLS_LITTLE else ""
    return f"in {_hours(observed)}{caution}"


def _node_hours(cost: Cost) -> str:
    return f"{cost.node_seconds / 3600:,.1f}"


def _hours(span: timedelta) -> str:
    seconds = span.total_seconds()
    return f"{seconds / 3600:,.1f} h" if seconds >= 3600 else f"{seconds / 60:,.0f} min"


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
