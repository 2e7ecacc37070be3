"""What the nodes of each NodePool have together, and whether its instances join: its status."""

from collections.abc import Iterable, Sequence
from typing import Final

from shared.disruption.drift import shape_hash
from shared.launching.registration_health import JOINS, registers
from shared.model import labels as keys
from shared.model.dialect import OwnerKind
from shared.model.kubernetes.nodes import Node
from shared.model.provisioner import InvalidProvisioner, Provisioner
from shared.model.resources import Resources
from shared.ports import ClusterPorts, PoolStatus

_POOL: Final = OwnerKind.NODE_POOL


def write_pool_statuses(
    ports: ClusterPorts,
    nodes: Sequence[Node],
    usable: Iterable[Provisioner],
    unusable: Iterable[InvalidProvisioner],
) -> None:
    """Write into the status of each NodePool how many nodes it has, and of which size.

    Nothing is written that stands there already.
    """
    shapes = {owner.name: shape_hash(owner) for owner in usable if owner.kind == _POOL}
    names = {*shapes, *(owner.name for owner in unusable if owner.kind == _POOL)}
    if not names:
        return
    kept = {memo.name: memo.value for memo in ports.ledger.memos(ports.cluster.name, JOINS)}
    for name in sorted(names):
        own = [node for node in nodes if node.is_ours and node.labels.get(keys.NODE_POOL) == name]
        status = PoolStatus(
            nodes=len(own),
            resources=Resources.total(node.capacity for node in own),
            registers=registers(kept.get(f"{JOINS}{name}", {}), shapes.get(name, "")),
        )
        ports.cluster.set_pool_status(name, status)
