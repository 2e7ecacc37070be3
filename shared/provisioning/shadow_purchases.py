"""In shadow mode: each purchase of Karpenter is told beside what Dovetail would have bought."""

import dataclasses
from datetime import datetime, timedelta
from typing import Any, Final

from shared.disruption.simulation import with_claims_of
from shared.events.node_events import event_on
from shared.events.recorder import EventRecorder
from shared.model import labels as keys
from shared.model.dialect import OwnerKind
from shared.model.digest import digest
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.memo import Memo
from shared.model.provisioner import Provisioner
from shared.model.snapshot import ClusterSnapshot
from shared.packing.problem import PackingSettings
from shared.ports import ClusterPorts, KubernetesEvent, NodeLedger, Severity
from shared.savings.purchases import Comparison, Tally, compare, is_for, pool_name, purchases
from shared.snapshot.volumes import with_volumes

SHADOW_PURCHASE: Final = "ShadowPurchase"
_MEMO: Final = "shadow-purchases"
_KEEP: Final = timedelta(days=30)
# Each takes a plan: more at once wait for the next minute.
_MOST: Final = 5


class ShadowPurchases:
    """Compares purchases of one cluster, under its lease."""

    def __init__(self, ports: ClusterPorts, settings: PackingSettings) -> None:
        self._ports = ports
        self._settings = settings
        self._recorder = EventRecorder(ports)

    def tell(self, snapshot: ClusterSnapshot, until: datetime) -> tuple[str, ...]:
        """Record an Event for each purchase that can be compared, and add it to the sums.

        Args:
            snapshot: With nodes and bound pods.
            until: When no further purchase is begun with.

        Returns:
            The texts of the Events.
        """
        memo = self._ports.ledger.memo(snapshot.cluster, _MEMO)
        tally = _read(memo) if memo.value else Tally(since=snapshot.taken_at)
        told = _told(memo, snapshot.nodes)
        compared: list[Comparison] = []
        for bought in purchases(snapshot.nodes, snapshot.bound, told, snapshot.taken_at)[:_MOST]:
            if self._ports.clock.now() >= until:
                break
            compared.append(self._compare(snapshot, bought))
        if not compared:
            return ()
        for found in compared:
            told |= {node.uid for node in found.bought}
            tally = tally.plus(found)
            self._recorder.record_each(*_events(snapshot, found))
        value = {**dataclasses.asdict(tally), "since": tally.since.isoformat()}
        value["told"] = sorted(map(digest, told))
        kept = Memo(name=_MEMO, value=value)
        self._ports.ledger.put_memo(snapshot.cluster, kept, snapshot.taken_at + _KEEP)
        return tuple(found.text for found in compared)

    def _compare(self, snapshot: ClusterSnapshot, bought: tuple[Node, ...]) -> Comparison:
        names = {node.name for node in bought}
        moving = {pod.uid for pod in snapshot.bound if pod.node_name in names and is_for(pod)}
        asking = with_claims_of(
            snapshot, moving, lambda asked: with_volumes(self._ports.cluster, asked)
        )
        return compare(asking, bought, self._settings)


def has_purchases(
    ports: ClusterPorts, nodes: tuple[Node, ...], bound: tuple[Pod, ...], now: datetime
) -> bool:
    """Return whether a purchase of Karpenter can be compared now that was not told yet."""
    if not any(map(pool_name, nodes)):
        return False
    told = _told(ports.ledger.memo(ports.cluster.name, _MEMO), nodes)
    return bool(purchases(nodes, bound, told, now))


def tally_of(ledger: NodeLedger, cluster: str) -> Tally | None:
    """Return the sums over the purchases that were compared, None before the first."""
    memo = ledger.memo(cluster, _MEMO)
    return _read(memo) if memo.value else None


def _read(memo: Memo) -> Tally:
    sums: dict[str, Any] = {name: n for name, n in memo.value.items() if name != "told"}
    return Tally(**{**sums, "since": datetime.fromisoformat(sums["since"])})


def _told(memo: Memo, nodes: tuple[Node, ...]) -> frozenset[str]:
    """Return the uids of the nodes whose purchase was told; those that are gone are forgotten."""
    marks = frozenset(memo.value.get("told", ()))
    return frozenset(node.uid for node in nodes if digest(node.uid) in marks)


def _events(snapshot: ClusterSnapshot, found: Comparison) -> list[KubernetesEvent]:
    """Return an Event on each NodePool of a purchase; on a Node whose NodePool cannot be used."""
    subjects: dict[str, Provisioner | Node] = {}
    for node in found.bought:
        owner = next((owner for owner in snapshot.provisioners if _is_of(node, owner)), None)
        subjects.setdefault(pool_name(node), owner or node)
    return [
        event_on(subject, SHADOW_PURCHASE, found.text, severity=Severity.NORMAL)
        for _, subject in sorted(subjects.items(), key=lambda entry: entry[0])
    ]


def _is_of(node: Node, owner: Provisioner) -> bool:
    kind = OwnerKind.NODE_POOL if keys.NODE_POOL in node.labels else OwnerKind.PROVISIONER
    return owner.kind == kind and owner.name == pool_name(node)
