"""Shadow mode: reports each purchase of Karpenter beside what Dovetail would have launched."""

from datetime import datetime, timedelta
from typing import Final

from shared.disruption.simulate import with_claims_of
from shared.model.codec import from_plain, to_plain
from shared.model.dialect import owner_kind_of
from shared.model.digest import digest
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.note import Note
from shared.model.provisioner import Provisioner
from shared.model.snapshot import ClusterSnapshot
from shared.nodes.events.node_events import event_on
from shared.nodes.events.recorder import EventRecorder
from shared.packing.problem import PackingSettings
from shared.ports import ClusterPorts, KubernetesEvent, NodeLedger, Severity
from shared.provisioning.savings.purchases import (
    PurchaseComparison,
    Tally,
    compare,
    counts_for_purchase,
    pool_name,
    purchases,
)
from shared.snapshot.volumes import with_volumes

SHADOW_PURCHASE: Final = "ShadowPurchase"
_NOTE: Final = "shadow-purchases"
_KEEP: Final = timedelta(days=30)
# Each comparison takes a plan: further purchases wait for the next minute.
_MOST: Final = 5


def record_shadow_purchases(
    ports: ClusterPorts, settings: PackingSettings, snapshot: ClusterSnapshot, until: datetime
) -> tuple[str, ...]:
    """Record an Event for each purchase that can be compared, and add it to the tally.

    Args:
        snapshot: A snapshot with nodes and bound pods.
        until: After this time no further comparison is started.

    Returns:
        The texts of the Events.
    """
    note = ports.ledger.note(snapshot.cluster, _NOTE)
    tally = _read(note) if note.value else Tally(since=snapshot.taken_at)
    recorded = _recorded(note, snapshot.nodes)
    compared: list[PurchaseComparison] = []
    nodes = list(filter(pool_name, snapshot.nodes))
    for bought in purchases(nodes, snapshot.bound, recorded, snapshot.taken_at)[:_MOST]:
        if ports.clock.now() >= until:
            break
        compared.append(_compare(ports, settings, snapshot, bought))
    if not compared:
        return ()
    for found in compared:
        recorded |= {node.uid for node in found.bought}
        tally = tally.plus(found)
        EventRecorder(ports).record_each(*_events(snapshot, found))
    value = {**to_plain(tally), "told": sorted(map(digest, recorded))}
    kept = Note(name=_NOTE, value=value)
    ports.ledger.put_note(snapshot.cluster, kept, snapshot.taken_at + _KEEP)
    return tuple(found.text for found in compared)


def _compare(
    ports: ClusterPorts,
    settings: PackingSettings,
    snapshot: ClusterSnapshot,
    bought: tuple[Node, ...],
) -> PurchaseComparison:
    names = {node.name for node in bought}
    moving = {
        pod.uid for pod in snapshot.bound if pod.node_name in names and counts_for_purchase(pod)
    }
    asking = with_claims_of(snapshot, moving, lambda asked: with_volumes(ports.cluster, asked))
    return compare(asking, bought, settings)


def has_purchases(
    ports: ClusterPorts, nodes: tuple[Node, ...], bound: tuple[Pod, ...], now: datetime
) -> bool:
    """Return whether a purchase of Karpenter can be compared now that was not recorded yet."""
    bought = list(filter(pool_name, nodes))
    if not bought:
        return False
    recorded = _recorded(ports.ledger.note(ports.cluster.name, _NOTE), nodes)
    return bool(purchases(bought, bound, recorded, now))


def tally_of(ledger: NodeLedger, cluster: str) -> Tally | None:
    """Return the tally of the compared purchases, None before the first."""
    note = ledger.note(cluster, _NOTE)
    return _read(note) if note.value else None


def _read(note: Note) -> Tally:
    return from_plain(Tally, note.value)


def _recorded(note: Note, nodes: tuple[Node, ...]) -> frozenset[str]:
    """Return the UIDs of the nodes whose purchase was recorded, without those that are gone."""
    marks = frozenset(note.value.get("told", ()))
    return frozenset(node.uid for node in nodes if digest(node.uid) in marks)


def _events(snapshot: ClusterSnapshot, found: PurchaseComparison) -> list[KubernetesEvent]:
    """Return an Event on each NodePool of a purchase; on a Node if its NodePool is invalid."""
    subjects: dict[str, Provisioner | Node] = {}
    for node in found.bought:
        owner = next((owner for owner in snapshot.provisioners if _is_of(node, owner)), None)
        subjects.setdefault(pool_name(node), owner or node)
    return [
        event_on(subject, SHADOW_PURCHASE, found.text, severity=Severity.NORMAL)
        for _, subject in sorted(subjects.items(), key=lambda entry: entry[0])
    ]


def _is_of(node: Node, owner: Provisioner) -> bool:
    kind = owner_kind_of(node.labels)
    return owner.kind == kind and owner.name == pool_name(node)
