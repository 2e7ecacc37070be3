"""Records Kubernetes Events, each once in ten minutes, or once an hour."""

import itertools
from collections.abc import Iterable

from shared.model.digest import digest
from shared.nodes.events.recorded import TEN_MINUTES, Memory, recently_recorded, save_recorded
from shared.ports import KubernetesEvent, NodePorts


class EventRecorder:
    """Records the Events of one cluster.

    If two invocations decide the same, by the queue and by the fast lane, it is recorded once.
    """

    def __init__(self, ports: NodePorts) -> None:
        self._ports = ports

    def record(
        self,
        kube_events: Iterable[KubernetesEvent],
        memory: Memory = TEN_MINUTES,
        most: int | None = None,
    ) -> int:
        """Write the Events that were not written lately; return their number.

        Args:
            most: So many are written at most, the others by later calls; None for no limit.
        """
        marked = {_mark(kube_event): kube_event for kube_event in kube_events}
        if not marked:
            return 0
        name, now = self._ports.cluster.name, self._ports.clock.now()
        recorded = recently_recorded(self._ports.ledger, name, now, memory)
        unwritten = ((mark, event) for mark, event in marked.items() if mark not in recorded)
        fresh = dict(itertools.islice(unwritten, most))
        if fresh:
            self._ports.cluster.record_events(list(fresh.values()))
            save_recorded(self._ports.ledger, name, frozenset(fresh), now, memory)
        return len(fresh)

    def record_each(self, *kube_events: KubernetesEvent) -> None:
        """Write Events about steps that happen once, without a check for earlier ones."""
        if kube_events:
            self._ports.cluster.record_events(kube_events)


def _mark(event: KubernetesEvent) -> str:
    return digest(event.kind, event.uid, event.namespace, event.name, event.reason, event.message)
