"""Drift: whether a node is still what its Provisioner asks for."""

import dataclasses
import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any, Final

from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.provisioner import Provisioner

# What shapes a node for its whole life. Requirements are compared by the node's labels instead:
# a wider choice of instance types makes no node wrong.
_SHAPE: Final = ("labels", "annotations", "taints", "startup_taints", "kubelet", "template")
_LENGTH: Final = 16


def shape_hash(provisioner: Provisioner) -> str:
    """Return a hash of the fields that shape a node; another hash means another kind of node.

    A field at its default counts as absent, so that a release with a new field causes no drift.
    Names, and selectors of subnets, groups and images are left out: what these select may change
    daily.
    """
    shape = {name: _plain(getattr(provisioner, name)) for name in _SHAPE}
    text = json.dumps(shape, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]


def drift_of(
    node: Node, owner: Provisioner, image_id: str = "", current: Collection[str] = ()
) -> str:
    """Return how a node differs from what its Provisioner asks for now, empty when it does not.

    What is not known is no drift: a node without a hash, a machine whose image is not known, or
    images that could not be found.

    Args:
        image_id: Its machine's AMI.
        current: AMIs the Provisioner's new machines boot from; none for a launch template of the
            user's own.
    """
    written = node.annotations.get(keys.PROVISIONER_HASH)
    if written is not None and written != shape_hash(owner):
        return f"{owner.kind.lower()} {owner.name} has changed"
    labels = {**node.labels, owner.owner_label: owner.name}
    refusing = owner.requirements.first_refusing(labels)
    if refusing is not None:
        found = node.labels.get(refusing.key)
        return f"requirement {refusing.describe()} no longer allows {found or 'its absence'}"
    if image_id and current and image_id not in current:
        return f"image {image_id} is no longer current"
    return ""


def _plain(value: Any) -> Any:
    """Return a value as JSON, fields at their defaults left out."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: _plain(_ordered(field.name, getattr(value, field.name)))
            for field in dataclasses.fields(value)
            if not field.name.endswith("selector") and getattr(value, field.name) != _default(field)
        }
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(entry) for entry in value]
    return value if value is None or isinstance(value, (bool, int)) else str(value)


def _ordered(name: str, value: Any) -> Any:
    """Return disks by their names: the order in which they are written shapes nothing."""
    if name != "block_devices":
        return value
    return sorted(value, key=lambda block_device: block_device.device_name)


def _default(field: "dataclasses.Field[Any]") -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default
