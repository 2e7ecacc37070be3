"""The fields of each object that are kept: 10,000 pods must fit into a few megabytes."""

import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from shared.manifests.custom_resources.brakes import is_paused, is_shadow
from shared.manifests.custom_resources.pool_lifetimes import is_foreign, read_lifetime
from shared.manifests.raw_json import (
    condition,
    controller_ref,
    integer,
    mapping,
    mappings,
    text,
    timestamp,
)
from shared.model import labels as keys
from shared.model.dialect import OwnerKind
from shared.model.kubernetes.pods import FARGATE_SCHEDULER

# The price of no instance has more digits: users can write the annotation.
_PRICE_DIGITS = 12


class PodView(NamedTuple):
    """A pod.

    Attributes:
        node: Name of the node it is bound to, empty when pending.
        waits_for_capacity: Whether it is marked unschedulable and waits for capacity that Dovetail
            should launch.
        occupies_node: Whether its presence keeps its node from being empty.
    """

    namespace: str
    name: str
    uid: str
    version: str
    node: str
    waits_for_capacity: bool
    occupies_node: bool


class NodeView(NamedTuple):
    """A node.

    Attributes:
        provisioner: The key of the Provisioner or NodePool that it was launched for; empty when
            Dovetail did not launch it.
        has_closing_taint: Whether a taint of Dovetail still keeps kube-scheduler away.
        shown_resources: Its allocatable resources and its taint keys, as one text; empty if
            Dovetail did not launch it.
        empty_since: Since when it is empty, as its annotation says; None without one.
        joined: Whether it is labelled as initialized: its devices are registered.
        price_micros: Its price in micro-dollars per hour; 0 when no annotation gives it.
    """

    name: str
    uid: str
    version: str
    provisioner: str
    deleting: bool
    ready: bool
    has_closing_taint: bool
    shown_resources: str
    empty_since: datetime | None = None
    joined: bool = False
    price_micros: int = 0

    @property
    def ours(self) -> bool:
        """Whether Dovetail launched it."""
        return bool(self.provisioner)

    @property
    def open(self) -> bool:
        """Whether kube-scheduler may use it."""
        return self.ready and not self.has_closing_taint

    @property
    def started(self) -> bool:
        """Whether kube-scheduler may use it, or could once: its kubelet may have stopped since."""
        return (self.ready or self.joined) and not self.has_closing_taint

    @property
    def initialized(self) -> bool:
        """Whether the bind function has finished with it."""
        return self.open and self.joined


class ProvisionerView(NamedTuple):
    """A Provisioner or NodePool.

    Attributes:
        generation: Grows with each change of its spec.
        paused: Whether it is paused or in shadow mode: none of its nodes is removed voluntarily.
        ttl_seconds: After how long an empty node of it is removed; None for never.
        kind: Provisioner or NodePool.
        foreign: Whether it belongs to another provider, such as EKS Auto Mode.
    """

    name: str
    uid: str
    version: str
    generation: int
    deleting: bool
    paused: bool
    ttl_seconds: int | None = None
    kind: OwnerKind = OwnerKind.PROVISIONER
    foreign: bool = False

    @property
    def key(self) -> str:
        """Its name, distinct from the same name of the other kind."""
        return _key(self.kind, self.name)


View = PodView | NodeView | ProvisionerView


def view_pod(raw: Mapping[str, Any]) -> PodView:
    """Return what is kept of a pod."""
    metadata, spec, status = (mapping(raw.get(k)) for k in ("metadata", "spec", "status"))
    owner = controller_ref(metadata)
    stays = owner is not None and owner.kind in ("DaemonSet", "Node")
    ended = status.get("phase") in ("Succeeded", "Failed")
    node = sys.intern(text(spec.get("nodeName")))
    scheduled = condition(status, "PodScheduled")
    marked = scheduled.get("status") == "False" and scheduled.get("reason") == "Unschedulable"
    blocked = (
        spec.get("schedulerName") == FARGATE_SCHEDULER
        or spec.get("schedulingGates")
        or status.get("nominatedNodeName")
        or metadata.get("deletionTimestamp")
    )
    return PodView(
        namespace=sys.intern(text(metadata.get("namespace"))),
        name=text(metadata.get("name")),
        uid=text(metadata.get("uid")),
        version=text(metadata.get("resourceVersion")),
        node=node,
        waits_for_capacity=marked and not (node or stays or ended or blocked),
        occupies_node=not (stays or ended),
    )


def view_node(raw: Mapping[str, Any]) -> NodeView:
    """Return what is kept of a node."""
    metadata, spec, status = (mapping(raw.get(k)) for k in ("metadata", "spec", "status"))
    taints = sorted(text(taint.get("key")) for taint in mappings(spec.get("taints")))
    labels = mapping(metadata.get("labels"))
    annotations = mapping(metadata.get("annotations"))
    # Karpenter's nodes have the same labels.
    owned = labels if keys.SLOT in annotations else {}
    provisioner = text(owned.get(keys.PROVISIONER_NAME))
    if not provisioner and (node_pool := text(owned.get(keys.NODE_POOL))):
        provisioner = _key(OwnerKind.NODE_POOL, node_pool)
    allocatable = mapping(status.get("allocatable"))
    parts = [*(f"{name}={allocatable[name]}" for name in sorted(allocatable)), *taints]
    return NodeView(
        name=text(metadata.get("name")),
        uid=text(metadata.get("uid")),
        version=text(metadata.get("resourceVersion")),
        provisioner=sys.intern(provisioner),
        deleting=metadata.get("deletionTimestamp") is not None,
        ready=condition(status, "Ready").get("status") == "True",
        has_closing_taint=not keys.CLOSING_TAINTS.isdisjoint(taints),
        shown_resources=sys.intern(" ".join(parts)) if provisioner else "",
        empty_since=timestamp(annotations.get(keys.EMPTINESS_TIMESTAMP)),
        joined=labels.get(keys.INITIALIZED) == "true",
        price_micros=_micros(text(annotations.get(keys.PRICE))),
    )


def view_provisioner(raw: Mapping[str, Any]) -> ProvisionerView:
    """Return what is kept of a Provisioner."""
    metadata = mapping(raw.get("metadata"))
    annotations = mapping(metadata.get("annotations"))
    generation = metadata.get("generation")
    return ProvisionerView(
        name=text(metadata.get("name")),
        uid=text(metadata.get("uid")),
        version=text(metadata.get("resourceVersion")),
        generation=generation if isinstance(generation, int) else 0,
        deleting=metadata.get("deletionTimestamp") is not None,
        paused=is_paused(annotations) or is_shadow(annotations),
        ttl_seconds=integer(mapping(raw.get("spec")).get("ttlSecondsAfterEmpty")),
    )


def view_node_pool(raw: Mapping[str, Any]) -> ProvisionerView:
    """Return what is kept of a NodePool."""
    found = read_lifetime(raw)
    ttl = found.ttl_after_empty
    return ProvisionerView(
        name=found.name,
        uid=found.uid,
        version=found.resource_version,
        generation=found.generation,
        deleting=found.deleting,
        paused=found.paused or found.shadow,
        ttl_seconds=None if ttl is None else int(ttl.total_seconds()),
        kind=found.kind,
        foreign=is_foreign(raw),
    )


def _micros(written: str) -> int:
    digits = written.isascii() and written.isdigit() and len(written) <= _PRICE_DIGITS
    return int(written) if digits else 0


def _key(kind: OwnerKind, name: str) -> str:
    return name if kind == OwnerKind.PROVISIONER else f"{kind}/{name}"
