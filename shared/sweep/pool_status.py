"""What the nodes of each Provisioner and NodePool have together and cost: its status."""

from collections.abc import Sequence
from typing import Final

from shared.disruption.drift import shape_hash
from shared.events.node_events import first_names, price_of
from shared.launching.registration_health import JOINS, registers
from shared.model.dialect import BY_KIND, OwnerKind
from shared.model.kubernetes.nodes import Node
from shared.model.provisioner import InvalidProvisioner, Provisioner
from shared.model.resources import Resources
from shared.node_templates.status_writes import write_status
from shared.ports import ClusterPorts, PoolStatus

_POOL: Final = OwnerKind.NODE_POOL


def write_pool_statuses(
    ports: ClusterPorts,
    nodes: Sequence[Node],
    usable: Sequence[Provisioner],
    unusable: Sequence[InvalidProvisioner],
) -> None:
    """Write into the status of each owner how many nodes it has, of which size and price.

    Also which have not been Ready for five minutes, and of a NodePool whether its instances join.
    Nothing is written that stands there already.
    """
    shapes = {owner.name: shape_hash(owner) for owner in usable if owner.kind == _POOL}
    owners = {(owner.kind, owner.name) for owner in usable}
    owners |= {(owner.kind, owner.name) for owner in unusable}
    now = ports.clock.now()
    pools = any(kind == _POOL for kind, _ in owners)
    memos = ports.ledger.memos(ports.cluster.name, JOINS) if pools else ()
    kept = {memo.name: memo.value for memo in memos}
    for kind, name in sorted(owners):
        label = BY_KIND[kind].owner_label
        own = [node for node in nodes if node.is_ours and node.labels.get(label) == name]
        status = PoolStatus(
            nodes=len(own),
            resources=Resources.total(node.capacity for node in own),
            unhealthy=first_names(node.name for node in own if node.is_unhealthy(now)),
            registers=registers(kept.get(f"{JOINS}{name}", {}), shapes.get(name, "")),
            price_micros_per_hour=sum(price_of(node) for node in own),
        )
        write_status(ports.cluster.set_pool_status, name, status, kind)
