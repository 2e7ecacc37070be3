"""What a trace costs at least, whoever serves it."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from functions.cli.plan.reading.documents import Document
from functions.cli.plan.reading.snapshot import read_snapshot
from shared.instance_types.catalog import Catalog
from shared.manifests.pods import PodDecoder
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from shared.planning.lower_bound import with_bound
from tests.weeks.cluster import DAEMONSET
from tests.weeks.kubelets import BOOT_SECONDS
from tests.weeks.traces import HOUR, Trace
from tests.weeks.workloads import Workload
from tests.weeks.world import NODE_CLASS, instance_types, node_pool

# The bound is of the pods, not of the plan.
_QUICK: Final = PackingSettings(improve_iterations=0)


class Bounds(NamedTuple):
    """Lower bounds of the price of a trace, in dollars.

    Attributes:
        moving: The least price of a cluster for the pods that are wanted, integrated over time:
            nodes boot in no time, and pods move for nothing.
        booting: The same for whoever knows the trace beforehand and lets no pod wait: instances
            are paid while they boot, or kept for when they are needed again. An autoscaler that
            lets pods wait for their nodes pays for less than all pods, and may fall below it.
    """

    moving: float
    booting: float


class Step(NamedTuple):
    """What the pods that are wanted for a while cost at least, in micro-dollars per hour."""

    seconds: float
    micros_per_hour: int


def bounds_of(trace: Trace) -> Bounds:
    """Return what a trace costs at least."""
    steps = list(_steps(trace))
    moving = sum(step.micros_per_hour * step.seconds for step in steps)
    booting = moving + seconds_of_boots(steps, BOOT_SECONDS[0])
    return Bounds(moving / HOUR / 1e6, booting / HOUR / 1e6)


def seconds_of_boots(steps: Sequence[Step], boot_seconds: float) -> float:
    """Return what booting, or keeping nodes instead, costs at least, in micro-dollars × seconds.

    At each moment the nodes that run cost at least what the step says, so what they cost rises at
    least as often, and each rise is a boot. Level by level of the price: between two times at which
    a level is needed, its nodes are paid for the gap or boot again, whichever is shorter.
    """
    total, now, level = 0.0, 0.0, 0
    # Levels that are not needed now: price up to which they reach, and since when. Lowest last.
    left: list[tuple[int, float]] = []
    for step in steps:
        wanted = step.micros_per_hour
        if wanted < level:
            left.append((level, now))
        while level < wanted:
            top, since = left[-1] if left else (wanted, -boot_seconds)
            reached = min(top, wanted)
            total += (reached - level) * min(now - since, boot_seconds)
            level = reached
            if left and level == top:
                left.pop()
        level = wanted
        now += step.seconds
    return total


def _steps(trace: Trace) -> Iterator[Step]:
    scene = _empty_cluster(trace)
    decoder = PodDecoder()
    known: dict[tuple[tuple[str, int], ...], int] = {}
    # A claim that is not bound yet restricts no pod.
    workloads = {
        name: dataclasses.replace(workload, volumes=False)
        for name, workload in trace.fresh().items()
    }
    last, price = 0.0, 0
    for moment, wanted in trace.wanted():
        second = min(moment, trace.seconds)
        yield Step(second - last, price)
        last = second
        asked = tuple(sorted((name, count) for name, count in wanted.items() if count))
        if asked not in known:
            known[asked] = _least(scene, decoder, workloads, dict(asked))
        price = known[asked]
    yield Step(trace.seconds - last, price)


def _least(
    scene: ClusterSnapshot,
    decoder: PodDecoder,
    workloads: Mapping[str, Workload],
    wanted: Mapping[str, int],
) -> int:
    """Return the bound that a plan for these pods on an empty cluster proves."""
    pods = [
        replace(decoder.decode(workloads[name].raw_pod(number)), unschedulable=True)
        for name, count in wanted.items()
        for number in range(count)
    ]
    asked = replace(scene, pending=tuple(sorted(pods, key=lambda pod: (pod.key, pod.uid))))
    plan = with_bound(asked, decide(asked, _QUICK))
    assert not plan.unschedulable, plan.unschedulable
    return plan.lower_bound_micros_per_hour


def _empty_cluster(trace: Trace) -> ClusterSnapshot:
    catalog = Catalog(
        region="us-east-1",
        source="traces",
        date="2026-01-01",
        instance_types=instance_types(trace.families),
    )
    raws = (NODE_CLASS, node_pool(trace.families, "30s"), DAEMONSET)
    documents = [Document(where=str(raw["kind"]), raw=raw) for raw in raws]
    return read_snapshot(documents, catalog).snapshot
