"""The status of each Provisioner and NodePool: the total resources and price of its nodes."""

from collections.abc import Sequence
from typing import Final

from shared.disruption.drift import shape_hash
from shared.model.dialect import BY_KIND, OwnerKind
from shared.model.dollars_and_counts import first_names
from shared.model.kubernetes.nodes import Node
from shared.model.provisioner import InvalidProvisioner, Provisioner
from shared.model.resources import Resources
from shared.nodes.events.node_events import price_of
from shared.nodes.events.status_writes import write_status
from shared.nodes.launch.refusals.registration_health import REGISTRATION_NOTES, registers
from shared.ports import ClusterPorts, PoolStatus

_POOL: Final = OwnerKind.NODE_POOL


def write_pool_statuses(
    ports: ClusterPorts,
    nodes: Sequence[Node],
    usable: Sequence[Provisioner],
    unusable: Sequence[InvalidProvisioner],
) -> None:
    """Write each owner's status: the number of its nodes, their total resources and price.

    Also which nodes have not been Ready for five minutes, and whether a NodePool's instances
    register. A status that has not changed is not written.
    """
    shapes = {owner.name: shape_hash(owner) for owner in usable if owner.kind == _POOL}
    owners = {(owner.kind, owner.name) for owner in usable}
    owners |= {(owner.kind, owner.name) for owner in unusable}
    now = ports.clock.now()
    has_node_pools = any(kind == _POOL for kind, _ in owners)
    notes = ports.ledger.notes(ports.cluster.name, REGISTRATION_NOTES) if has_node_pools else ()
    kept = {note.name: note.value for note in notes}
    for kind, name in sorted(owners):
        label = BY_KIND[kind].owner_label
        own = [node for node in nodes if node.is_ours and node.labels.get(label) == name]
        status = PoolStatus(
            nodes=len(own),
            resources=Resources.total(node.capacity for node in own),
            unhealthy=first_names(node.name for node in own if node.is_unhealthy(now)),
            registers=registers(kept.get(f"{REGISTRATION_NOTES}{name}", {}), shapes.get(name, "")),
            price_micros_per_hour=sum(price_of(node) for node in own),
        )
        write_status(ports.cluster.set_pool_status, name, status, kind)
