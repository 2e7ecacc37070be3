"""What became of a trace: dollars, waits, evictions, calls."""

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from shared.model.kubernetes.pods import Pod
from tests.simulation.schedule.kernel import START, micros
from tests.weeks.cluster import AGENT, Cluster
from tests.weeks.spending import Life, Spending, spending_of
from tests.weeks.world import NAME, WeeksWorld

_SECOND: Final = 1_000_000
_HOUR: Final = 3600
_YOUNG_SECONDS: Final = 600


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
    lives = _lives(cluster)
    asked = [life for life in lives if life.uid not in cluster.restarted]
    again = [life for life in lives if life.uid in cluster.restarted]
    return Played(
        dollars=sum(dataclasses.astuple(spent)),
        node_hours=sum(life.ended - life.born for life in paid) / _SECOND / _HOUR,
        most_nodes=_most_at_once([(life.born, life.ended) for life in paid]),
        launched=len(paid),
        bound=Waits.of(life.bound - life.made for life in asked if life.bound is not None),
        running=Waits.of(life.ready - life.made for life in asked if life.ready is not None),
        again=Waits.of(life.ready - life.made for life in again if life.ready is not None),
        evicted=len(cluster.removed),
        young=sum(_is_young(cluster, time, pod) for time, pod in cluster.removed),
        waiting=sum(not pod.node_name for pod in cluster.pods.values()),
        calls=dict(world.recorder.made),
        cpu_seconds=cpu_seconds,
        spent=spent,
    )


def _is_young(cluster: Cluster, time: int, pod: Pod) -> bool:
    made = pod.created_at
    assert made is not None
    age = time - micros(made - START)
    return pod.uid in cluster.restarted and age < _YOUNG_SECONDS * _SECOND


@dataclass
class _Life:
    uid: str
    made: float
    bound: float | None = None
    ready: float | None = None


def _lives(cluster: Cluster) -> list[_Life]:
    found: dict[str, _Life] = {}
    for time, _, pod in cluster.log:
        if pod is None or pod.labels["app"] == AGENT:
            continue
        seconds = time / _SECOND
        life = found.setdefault(pod.uid, _Life(pod.uid, seconds))
        if life.bound is None and pod.node_name:
            life.bound = seconds
        if life.ready is None and (pod.ready or pod.phase == "Succeeded"):
            life.ready = seconds
    return list(found.values())


def _most_at_once(spans: Sequence[tuple[int, int]]) -> int:
    steps = sorted([(born, 1) for born, _ in spans] + [(ended, -1) for _, ended in spans])
    most = now = 0
    for _, step in steps:
        now += step
        most = max(most, now)
    return most
