"""What the shadow fleet costs beside what really ran, over the times that were observed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from itertools import pairwise
from typing import Any, Final

from msgspec import Struct

from functions.cli.shadow.fleet import ComparedPurchase, NodeRun
from functions.cli.shadow.record import Recorded, Span
from shared.model.codec import to_plain
from shared.provisioning.savings.pools import Pool

_MICROSECOND: Final = timedelta(microseconds=1)
_HOUR: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)


class Cost(Struct, frozen=True, kw_only=True):
    """What nodes cost over some time.

    Attributes:
        micros: In micro-dollars, not per hour.
        node_seconds: For how long they ran, in all.
        most_nodes: Most nodes at once.
    """

    micros: int
    node_seconds: int
    most_nodes: int


class Costs(Struct, frozen=True, kw_only=True):
    """What really ran, and the shadow fleet over the same time."""

    real: Cost
    shadow: Cost

    @property
    def saved_micros(self) -> int:
        """How much less the shadow fleet costs, in micro-dollars; may be negative."""
        return self.real.micros - self.shadow.micros


class PurchaseSums(Struct, frozen=True, kw_only=True):
    """Purchases summed up, without those that cannot be compared.

    Attributes:
        left_out: Number of purchases in no sum: a price is not known, or Dovetail has no node for
            one of the pods.
    """

    count: int
    pods: int
    bought_nodes: int
    bought_micros_per_hour: int
    planned_nodes: int
    planned_micros_per_hour: int
    left_out: int


class ShadowFigures(Struct, frozen=True, kw_only=True):
    """All figures of a record.

    Attributes:
        observed: How long the cluster was observed.
        gaps: Times between, in which nothing counts on either side.
        pools: In the order of what really ran, the most expensive first.
        days: By date in UTC.
    """

    observed: timedelta
    gaps: tuple[Span, ...]
    total: Costs
    pools: Mapping[Pool, Costs]
    days: Mapping[str, Costs]
    purchases: PurchaseSums


def shadow_figures(recorded: Recorded) -> ShadowFigures:
    """Return the figures of a record."""
    spans, end = recorded.spans, recorded.progress.last_at
    pools = {
        pool: _costs(recorded, spans, pool)
        for pool in sorted({run.pool for run in (*recorded.real, *recorded.shadow)})
    }
    by_cost = sorted(pools.items(), key=lambda entry: (-entry[1].real.micros, entry[0]))
    return ShadowFigures(
        observed=sum((span.ended_at - span.began_at for span in spans), timedelta()),
        gaps=tuple(_gaps(spans)),
        total=_costs(recorded, spans),
        pools=dict(by_cost),
        days={
            day: _costs(recorded, within) for day, within in _by_day(spans, end).items() if within
        },
        purchases=purchase_sums(recorded.purchases),
    )


def is_comparable(purchase: ComparedPurchase) -> bool:
    """Return whether both sides have the same pods at known prices."""
    return purchase.bought_micros_per_hour is not None and not purchase.unplaced


def purchase_sums(purchases: Sequence[ComparedPurchase]) -> PurchaseSums:
    """Return the sums of purchases."""
    summed = list(filter(is_comparable, purchases))
    return PurchaseSums(
        count=len(summed),
        pods=sum(entry.pods for entry in summed),
        bought_nodes=sum(entry.bought_nodes for entry in summed),
        bought_micros_per_hour=sum(entry.bought_micros_per_hour or 0 for entry in summed),
        planned_nodes=sum(entry.planned_nodes for entry in summed),
        planned_micros_per_hour=sum(entry.planned_micros_per_hour for entry in summed),
        left_out=len(purchases) - len(summed),
    )


def json_figures(recorded: Recorded, figures: ShadowFigures) -> Mapping[str, Any]:
    """Return record and figures as plain JSON; amounts are in micro-dollars."""
    return {
        "about": to_plain(recorded.about),
        "observed_seconds": int(figures.observed.total_seconds()),
        "gaps": to_plain(figures.gaps),
        "total": to_plain(figures.total),
        "pools": [
            {"kind": str(pool.kind), "name": pool.name, **to_plain(costs)}
            for pool, costs in figures.pools.items()
        ],
        "days": {day: to_plain(costs) for day, costs in figures.days.items()},
        "unplaced_pod_seconds": recorded.progress.unplaced_pod_seconds,
        "purchase_sums": to_plain(figures.purchases),
        "purchases": to_plain(recorded.purchases),
        "decisions": to_plain(recorded.decisions),
    }


def _costs(recorded: Recorded, windows: Sequence[Span], pool: Pool | None = None) -> Costs:
    """Return what ran within the windows, of one pool or of all."""
    real, shadow = (
        _cost((run for run in runs if pool in (None, run.pool)), windows, recorded.progress.last_at)
        for runs in (recorded.real, recorded.shadow)
    )
    return Costs(real=real, shadow=shadow)


def _cost(runs: Iterable[NodeRun], windows: Sequence[Span], end: datetime) -> Cost:
    micro_hours, ran = 0, timedelta()
    changes: list[tuple[datetime, int]] = []
    for run in runs:
        for began_at, ended_at in _within(run, windows, end):
            passed = ended_at - began_at
            micro_hours += run.price_micros_per_hour * (passed // _MICROSECOND)
            ran += passed
            changes += [(began_at, 1), (ended_at, -1)]
    now = most = 0
    # At the same time, nodes that end come first.
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return Cost(
        micros=round(micro_hours / (_HOUR // _MICROSECOND)),
        node_seconds=int(ran.total_seconds()),
        most_nodes=most,
    )


def _within(
    run: NodeRun, windows: Iterable[Span], end: datetime
) -> Iterator[tuple[datetime, datetime]]:
    """Yield the parts of a run in the windows."""
    last = min(run.ended_at or end, end)
    for window in windows:
        began_at, ended_at = max(run.began_at, window.began_at), min(last, window.ended_at)
        if began_at < ended_at:
            yield began_at, ended_at


def _gaps(spans: Sequence[Span]) -> Iterator[Span]:
    for before, after in pairwise(spans):
        yield Span(began_at=before.ended_at, ended_at=after.began_at)


def _by_day(spans: Sequence[Span], end: datetime) -> Mapping[str, list[Span]]:
    """Return the parts of the spans in each day."""
    found = {}
    at = datetime.combine(spans[0].began_at.date(), time(), UTC)
    while at <= end:
        found[f"{at:%Y-%m-%d}"] = [
            Span(began_at=max(span.began_at, at), ended_at=min(span.ended_at, at + _DAY))
            for span in spans
            if max(span.began_at, at) < min(span.ended_at, at + _DAY)
        ]
        at += _DAY
    return found
