"""Builders of values for tests: small, valid, and every field can be given by keyword."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from shared.disruption.drift import HASH_VERSION
from shared.manifests.api.selector_map import selector_of
from shared.model import labels as keys
from shared.model.ec2.instance_types import (
    CapacityType,
    InstanceType,
    Offering,
    OfferingKey,
    Overhead,
)
from shared.model.ec2.launches import (
    Instance,
    LaunchIntent,
    LaunchOption,
    PlannedNode,
    PodRef,
    Slot,
)
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import (
    AffinityTerm,
    ControllerRef,
    LabelSelector,
    Pod,
    Scheduling,
    SpreadPolicy,
    TopologySpread,
)
from shared.model.kubernetes.taints import Effect, Taint, Toleration
from shared.model.provisioner import NodeTemplate, Provisioner
from shared.model.requirements import Requirement, Requirements
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot, ProvisionerSite

MIB = 2**20
GIB = 2**30
NOW = datetime(2026, 1, 1, tzinfo=UTC)
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
REPLICA_SET = ControllerRef(kind="ReplicaSet", name="web", uid="uid-web", api_version="apps/v1")
# What admission gives every pod: it bears a node that is not ready for five minutes.
DEFAULT_TOLERATIONS = tuple(
    Toleration(key=key, operator="Exists", effect=Effect.NO_EXECUTE, seconds=300)
    for key in (keys.NODE_NOT_READY_TAINT, keys.NODE_UNREACHABLE_TAINT)
)
# The annotations of a node that was launched for another shape of its owner.
OTHER_SHAPE = {keys.PROVISIONER_HASH: "of another time", keys.HASH_VERSION: HASH_VERSION}
TAGS = {keys.TAG_CLUSTER: "test", "kubernetes.io/cluster/test": "owned"}
NOT_READY = Taint(key=keys.NOT_READY_TAINT, effect=Effect.NO_SCHEDULE)


def needs(key: str, operator: str, *values: str) -> Requirements:
    return Requirements.of([Requirement.parse(key, operator, values)])


def selector(**match_labels: str) -> LabelSelector:
    return LabelSelector(match_labels=tuple(sorted(match_labels.items())))


def spread(
    key: str = keys.ZONE, max_skew: int = 1, *, hard: bool = True, **overrides: Any
) -> TopologySpread:
    policy = SpreadPolicy.DO_NOT_SCHEDULE if hard else SpreadPolicy.SCHEDULE_ANYWAY
    fields: dict[str, Any] = {"selector": selector(app="web"), **overrides}
    return TopologySpread(key=key, max_skew=max_skew, policy=policy, **fields)


def affinity(key: str = keys.HOSTNAME, **overrides: Any) -> AffinityTerm:
    fields: dict[str, Any] = {"selector": selector(app="web"), **overrides}
    return AffinityTerm(key=key, **fields)


def scheduling(
    cpu: int = 500,
    memory: int = 512 * MIB,
    extra: Mapping[str, int] | None = None,
    **overrides: Any,
) -> Scheduling:
    """Return what a pod asks for: cpu in millicores, memory in bytes, `extra` by resource name."""
    amounts = {"cpu": cpu, "memory": memory, "pods": 1, **(extra or {})}
    fields: dict[str, Any] = {"requests": Resources.from_mapping(amounts), **overrides}
    return Scheduling(**fields)


def pod(name: str = "a", **overrides: Any) -> Pod:
    """Return a pod that waits for capacity; keywords of `scheduling` go there."""
    namespace = overrides.pop("namespace", "default")
    of_pod = {
        override: overrides.pop(override)
        for override in list(overrides)
        if override in Pod.__struct_fields__
    }
    if "scheduling" not in of_pod:
        of_pod["scheduling"] = scheduling(**{"tolerations": DEFAULT_TOLERATIONS, **overrides})
    elif overrides:
        raise TypeError(f"scheduling is given, so {sorted(overrides)} must be part of it")
    fields: dict[str, Any] = {
        "uid": f"uid-{name}",
        "labels": {"app": "web"},
        "unschedulable": not of_pod.get("node_name"),
        "phase": "Running" if of_pod.get("node_name") else "Pending",
        "owner": REPLICA_SET,
        "created_at": NOW,
        **of_pod,
    }
    return Pod(namespace=namespace, name=name, **fields)


def pods(count: int, prefix: str = "p", **overrides: Any) -> tuple[Pod, ...]:
    return tuple(pod(f"{prefix}{number:03}", **overrides) for number in range(count))


def ref(other_pod: Pod) -> PodRef:
    return PodRef(namespace=other_pod.namespace, name=other_pod.name, uid=other_pod.uid)


def instance_type(
    name: str = "m5.large",
    cpu: int = 2000,
    memory: int = 8 * GIB,
    price: int = 96_000,
    **overrides: Any,
) -> InstanceType:
    """Return a type sold in all zones on demand at `price`, and as spot at a third of it."""
    arch = overrides.pop("arch", "amd64")
    zones = overrides.pop("zones", ZONES)
    extra = overrides.pop("extra", {})
    family, size = name.split(".")
    offerings = [
        Offering(zone=zone, capacity_type=kind, price_micros_per_hour=cost + step)
        for step, zone in enumerate(zones)
        for kind, cost in ((CapacityType.ON_DEMAND, price), (CapacityType.SPOT, price // 3))
    ]
    offerings.sort(key=lambda entry: (entry.price_micros_per_hour, entry.zone, entry.capacity_type))
    fields: dict[str, Any] = {
        "labels": {
            keys.INSTANCE_TYPE: name,
            keys.ARCH: arch,
            keys.OS: "linux",
            keys.REGION: "us-east-1",
            keys.INSTANCE_FAMILY: family,
            keys.INSTANCE_SIZE: size,
            keys.INSTANCE_CPU: str(cpu // 1000),
        },
        "capacity": Resources.from_mapping(
            {"cpu": cpu, "memory": memory, "pods": 29, "ephemeral-storage": 20 * GIB, **extra}
        ),
        "overhead": Overhead(
            kube_reserved=Resources.of(cpu=70, memory=300 * MIB),
            eviction_threshold=Resources.of(memory=100 * MIB),
        ),
        "offerings": tuple(offerings),
        **overrides,
    }
    return InstanceType(name=name, **fields)


CATALOG = (
    instance_type("c6g.large", memory=4 * GIB, price=68_000, arch="arm64"),
    instance_type("m5.2xlarge", cpu=8000, memory=32 * GIB, price=384_000),
    instance_type("m5.large"),
    instance_type("m5.xlarge", cpu=4000, memory=16 * GIB, price=192_000),
)
SHAPES = {shape.name: shape for shape in CATALOG}


def provisioner(name: str = "default", **overrides: Any) -> Provisioner:
    """Return a Provisioner of amd64 machines on demand; `also` adds requirements."""
    also = overrides.pop("also", Requirements())
    fields: dict[str, Any] = {
        "uid": f"uid-{name}",
        "resource_version": "1",
        "requirements": Requirements.of(
            (
                Requirement.of(keys.CAPACITY_TYPE, "on-demand"),
                Requirement.of(keys.ARCH, "amd64"),
                *also,
            )
        ),
        "template": NodeTemplate(
            subnet_selector=selector_of({"cluster": "test"}),
            security_group_selector=selector_of({"cluster": "test"}),
        ),
        **overrides,
    }
    return Provisioner(name=name, **fields)


def site(name: str = "default", zones: Iterable[str] = ZONES, reason: str = "") -> ProvisionerSite:
    return ProvisionerSite(provisioner=name, zones=tuple(zones), reason=reason)


def node(name: str = "n1", **overrides: Any) -> Node:
    """Return a ready Dovetail node: an m5.large in the first zone. Annotations are added."""
    fields: dict[str, Any] = {
        "uid": f"uid-{name}",
        "resource_version": "1",
        "labels": {
            keys.PROVISIONER_NAME: "default",
            keys.ZONE: ZONES[0],
            keys.CAPACITY_TYPE: "on-demand",
            keys.INSTANCE_TYPE: "m5.large",
            keys.ARCH: "amd64",
            keys.OS: "linux",
            keys.HOSTNAME: name,
        },
        "finalizers": (keys.TERMINATION_FINALIZER,),
        "provider_id": f"aws:///{ZONES[0]}/i-{name}",
        "capacity": Resources.of(cpu=2000, memory=8 * GIB, pods=29),
        "allocatable": Resources.of(cpu=1900, memory=7 * GIB, pods=29),
        "ready": True,
        "created_at": NOW,
        **overrides,
        "annotations": {keys.SLOT: f"{name}/0/0", **overrides.get("annotations", {})},
    }
    return Node(name=name, **fields)


def node_of(name: str, kind: str | InstanceType = "m5.large", **overrides: Any) -> Node:
    """Return an initialized Dovetail node with the label and the room of its instance type."""
    shape = SHAPES[kind] if isinstance(kind, str) else kind
    labels = {
        **node(name).labels,
        keys.INITIALIZED: "true",
        keys.INSTANCE_TYPE: shape.name,
        **overrides.pop("labels", {}),
    }
    room = {"capacity": shape.capacity, "allocatable": shape.allocatable}
    return node(name, labels=labels, **{**room, **overrides})


def instance(instance_id: str = "i-n1", **overrides: Any) -> Instance:
    """Return a running machine of the cluster `test`: an m5.large on demand."""
    fields: dict[str, Any] = {
        "state": "running",
        "offering": offering(),
        "launched_at": NOW,
        "tags": TAGS,
        **overrides,
    }
    return Instance(instance_id=instance_id, **fields)


def budget(allowed: int = 0, **overrides: Any) -> PodDisruptionBudget:
    """Return a PodDisruptionBudget over the pods of `web`."""
    fields: dict[str, Any] = {
        "namespace": "default",
        "name": "web",
        "selector": selector(app="web"),
        **overrides,
    }
    return PodDisruptionBudget(disruptions_allowed=allowed, **fields)


def daemonset(name: str = "logs", cpu: int = 100, memory: int = 64 * MIB, **more: Any) -> DaemonSet:
    return DaemonSet(namespace="kube-system", name=name, scheduling=scheduling(cpu, memory, **more))


def offering(
    name: str = "m5.large",
    zone: str = ZONES[0],
    capacity_type: CapacityType = CapacityType.ON_DEMAND,
) -> OfferingKey:
    return OfferingKey(instance_type=name, zone=zone, capacity_type=capacity_type)


def option(price: int = 96_000, **overrides: Any) -> LaunchOption:
    key = {
        value: overrides.pop(value)
        for value in ("name", "zone", "capacity_type")
        if value in overrides
    }
    fields: dict[str, Any] = {
        "offering": offering(**key),
        "capacity": Resources.of(cpu=2000, memory=8 * GIB, pods=29),
        "allocatable": Resources.of(cpu=1900, memory=7 * GIB, pods=29),
        **overrides,
    }
    return LaunchOption(price_micros_per_hour=price, **fields)


def planned(*members: Pod, **overrides: Any) -> PlannedNode:
    fields: dict[str, Any] = {
        "provisioner": "default",
        "labels": {keys.PROVISIONER_NAME: "default"},
        "options": (option(),),
        "pods": tuple(ref(member) for member in members),
        "requests": Resources.total(member.scheduling.requests for member in members),
        **overrides,
    }
    return PlannedNode(**fields)


def slot(number: int = 0, **overrides: Any) -> Slot:
    """Return the slot of an m5.large in flight, without a Node so far."""
    fields: dict[str, Any] = {
        "cluster": "test",
        "plan_id": "plan-1",
        "group": 0,
        "provisioner": "default",
        "instance_id": f"i-slot{number}",
        "offering": offering(),
        "price_micros_per_hour": 96_000,
        "capacity": Resources.of(cpu=2000, memory=8 * GIB, pods=29),
        "allocatable": Resources.of(cpu=1900, memory=7 * GIB, pods=29),
        "labels": {
            keys.PROVISIONER_NAME: "default",
            keys.ZONE: ZONES[0],
            keys.CAPACITY_TYPE: "on-demand",
            keys.INSTANCE_TYPE: "m5.large",
        },
        "launched_at": NOW,
        **overrides,
    }
    return Slot(number=number, **fields)


def intent(**overrides: Any) -> LaunchIntent:
    fields: dict[str, Any] = {
        "cluster": "test",
        "plan_id": "plan-1",
        "group": 0,
        "attempt": 0,
        "provisioner": "default",
        "count": 1,
        "body_key": "body",
        "body_hash": "0" * 64,
        "reserved": Resources.of(cpu=2000),
        "created_at": NOW,
        **overrides,
    }
    return LaunchIntent(**fields)


def snapshot(*pending: Pod, **overrides: Any) -> ClusterSnapshot:
    """Return a snapshot with one provisioner, its site and four instance types."""
    provisioners = overrides.pop("provisioners", (provisioner(),))
    fields: dict[str, Any] = {
        "cluster": "test",
        "taken_at": NOW,
        "pending": pending,
        "bound": (),
        "nodes": (),
        "provisioners": provisioners,
        "sites": tuple(site(entry.name) for entry in provisioners),
        "daemonsets": (),
        "slots": (),
        "intents": (),
        "instance_types": CATALOG,
        **overrides,
    }
    return ClusterSnapshot(**fields)
