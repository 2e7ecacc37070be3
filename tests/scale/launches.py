"""Many clusters launch at the same moment: how they share the account's rate of CreateFleet.

Services and ledger are real, clusters and EC2 in memory. Only waits count: for the queue, for a
request token and for CreateFleet. The bars are those of shared tokens, which cost no CPU time.
"""

import heapq
import itertools
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from shared.aws.ledger.ledger import DynamoLedger
from shared.model import labels as keys
from shared.model.kubernetes.pods import Pod
from shared.model.policy import LaunchPolicy
from shared.model.requirements import Requirement, Requirements
from shared.packing.problem import PackingSettings
from shared.ports import ClusterPorts
from shared.provisioning.provision import Provisioning
from tests.builders import CATALOG, ZONES, pod, provisioner
from tests.fakes.catalog import FakeCatalog
from tests.fakes.clock import FakeClock
from tests.fakes.cloud import FakeCloud
from tests.fakes.cluster import FakeCluster
from tests.fakes.decisions import FakeDecisions
from tests.fakes.outbox import FakeOutbox
from tests.scale.table import CountedTable
from tests.scale.virtual import CREATE_FLEET, WAKE_WINDOW

CLUSTERS: Final = 100
NEIGHBOURS: Final = 20
MANY_GROUPS: Final = 9
_BURST: Final = 5
_TIMEOUT: Final = timedelta(seconds=120)
_LONGEST: Final = timedelta(minutes=15)


def launches(per_second: int) -> Mapping[str, float]:
    """Let each of a hundred clusters need three launch groups at the same moment.

    Args:
        per_second: Request tokens of the account.
    """
    run = _Launches([3] * CLUSTERS, per_second)
    run.play()
    limit = (3 * CLUSTERS - _BURST) / per_second
    return {
        "median launched, s": statistics.median(run.done),
        "last launched, s": max(run.done),
        "last, of the token limit": max(run.done) / (limit + _overhead()),
        "readings of a cluster": run.readings / CLUSTERS,
        "messages of a cluster": run.messages / CLUSTERS,
    }


def beside(per_second: int) -> Mapping[str, float]:
    """Let twenty clusters need one launch each, alone and beside one that needs nine.

    That one is served first, and first again whenever it is due with others.
    """
    alone, together = (
        _Launches([*large, *[1] * NEIGHBOURS], per_second) for large in ((), (MANY_GROUPS,))
    )
    alone.play()
    together.play()
    before, after = max(alone.done), max(together.done[1:])
    return {
        "last of the others alone, s": before,
        "last of the others beside it, s": after,
        "beside it, of alone": after / before,
    }


def _overhead() -> float:
    return (WAKE_WINDOW + CREATE_FLEET).total_seconds()


class _Launches:
    """Clusters of one account, and the queue that wakes provision for each.

    Args:
        groups: How many launch groups each cluster needs.

    Attributes:
        done: For each cluster the seconds until its last launch; infinite if it lacks some.
        readings: Whole readings of clusters, all together.
        messages: Sent to the queue.
    """

    def __init__(self, groups: Sequence[int], per_second: int) -> None:
        self._groups = groups
        self.done = [math.inf] * len(groups)
        self._clock = FakeClock()
        self._began = self._clock.now()
        session: Any = CountedTable()
        self._ledger = DynamoLedger(
            session, table="ledger", clock=self._clock, burst=_BURST, per_second=per_second
        )
        self._ports = [self._made(number, needed) for number, needed in enumerate(groups)]
        self._plans = itertools.count(1)
        self._due = [(self._began + WAKE_WINDOW, number) for number in range(len(groups))]
        self.readings = self.messages = 0

    def play(self) -> None:
        """Deliver messages until all clusters have launched everything."""
        while math.inf in self.done and self._clock.now() - self._began < _LONGEST:
            moment, number = heapq.heappop(self._due)
            self._clock.advance(moment - self._clock.now())
            self._woken(number)

    def _woken(self, number: int) -> None:
        ports, now = self._ports[number], self._clock.now()
        cloud, outbox, cluster = ports.cloud, ports.outbox, ports.cluster
        assert isinstance(cloud, FakeCloud)
        assert isinstance(outbox, FakeOutbox)
        assert isinstance(cluster, FakeCluster)
        reads = cluster.reads.count("bound_pods")
        service = Provisioning(
            ports, LaunchPolicy(), PackingSettings(), lambda: f"plan-{next(self._plans):05}"
        )
        service.run("holder", now + _TIMEOUT, wait_for_batch=False)
        self.readings += cluster.reads.count("bound_pods") - reads
        if len(cloud.fleets) >= self._groups[number] and self.done[number] == math.inf:
            self.done[number] = (now - self._began + CREATE_FLEET).total_seconds()
        for _, delay in outbox.wakes:
            self.messages += 1
            # Messages are delayed by whole seconds.
            whole = timedelta(seconds=-(-delay // timedelta(seconds=1)))
            heapq.heappush(self._due, (now + whole + WAKE_WINDOW, number))
        outbox.wakes.clear()

    def _made(self, number: int, groups: int) -> ClusterPorts:
        name = f"cluster-{number:03}"
        cluster = FakeCluster(name, now=self._began)
        cluster.add(provisioner(), *_waiting(groups))
        return ClusterPorts(
            cluster=cluster,
            cloud=FakeCloud(cluster=name, clock=self._clock),
            catalog=FakeCatalog(CATALOG),
            ledger=self._ledger,
            decisions=FakeDecisions(),
            outbox=FakeOutbox(),
            clock=self._clock,
            instance_profile="nodes",
        )


def _waiting(groups: int) -> Iterator[Pod]:
    """Yield a pod for each launch group: of a zone and an instance type of its own."""
    types = [known.name for known in CATALOG if known.name.startswith("m5.")]
    for name, zone in itertools.islice(itertools.product(types, ZONES), groups):
        wanted = [
            Requirement.parse(keys.INSTANCE_TYPE, "In", [name]),
            Requirement.parse(keys.ZONE, "In", [zone]),
        ]
        yield pod(f"{name}-{zone}", node_selector=Requirements.of(wanted))
