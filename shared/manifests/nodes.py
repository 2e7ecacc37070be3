"""Nodes."""

from typing import Final

from shared.manifests.raw_json import (
    Raw,
    condition,
    mapping,
    mappings,
    text,
    text_map,
    texts,
    timestamp,
)
from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.resources import Resources

_READY: Final = {"True": True, "False": False}
_EFFECTS: Final = {effect.value: effect for effect in Effect}


def decode_node(raw: Raw) -> Node:
    """Return the node.

    A label with only an older name also appears under its stable name. Taints keep the order of
    the manifest (patches depend on it); an unknown effect counts as NoSchedule. A quantity that
    cannot be read counts as zero.
    """
    metadata, spec, status = (mapping(raw.get(k)) for k in ("metadata", "spec", "status"))
    ready = condition(status, "Ready")
    labels = text_map(metadata.get("labels"))
    for key in sorted(labels):
        labels.setdefault(keys.normalize(key), labels[key])
    return Node(
        name=text(metadata.get("name")),
        uid=text(metadata.get("uid")),
        resource_version=text(metadata.get("resourceVersion")),
        labels=labels,
        annotations=text_map(metadata.get("annotations")),
        taints=tuple(decode_taint(taint) for taint in mappings(spec.get("taints"))),
        finalizers=texts(metadata.get("finalizers")),
        owners=tuple(
            text(owner_reference.get("uid"))
            for owner_reference in mappings(metadata.get("ownerReferences"))
        ),
        provider_id=text(spec.get("providerID")),
        unschedulable=spec.get("unschedulable") is True,
        capacity=_amounts(status.get("capacity")),
        allocatable=_amounts(status.get("allocatable")),
        ready=_READY.get(text(ready.get("status"))),
        ready_changed_at=timestamp(ready.get("lastTransitionTime")),
        created_at=timestamp(metadata.get("creationTimestamp")),
        deletion_at=timestamp(metadata.get("deletionTimestamp")),
    )


def decode_taint(raw: Raw) -> Taint:
    """Return the taint; an unknown effect counts as NoSchedule."""
    return Taint(
        key=text(raw.get("key")),
        value=text(raw.get("value")),
        effect=_EFFECTS.get(text(raw.get("effect")), Effect.NO_SCHEDULE),
    )


def encode_taint(taint: Taint) -> dict[str, str]:
    """Return the taint as a manifest has it."""
    raw = {"key": taint.key, "effect": taint.effect.value}
    return {**raw, "value": taint.value} if taint.value else raw


def _amounts(raw: object) -> Resources:
    found = []
    for name, amount in mapping(raw).items():
        try:
            found.append(Resources.parse({name: amount}))
        except ValueError:
            continue
    return Resources.total(found)
