"""Drift: whether a node is still what its Provisioner asks for."""

import functools
import hashlib
import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo, fields

from shared.disruption.expiration import NEVER, lifetime_of
from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType
from shared.model.kubernetes.nodes import Node
from shared.model.policy import Trigger
from shared.model.provisioner import Provisioner
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace

# Incremented when the same fields get another hash.
HASH_VERSION: Final = "2"
# Fields that determine a node for its whole life. Requirements are compared with the node's labels
# instead: a wider choice of instance types causes no drift.
_SHAPE: Final = ("labels", "annotations", "taints", "startup_taints", "kubelet", "template")
_LENGTH: Final = 16
# The catalogue is made twice a day: two in a row lack what is no longer sold.
_UNSOLD_FOR: Final = timedelta(hours=13)


def reports_drift(owner: Provisioner, *, otherwise: bool) -> bool:
    """Return whether Dovetail reports which nodes of an owner have drifted.

    It does so for every NodePool.

    Args:
        otherwise: Whether drift is acted on for Provisioners that do not say.
    """
    return Trigger.DRIFT in owner.dialect.acts_on or owner.acts_on(
        Trigger.DRIFT, otherwise=otherwise
    )


@functools.lru_cache(maxsize=256)
def shape_hash(provisioner: Provisioner) -> str:
    """Return a hash of the fields that determine a node; another hash means drift.

    A field at its default counts as absent, so that a release with a new field causes no drift.
    Names, and selectors of subnets, security groups and images are left out: what these select may
    change daily. Of an alias of images only the family counts, which decides the user data. The
    order of taints does not count. User data counts as its text alone.

    Source: https://github.com/kubernetes-sigs/karpenter/blob/v1.8.0/pkg/apis/v1/nodepool.go (Hash)
    and https://github.com/aws/karpenter-provider-aws/blob/v1.8.0/pkg/apis/v1/ec2nodeclass.go
    (Hash: lists as sets, the selector terms ignored), 2026-11-27.
    """
    seen = _normal(provisioner.without_user_data)
    shape = {name: _plain(getattr(seen, name)) for name in _SHAPE}
    text = json.dumps(shape, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]


def stamp_of(owner: Provisioner) -> dict[str, str]:
    """Return the annotations that record the hash of the owner at launch."""
    return {keys.PROVISIONER_HASH: shape_hash(owner), keys.HASH_VERSION: HASH_VERSION}


def end_stamp(owner: Provisioner) -> dict[str, str]:
    """Return the annotations that say when a new node expires by force, and when its drain ends."""
    stamp = {}
    if owner.dialect.expires_by_force:
        stamp[keys.EXPIRE_AFTER] = format_age(owner.ttl_until_expired)
    if owner.termination_grace_period is not None:
        stamp[keys.TERMINATION_GRACE_PERIOD] = format_age(owner.termination_grace_period)
    return stamp


def launch_stamp(owner: Provisioner) -> dict[str, str]:
    """Return the annotations of a node that is launched for the owner in its present state."""
    return {**stamp_of(owner), **end_stamp(owner)}


def format_age(age: timedelta | None) -> str:
    """Return an age of expiration as a Node's annotation has it: seconds, or Never for None."""
    return NEVER if age is None else str(int(age.total_seconds()))


def new_stamp(node: Node, owner: Provisioner) -> dict[str, str]:
    """Return new annotations for a node with a hash of another version, empty for other nodes.

    Such a hash cannot be compared: the node counts as not drifted.
    """
    if keys.PROVISIONER_HASH not in node.annotations or _has_this_version(node):
        return {}
    return stamp_of(owner)


def drift_of(
    node: Node,
    owner: Provisioner,
    image_id: str = "",
    current: str = "",
    *,
    unsold: bool = False,
) -> str:
    """Return how a node differs from what its Provisioner asks for now, empty when it does not.

    Nothing unknown counts as drift: a node without a hash or with one of another version, an
    unknown image, or images that could not be read.

    Args:
        image_id: AMI of its instance.
        current: The AMI that new instances of its type boot from; empty for a launch template of
            the user's own, or where it is not known.
        unsold: Whether EC2 no longer sells its offering.
    """
    if _is_reshaped(node, owner):
        return f"{owner.kind.lower()} {owner.name} has changed"
    if lifetime_of(node, owner) != owner.ttl_until_expired:
        return f"{owner.dialect.expiry_field} of {owner.kind.lower()} {owner.name} has changed"
    # Nodes that Karpenter launched may lack the tenancy label: all of them have default tenancy.
    labels = {keys.INSTANCE_TENANCY: "default", **node.labels, owner.owner_label: owner.name}
    refusing = owner.requirements.first_refusing(labels)
    if refusing is not None:
        found = node.labels.get(refusing.key)
        return f"requirement {refusing.describe()} no longer allows {found or 'its absence'}"
    if unsold:
        return f"instance type {node.labels.get(keys.INSTANCE_TYPE)} is no longer sold as it is"
    if image_id and current and image_id != current:
        return f"image {image_id} is no longer current"
    return ""


def unsold_since(snapshot: ClusterSnapshot, before: Mapping[str, str]) -> dict[str, str]:
    """Return since when the catalogue lacks the offerings of nodes, as ISO time by uid.

    For a capacity type that it never has, only the instance type counts.

    Args:
        before: What the previous evaluation returned.
    """
    if not snapshot.instance_types:
        return dict(before)
    sold = {
        (known.name, offering.zone, offering.capacity_type.value)
        for known in snapshot.instance_types
        for offering in known.offerings
    }
    types = {known.name for known in snapshot.instance_types}
    found = {}
    for node in snapshot.nodes:
        kind, zone, bought_as = map(
            node.labels.get, (keys.INSTANCE_TYPE, keys.ZONE, keys.CAPACITY_TYPE)
        )
        is_known = kind in types and (
            bought_as not in set(CapacityType) or (kind, zone, bought_as) in sold
        )
        if node.is_ours and kind and not is_known:
            found[node.uid] = before.get(node.uid, snapshot.taken_at.isoformat())
    return found


def long_unsold(seen: Mapping[str, str], now: datetime) -> frozenset[str]:
    """Return the uids of nodes whose offering was missing for so long that they have drifted."""
    return frozenset(
        uid for uid, since in seen.items() if now - datetime.fromisoformat(since) >= _UNSOLD_FOR
    )


def _has_this_version(node: Node) -> bool:
    return node.annotations.get(keys.HASH_VERSION) == HASH_VERSION


def _is_reshaped(node: Node, owner: Provisioner) -> bool:
    written = node.annotations.get(keys.PROVISIONER_HASH)
    return written is not None and _has_this_version(node) and written != shape_hash(owner)


def _normal(provisioner: Provisioner) -> Provisioner:
    """Return a Provisioner whose taints are in order, and whose images have no alias."""
    return replace(
        provisioner,
        taints=tuple(sorted(provisioner.taints)),
        startup_taints=tuple(sorted(provisioner.startup_taints)),
        template=replace(provisioner.template, image_family="", image_version=""),
    )


def _plain(value: Any) -> Any:
    """Return a value as JSON, fields at their defaults left out."""
    if isinstance(value, Struct):
        return {
            field.name: _plain(_ordered(field.name, getattr(value, field.name)))
            for field in fields(value)
            if not field.name.endswith("selector") and getattr(value, field.name) != _default(field)
        }
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(entry) for entry in value]
    return value if value is None or isinstance(value, (bool, int)) else str(value)


def _ordered(name: str, value: Any) -> Any:
    """Return block devices by name: their order does not matter."""
    if name != "block_devices":
        return value
    return sorted(value, key=lambda block_device: block_device.device_name)


def _default(field: FieldInfo) -> Any:
    if field.default_factory is not NODEFAULT:
        return field.default_factory()
    return field.default
