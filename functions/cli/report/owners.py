"""What each pool may launch: as it is declared, or as its nodes show."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from shared.model import labels as keys
from shared.model.dialect import V1ALPHA5, OwnerKind
from shared.model.ec2.instance_types import CapacityType
from shared.model.kubernetes.nodes import Node
from shared.model.provisioner import Provisioner
from shared.model.requirements import Requirement, Requirements
from shared.model.snapshot import ClusterSnapshot, ProvisionerSite
from shared.model.values import replace
from shared.planning.rules.provisioner_offerings import never_with_image
from shared.provisioning.savings.pools import (
    NODE_UNIQUE_LABELS,
    Pool,
    PoolKind,
    capacity_type_of,
    pool_of,
)

_OWNER_KINDS: Final = {
    PoolKind.NODE_POOL: OwnerKind.NODE_POOL,
    PoolKind.AUTO_MODE: OwnerKind.NODE_POOL,
}
# Requirements that choose among instance types for their size, age or price, not for a device.
_TYPE_KEYS: Final = frozenset(
    {
        keys.INSTANCE_TYPE,
        keys.INSTANCE_FAMILY,
        keys.INSTANCE_CATEGORY,
        keys.INSTANCE_GENERATION,
        keys.INSTANCE_SIZE,
        keys.INSTANCE_CPU,
        keys.INSTANCE_MEMORY,
    }
)
_AMD64: Final = "amd64"
_ARM64: Final = "arm64"
_GENERAL: Final = frozenset({"a", "c", "m", "r", "t"})
_DEVICES: Final = frozenset(
    {
        keys.INSTANCE_GPU_NAME,
        keys.INSTANCE_GPU_MANUFACTURER,
        keys.INSTANCE_GPU_COUNT,
        keys.INSTANCE_GPU_MEMORY,
        keys.INSTANCE_ACCELERATOR_NAME,
        keys.INSTANCE_ACCELERATOR_MANUFACTURER,
        keys.INSTANCE_ACCELERATOR_COUNT,
        keys.INSTANCE_LOCAL_NVME,
    }
)


def owners_of(
    snapshot: ClusterSnapshot, pools: Mapping[Pool, Sequence[Node]]
) -> Mapping[Pool, Provisioner]:
    """Return for each pool what it may launch, as it is declared.

    A pool that nothing in the snapshot declares, as every node group, may launch the types, zones
    and capacity types of its nodes, with the labels and taints that all of them have, and is
    consolidated.

    Args:
        pools: The nodes of each pool, at least one where nothing declares it.
    """
    declared = {Pool(PoolKind(owner.kind), owner.name): owner for owner in snapshot.provisioners}
    return {
        pool: declared.get(pool) or _owner_from_nodes(pool, nodes) for pool, nodes in pools.items()
    }


def site_of(
    pool: Pool, owner: Provisioner, nodes: Sequence[Node], snapshot: ClusterSnapshot
) -> ProvisionerSite:
    """Return where a pool's nodes can be launched: in the zones in which the cluster has nodes.

    A pool that is only known by its nodes keeps to their zones by its requirements. The instance
    types of its nodes count as having an image.
    """
    shown = {node.labels.get(keys.INSTANCE_TYPE, "") for node in nodes}
    zones = {node.labels.get(keys.ZONE, "") for node in (*nodes, *snapshot.nodes)}
    known = {
        offering.zone
        for instance_type in snapshot.instance_types
        for offering in instance_type.offerings
    }
    return ProvisionerSite(
        provisioner=owner.name,
        zones=tuple(sorted(zones & known)),
        reason=f"{pool} has no node in a zone of the catalogue",
        without_image=never_with_image(owner.template, snapshot.instance_types) - shown,
    )


def within_architectures(owner: Provisioner, nodes: Sequence[Node]) -> Provisioner:
    """Return a pool that launches the architectures that its nodes have, unless it names some.

    A cluster does not say of which architectures an image is: pods may fail to start on another.
    """
    shown = {node.labels[keys.ARCH] for node in nodes if keys.ARCH in node.labels}
    if owner.requirements.get(keys.ARCH) is not None or not shown:
        return owner
    named = Requirements.of([Requirement.of(keys.ARCH, *shown)])
    return replace(owner, requirements=owner.requirements.merge(named))


def with_arm64(owner: Provisioner, snapshot: ClusterSnapshot) -> Provisioner:
    """Return a pool that may launch arm64 instances besides; unchanged if that adds no type."""
    asked = owner.requirements.get(keys.ARCH)
    if asked is None or asked.allows(_ARM64) or keys.ARCH in owner.labels:
        return owner
    of_type = _of_type(owner)
    if not any(
        found.labels.get(keys.ARCH) == _ARM64 and of_type.allow_labels(found.labels)
        for found in snapshot.instance_types
    ):
        return owner
    kept = [item for item in owner.requirements if item.key != keys.ARCH]
    both = Requirement.of(keys.ARCH, _AMD64, _ARM64)
    return replace(owner, requirements=Requirements.of((*kept, both)))


def with_other_types(owner: Provisioner, snapshot: ClusterSnapshot) -> Provisioner:
    """Return a pool that may launch every c, m and r type since the third generation.

    Architecture, zones, capacity types, labels and taints stay as they are. A pool for devices, or
    of types that are not general, stays as it is; so does one that may launch any type already.
    """
    if any(requirement.key in _DEVICES for requirement in owner.requirements):
        return owner
    if not _gains_types(owner, snapshot):
        return owner
    kept = [item for item in owner.requirements if item.key not in _TYPE_KEYS]
    return replace(
        owner, requirements=Requirements.of((*kept, *V1ALPHA5.default_type_requirements))
    )


def with_spot(owner: Provisioner) -> Provisioner:
    """Return a pool that may launch spot instances beside on-demand ones."""
    kept = [item for item in owner.requirements if item.key != keys.CAPACITY_TYPE]
    both = Requirement.of(keys.CAPACITY_TYPE, *(how.value for how in CapacityType))
    return replace(owner, requirements=Requirements.of((*kept, both)))


def _owner_from_nodes(pool: Pool, nodes: Sequence[Node]) -> Provisioner:
    """Return an owner that may launch what the nodes of a pool show."""
    places = {
        keys.INSTANCE_TYPE: {node.labels.get(keys.INSTANCE_TYPE, "") for node in nodes},
        keys.ZONE: {node.labels.get(keys.ZONE, "") for node in nodes},
        keys.CAPACITY_TYPE: {capacity_type_of(node).value for node in nodes},
        keys.ARCH: {node.labels.get(keys.ARCH, "") for node in nodes},
    }
    labels = {
        key: value
        for key, value in _common(nodes).items()
        if key not in keys.WELL_KNOWN and key not in keys.ALIASES and key not in NODE_UNIQUE_LABELS
    }
    taints = [taint for taint in nodes[0].taints if taint.key not in keys.EPHEMERAL_TAINTS]
    return Provisioner(
        name=pool.name or "none",
        kind=_OWNER_KINDS.get(pool.kind, OwnerKind.PROVISIONER),
        consolidation=True,
        labels=labels,
        requirements=Requirements.of(
            Requirement.of(key, *values) for key, values in places.items()
        ).merge(Requirements.from_labels(labels)),
        taints=tuple(
            taint
            for taint in taints
            if taint.key != keys.UNSCHEDULABLE_TAINT and all(taint in node.taints for node in nodes)
        ),
    )


def _common(nodes: Sequence[Node]) -> Mapping[str, str]:
    first = nodes[0].labels
    return {
        key: value
        for key, value in first.items()
        if all(node.labels.get(key) == value for node in nodes)
    }


def _gains_types(owner: Provisioner, snapshot: ClusterSnapshot) -> bool:
    """Return whether a pool launches only general types, and not all that it could."""
    of_type = _of_type(owner)
    every = Requirements.of(V1ALPHA5.default_type_requirements)
    launches = [found for found in snapshot.instance_types if of_type.allow_labels(found.labels)]
    general = {found.labels.get(keys.INSTANCE_CATEGORY, "") for found in launches} <= _GENERAL
    gained = any(
        every.allow_labels(found.labels) and not of_type.allow_labels(found.labels)
        for found in snapshot.instance_types
    )
    return bool(launches) and general and gained


def _of_type(owner: Provisioner) -> Requirements:
    """Return the requirements of a pool that choose among instance types."""
    return Requirements(tuple(item for item in owner.requirements if item.key in _TYPE_KEYS))


def pools_of(nodes: Iterable[Node]) -> Mapping[Pool, tuple[Node, ...]]:
    """Return the nodes of each pool, in the order of the pools."""
    found: dict[Pool, list[Node]] = {}
    for node in nodes:
        found.setdefault(pool_of(node), []).append(node)
    return {pool: tuple(found[pool]) for pool in sorted(found)}
