"""Nodes and dollars per hour of the day before: what recorded decisions and launches say.

A decision records the nodes of its moment, the ledger what EC2 launched for it. Between two
decisions nobody wrote down which nodes went: that shows at the later one.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from functions.cli.plan.decision_documents import base_of
from functions.cli.plan.recorded_decision import load_decision
from functions.cli.watch.history import Point
from functions.cli.watch.view import OfferingPrices
from shared.model.errors import InvalidManifestError, PermanentError
from shared.nodes.launch.launch_results import LaunchResult

if TYPE_CHECKING:
    from functions.cli.watch.cluster_watch import ClusterRecords

SPAN: Final = timedelta(days=1)
# Decisions that are read, evenly chosen from those of the day: half an hour apart if they are.
MOST_READ: Final = 48


def day_before(reader: "ClusterRecords", worker: Executor, until: datetime) -> tuple[Point, ...]:
    """Return the points of the day before a moment, oldest first; none if nothing was recorded.

    Args:
        reader: Reads what was recorded.
        worker: Runs what takes long: it reads whole snapshots.

    Raises:
        AutoscalerError: If AWS cannot be reached.
    """
    base = lru_cache(1)(reader.document)
    seen: list[tuple[Point, Sequence[LaunchResult]]] = []
    for key in _evenly(_keys(reader, until)):
        try:
            content = reader.document(key)
            named = base_of(content)
            before = base(named) if named else b""
            point = worker.submit(recorded_point, content, before).result()
        except (InvalidManifestError, PermanentError):
            # Not readable, or deleted in between: the others tell.
            continue
        plan_id = key.rpartition("/")[2].removesuffix(".json.gz")
        seen.append((point, reader.launch_results(plan_id)))
    return with_launches(seen, until.timestamp())


def _keys(reader: "ClusterRecords", until: datetime) -> list[str]:
    """Return the keys of the day's decisions, oldest first: plan ids sort by time."""
    began = until - SPAN
    days = sorted({f"{day:%Y-%m-%d}" for day in (began, until)})
    after = f"decisions/{reader.cluster}/{days[0]}/{began:%Y%m%dt%H%M%S}"
    return [key for day in days for key in reader.decisions(day, after)]


def _evenly(keys: Sequence[str]) -> list[str]:
    """Return so many keys at most, the first and the last among them."""
    if len(keys) <= MOST_READ:
        return [*keys]
    last = len(keys) - 1
    return [keys[round(number * last / (MOST_READ - 1))] for number in range(MOST_READ)]


def recorded_point(content: bytes, base: bytes) -> Point:
    """Return the nodes of a decision's moment and what they cost; no bound is recorded for them.

    Raises:
        InvalidManifestError: If it is not a decision.
    """
    snapshot = load_decision(content, lambda _: base).snapshot
    prices = OfferingPrices.of(snapshot.instance_types)
    costs = [(prices.of_node(node) or 0, node.is_ours) for node in snapshot.nodes]
    named = {node.instance_id for node in snapshot.nodes}
    costs += [
        (slot.price_micros_per_hour, True)
        for slot in snapshot.slots
        if slot.instance_id not in named
    ]
    return Point(
        at=snapshot.taken_at.timestamp(),
        price=sum(price for price, _ in costs),
        owned=sum(price for price, ours in costs if ours),
        bound=None,
        nodes=len(costs),
    )


def with_launches(
    seen: Iterable[tuple[Point, Sequence[LaunchResult]]], until: float
) -> tuple[Point, ...]:
    """Return what decisions saw, with what their launches added until the next one was made.

    Args:
        seen: For each decision its point and what came of it.
        until: Later points are left out.
    """
    ordered = sorted(seen, key=lambda each: each[0].at)
    points: list[Point] = []
    for number, (point, results) in enumerate(ordered):
        ends = min(ordered[number + 1][0].at if number + 1 < len(ordered) else until, until)
        points.append(point)
        for result in sorted(results, key=lambda result: (result.at, result.group)):
            last, added = points[-1], result.launched
            cost = sum(kind.count * kind.price_micros_per_hour for kind in added)
            at = max(result.at.timestamp(), last.at)
            if added and at < ends:
                nodes = last.nodes + sum(kind.count for kind in added)
                points.append(Point(at, last.price + cost, last.owned + cost, None, nodes))
    return tuple(point for point in points if point.at < until)
