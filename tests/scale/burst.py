"""Many pods wait at once in an empty cluster: how long until the last is bound."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from shared.aws.ledger.ledger import DynamoLedger
from shared.ports import Subnet
from tests.scale import manifests
from tests.scale.apiserver import large_cluster
from tests.scale.virtual import RUNNING, SHOWN, WAKE_WINDOW
from tests.scale.world import LargeCluster

# The forwarder tells of pods that are still pending so often: see functions/forwarder/observer.py.
_REMINDER: Final = timedelta(seconds=60)
_LONGEST: Final = timedelta(minutes=45)


def burst(pods: int) -> Mapping[str, float]:
    """Let so many pods wait at once, and wake provision as queue and forwarder do.

    A second batch of the burst's events and all reminders mark the lease while provision works.
    """
    with large_cluster(0, waiting=pods) as url:
        run = _Burst(url, pods)
        run.play()
        spent = run.cluster.clock
        return {
            "all bound, s": run.took,
            "invocations": run.invocations,
            "longest invocation, s": run.longest,
            "nodes": len(run.cluster.cloud.ec2.instances),
            "CPU s": run.cpu_seconds,
            "calls of the ledger": spent.calls["ledger"],
            "RCU": run.cluster.table.reads.total(),
            "WCU": run.cluster.table.writes.total(),
        }


class _Burst:
    """One burst in virtual time.

    Attributes:
        took: Seconds from the first event to the last binding; infinite when some pod has none.
        invocations: Of provision.
        longest: Seconds of the longest of them.
        cpu_seconds: Of provision.
    """

    def __init__(self, url: str, pods: int) -> None:
        self.cluster = LargeCluster(url, "provision")
        self.cluster.cloud.delays.shown = SHOWN
        self.cluster.cloud.delays.running = RUNNING
        self.cluster.cloud.subnets = tuple(
            Subnet(subnet_id=f"subnet-{zone}", zone=zone, free_addresses=60_000)
            for zone in manifests.ZONES
        )
        self._pods = pods
        self._began = self.cluster.clock.now()
        self.took = float("inf")
        self.invocations = 0
        self.longest = self.cpu_seconds = 0.0

    def play(self) -> None:
        """Wake provision until all are bound, or for so long."""
        clock, api = self.cluster.clock, self.cluster.timed_api
        self._remind(self._began + WAKE_WINDOW)
        due = self._began
        while len(api.bindings) < self._pods and due - self._began < _LONGEST:
            clock.sleep(max(due - clock.now(), timedelta(0)) + WAKE_WINDOW)
            self.cluster.outbox.wakes.clear()
            spent = self.cluster.provision()
            self.invocations += 1
            self.cpu_seconds += spent.cpu_seconds
            self.longest = max(self.longest, spent.took.total_seconds())
            due = clock.now() + min(
                (delay for _, delay in self.cluster.outbox.wakes), default=_REMINDER
            )
        if len(api.bindings) == self._pods:
            self.took = (max(api.bindings.values()) - self._began).total_seconds()

    def _remind(self, moment: datetime) -> None:
        """Let another invocation find the lease taken then, and each minute from then on."""

        def wake() -> None:
            ledger = self.cluster.ports.ledger
            assert isinstance(ledger, DynamoLedger)
            lease = ledger.acquire(manifests.CLUSTER, "reminded", moment)
            if lease is not None:
                ledger.release(lease)
            self._remind(moment + _REMINDER)

        self.cluster.clock.at(moment, wake)
