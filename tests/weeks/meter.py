"""What became of a trace: dollars, waits, evictions, calls."""

from collections.abc import Container, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from shared.model.kubernetes.pods import Pod
from tests.simulation.schedule.kernel import START, micros
from tests.weeks.cluster import AGENT
from tests.weeks.spending import Life, Spending, spending_of
from tests.weeks.world import NAME, WeeksWorld

_SECOND: Final = 1_000_000
_HOUR: Final = 3600
_YOUNG_SECONDS: Final = 600
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Waits:
    """Seconds that pods waited, 0 without pods.

    Attributes:
        half: What half of the pods did not exceed.
        most: What 95 of 100 did not exceed.
    """

    half: float
    most: float

    @classmethod
    def of(cls, found: Iterable[float]) -> "Waits":
        """Return what these waits come to."""
        known = sorted(found) or [0.0]
        return cls(*(round(known[int(part * (len(known) - 1))], 3) for part in (0.5, 0.95)))


@dataclass(frozen=True)
class Played:
    """One trace with one autoscaler.

    Attributes:
        dollars: Of instances, from launch to the beginning of their termination.
        bound, running: Of pods that their users asked for: from creation until bound, until Ready.
        again: From creation until Ready of pods that replace others.
        evicted: Pods that the autoscaler evicted or deleted.
        young: Of these, how many were made by an eviction less than ten minutes before.
        waiting: Pods without a node at the end.
        spent: What the dollars were paid for.
    """

    dollars: float
    node_hours: float
    most_nodes: int
    launched: int
    bound: Waits
    running: Waits
    again: Waits
    evicted: int
    young: int
    waiting: int
    calls: dict[str, int]
    cpu_seconds: float
    spent: Spending


def measured(world: WeeksWorld, cpu_seconds: float) -> Played:
    """Return what a world that has been played shows."""
    cluster, end = world.cluster, int(world.trace.seconds * _SECOND)
    prices = world.clouds[NAME].prices
    paid = [
        Life(
            machine.instance.private_dns_name,
            prices[machine.instance.offering],
            machine.born,
            min(machine.ended or end, end),
        )
        for machine in world.region.machines.values()
    ]
    spent = spending_of(paid, cluster.node_log, cluster.log)
    bound, running, again = waits_of(cluster.log, cluster.restarted)
    return Played(
        dollars=spent.total,
        node_hours=sum(life.ended - life.born for life in paid) / _SECOND / _HOUR,
        most_nodes=most_at_once(paid),
        launched=len(paid),
        bound=bound,
        running=running,
        again=again,
        evicted=len(cluster.removed),
        young=sum(
            is_young(cluster.restarted, micros(START - _EPOCH) + time, pod)
            for time, pod in cluster.removed
        ),
        waiting=sum(not pod.node_name for pod in cluster.pods.values()),
        calls=dict(world.recorder.made),
        cpu_seconds=cpu_seconds,
        spent=spent,
    )


def is_young(restarted: Container[str], time: int, pod: Pod) -> bool:
    """Return whether a pod that is evicted replaced another less than ten minutes before.

    Args:
        time: Microseconds since 1970.
    """
    assert pod.created_at is not None
    age = time - micros(pod.created_at - _EPOCH)
    return pod.uid in restarted and age < _YOUNG_SECONDS * _SECOND


@dataclass
class _Pod:
    made: float
    bound: float | None = None
    ready: float | None = None


def waits_of(
    log: Iterable[tuple[int, Pod | None, Pod | None]], restarted: Container[str]
) -> tuple[Waits, Waits, Waits]:
    """Return how long pods waited: to be bound, to run, and to run again.

    Args:
        log: What happened to pods: microsecond, former, new.
        restarted: UIDs of pods that replace others without their user's wish.
    """
    found: dict[str, _Pod] = {}
    for time, _, pod in log:
        if pod is None or pod.labels["app"] == AGENT:
            continue
        seconds = time / _SECOND
        seen = found.setdefault(pod.uid, _Pod(seconds))
        if seen.bound is None and pod.node_name:
            seen.bound = seconds
        if seen.ready is None and (pod.ready or pod.phase == "Succeeded"):
            seen.ready = seconds
    asked = [seen for uid, seen in found.items() if uid not in restarted]
    again = [seen for uid, seen in found.items() if uid in restarted]
    return (
        Waits.of(seen.bound - seen.made for seen in asked if seen.bound is not None),
        Waits.of(seen.ready - seen.made for seen in asked if seen.ready is not None),
        Waits.of(seen.ready - seen.made for seen in again if seen.ready is not None),
    )


def most_at_once(lives: Iterable[Life]) -> int:
    """Return how many instances there were at once."""
    steps = sorted(step for life in lives for step in ((life.born, 1), (life.ended, -1)))
    most = now = 0
    for _, step in steps:
        now += step
        most = max(most, now)
    return most
