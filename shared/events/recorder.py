"""Records Kubernetes Events, each once in some minutes."""

import logging
from collections.abc import Iterable, Sequence
from typing import Final

from shared.events.node_events import Machine, terminated_group
from shared.model.digest import digest
from shared.model.errors import AutoscalerError
from shared.ports import KubernetesEvent, NodePorts

_LOG: Final = logging.getLogger(__name__)


class EventRecorder:
    """Records the Events of one cluster.

    Two invocations that decide the same, by the queue and by the fast lane, record it once.
    """

    def __init__(self, ports: NodePorts) -> None:
        """Prepare for one cluster."""
        self._ports = ports

    def record(self, kube_events: Iterable[KubernetesEvent]) -> int:
        """Write those Events that were not written lately; return how many that were."""
        marked = {_mark(kube_event): kube_event for kube_event in kube_events}
        if not marked:
            return 0
        name, now = self._ports.cluster.name, self._ports.clock.now()
        told = self._ports.ledger.recently_recorded(name, now)
        fresh = {mark: event for mark, event in marked.items() if mark not in told}
        if fresh:
            self._ports.cluster.record_events(list(fresh.values()))
            self._ports.ledger.note_recorded(name, frozenset(fresh), now)
        return len(fresh)

    def record_each(self, *kube_events: KubernetesEvent) -> None:
        """Write Events about steps that happen once, without looking for earlier ones."""
        if kube_events:
            self._ports.cluster.record_events(kube_events)

    def terminated(self, machines: Sequence[Machine]) -> None:
        """Tell Provisioners which of their nodes EC2 was asked to terminate, in one Event each.

        Nothing is told while the API server cannot be asked: machines end all the same.
        """
        if not machines:
            return
        try:
            provisioners, _ = self._ports.cluster.provisioners()
        except AutoscalerError as error:
            _LOG.warning("termination of %d nodes is not told: %s", len(machines), error)
            return
        self.record_each(*terminated_group(machines, {owner.name: owner for owner in provisioners}))


def _mark(event: KubernetesEvent) -> str:
    return digest(event.kind, event.uid, event.namespace, event.name, event.reason, event.message)
