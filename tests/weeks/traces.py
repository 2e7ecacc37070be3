"""Traces: what the users of a cluster want, second by second, whatever autoscaler it has."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.simulation.cluster.workloads import JOB
from tests.weeks.workloads import Workload

HOUR = 3600


class Change(NamedTuple):
    """A user changes a workload; the first change makes it.

    Attributes:
        replicas: Wanted from now on.
        rolls: Whether its template changes.
    """

    second: float
    workload: str
    replicas: int
    rolls: bool = False


@dataclass(frozen=True)
class Trace:
    """What is wanted of a cluster.

    Attributes:
        families: Of the instance types that its NodePool allows.
        changes: In order of time.
        said: How it was drawn.
    """

    name: str
    hours: float
    families: tuple[str, ...]
    workloads: tuple[Workload, ...]
    changes: tuple[Change, ...]
    said: str

    @property
    def seconds(self) -> float:
        """How long it lasts."""
        return self.hours * HOUR

    def fresh(self) -> dict[str, Workload]:
        """Return its workloads by name, as they are before anything happens."""
        return {workload.name: dataclasses.replace(workload) for workload in self.workloads}

    def wanted(self) -> Iterator[tuple[float, dict[str, int]]]:
        """Yield, from each second on, how many pods of each workload are wanted.

        A Job's pods are wanted for as long as they run, from the second they are asked for.
        """
        known = {workload.name: workload for workload in self.workloads}
        events: list[tuple[float, str, int]] = []
        before: dict[str, int] = {}
        for change in self.changes:
            more = change.replicas - before.get(change.workload, 0)
            before[change.workload] = change.replicas
            events.append((change.second, change.workload, more))
            workload = known[change.workload]
            if workload.kind == JOB:
                events.append((change.second + workload.seconds, change.workload, -more))
        now: dict[str, int] = {}
        for second, name, more in sorted(events):
            now[name] = now.get(name, 0) + more
            yield second, dict(now)
