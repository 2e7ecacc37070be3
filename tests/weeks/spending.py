"""What the money of a trace goes for."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.resources import Resources
from tests.weeks.cluster import AGENT

_SHARED: Final = ("cpu", "memory", "nvidia.com/gpu")
_MICROS_PER_DOLLAR_HOUR: Final = 1e6 * 1e6 * 3600


@dataclass
class Spending:
    """Dollars of instances, by what they were paid for.

    Attributes:
        booting: Until the node is Ready for the first time, or its end.
        waiting: Ready, before its first pod.
        left: After its last pod.
        unused: With pods, for what these leave unused of the resource that they need most of.
        used: For what they need.
    """

    booting: float = 0
    waiting: float = 0
    left: float = 0
    unused: float = 0
    used: float = 0

    @property
    def total(self) -> float:
        """Return all dollars."""
        return self.booting + self.waiting + self.left + self.unused + self.used


@dataclass(frozen=True)
class Life:
    """One instance: its node, price in micro-dollars per hour, and times in microseconds."""

    node: str
    micros_per_hour: int
    born: int
    ended: int


def spending_of(
    lives: Iterable[Life],
    nodes: Iterable[tuple[int, Node | None, Node | None]],
    pods: Iterable[tuple[int, Pod | None, Pod | None]],
) -> Spending:
    """Return what instances were paid for.

    Args:
        lives: All instances.
        nodes, pods: What happened to Nodes and pods: microsecond, former, new.
    """
    ready: dict[str, int] = {}
    room: dict[str, Resources] = {}
    for time, _, node in nodes:
        if node is not None and node.ready:
            ready.setdefault(node.name, time)
            room[node.name] = node.allocatable
    changes: dict[str, list[tuple[int, int, Pod]]] = {}
    for time, old, new in pods:
        before, after = (_node_of(pod) for pod in (old, new))
        if before != after:
            for name, step, pod in ((before, -1, old), (after, 1, new)):
                if name and pod is not None:
                    changes.setdefault(name, []).append((time, step, pod))
    spent = Spending()
    for life in lives:
        mine = changes.get(life.node, [])
        _add(spent, life, ready.get(life.node, life.ended), room.get(life.node), mine)
    return spent


def _node_of(pod: Pod | None) -> str:
    """Return where a pod takes room, empty for none and for agents."""
    if pod is None or pod.is_terminal or pod.labels["app"] == AGENT:
        return ""
    return pod.node_name


def _add(
    spent: Spending,
    life: Life,
    ready: int,
    room: Resources | None,
    changes: list[tuple[int, int, Pod]],
) -> None:
    def paid(begun: int, ended: int) -> float:
        whole = min(ended, life.ended) - max(begun, life.born)
        return max(whole, 0) * life.micros_per_hour / _MICROS_PER_DOLLAR_HOUR

    spent.booting += paid(life.born, ready)
    if not changes or room is None:
        spent.waiting += paid(ready, life.ended)
        return
    spent.waiting += paid(ready, changes[0][0])
    there, taken = 0, dict.fromkeys(_SHARED, 0)
    for number, (time, step, pod) in enumerate(changes):
        there += step
        for name in _SHARED:
            taken[name] += step * pod.scheduling.requests[name]
        following = changes[number + 1][0] if number + 1 < len(changes) else life.ended
        dollars = paid(max(time, ready), following)
        if not there:
            spent.left += dollars
            continue
        share = max(taken[name] / room[name] for name in _SHARED if room[name])
        spent.used += dollars * share
        spent.unused += dollars * (1 - share)
