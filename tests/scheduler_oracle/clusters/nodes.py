"""Nodes that stand, in every state, and nodes in flight."""

from typing import Final

from tests.scheduler_oracle.clusters import keys
from tests.scheduler_oracle.clusters.catalog import ZONES, instance_types
from tests.scheduler_oracle.clusters.node_demands import taints
from tests.scheduler_oracle.clusters.seeded_random import Dice, Json

NOT_READY: Final = [
    {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"},
]
CORDON: Final = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
BOOTING: Final = [
    {"key": "karpenter.sh/not-ready", "effect": "NoSchedule"},
    {"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule"},
    *NOT_READY,
]


def ready(status: str) -> list[Json]:
    return [{"type": "Ready", "status": status}]


def node(dice: Dice, name: str, owner: Json | None, types: list[str]) -> Json:
    """Return a ready node: a provisioner's, or an unmanaged one when there is no owner."""
    kind = instance_types([dice.one(types)])[0]
    zone, capacity_type = dice.one(ZONES), dice.one(("on-demand", "spot"))
    labels = {
        **kind.labels,
        keys.ZONE: zone,
        keys.REGION: "us-east-1",
        keys.HOSTNAME: name,
    }
    if owner is not None:
        labels |= _labels_of(dice, owner)
        labels[keys.CAPACITY_TYPE] = capacity_type
    else:
        labels = {k: v for k, v in labels.items() if not k.startswith("karpenter.k8s.aws/")}
        if dice.luck(0.3):
            labels.pop(dice.one((keys.ZONE, keys.INSTANCE_TYPE, keys.HOSTNAME)))
        if dice.luck(0.5):
            labels[keys.RACK] = dice.one(keys.RACKS)
        if dice.luck(0.3):
            labels[keys.TEAM] = dice.one(keys.TEAMS)
    own = list((owner or {}).get("spec", {}).get("taints") or ())
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "resourceVersion": "1",
            "labels": labels,
            "annotations": {"dovetail.dev/slot": f"{name}/0/0"} if owner else {},
            "finalizers": ["karpenter.sh/termination"] if owner else [],
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {
            "providerID": f"aws:///{zone}/i-{name}",
            "taints": own if owner else taints(dice, 0.3),
        },
        "status": {
            "capacity": kind.capacity.to_quantities(),
            "allocatable": kind.allocatable.to_quantities(),
            "conditions": ready("True"),
        },
    }


def _labels_of(dice: Dice, owner: Json) -> Json:
    """Return what a provisioner puts on its nodes; of several values one, or none."""
    spec = owner["spec"]
    found = {keys.PROVISIONER: owner["metadata"]["name"], **(spec.get("labels") or {})}
    for requirement in spec["requirements"]:
        if requirement["key"] in (keys.RACK, keys.LEVEL) and requirement.get("values"):
            value = dice.one(requirement["values"]) if requirement["operator"] == "In" else "2"
            if len(requirement["values"]) == 1 or dice.luck(0.7):
                found[requirement["key"]] = value
    return found


def standing(case: Json) -> list[Json]:
    """Return the nodes of a case that stand, with all labels that others give them."""
    return [dressed(case, entry) for entry in case["nodes"]]


def dressed(case: Json, made: Json) -> Json:
    """Return a node with the labels of older names, where the case has them."""
    metadata = made["metadata"]
    if not case["older_labels"] or "labels" not in metadata:
        return made
    return {**made, "metadata": {**metadata, "labels": keys.with_older(metadata["labels"])}}


def make_unfit(dice: Dice, made: Json) -> None:
    """Cordon the node, take its readiness, or begin its deletion."""
    way = dice.upto(0, 3)
    if way == 0:
        made["spec"]["unschedulable"] = True
        if dice.luck(0.7):
            made["spec"]["taints"].append(dict(CORDON))
    elif way == 1:
        made["status"]["conditions"] = ready("False")
        made["spec"]["taints"].extend(dict(entry) for entry in NOT_READY)
    elif way == 2:
        made["metadata"]["deletionTimestamp"] = "2026-01-01T00:10:00Z"
        made["spec"]["unschedulable"] = True
    else:
        made["status"]["conditions"] = ready("False")
        made["spec"]["taints"].extend(dict(entry) for entry in NOT_READY)
        made["spec"]["unschedulable"] = True


def slot(dice: Dice, number: int, owner: Json, types: list[str]) -> Json:
    """Return a node in flight: what it will be, and how much of it shows.

    `seen` is `ordered` (no instance yet: it becomes one of `options`), `no` (no Node yet), `made`
    (our Node, no kubelet) or `joined` (its kubelet posts).
    """
    made = node(dice, f"flying{number}", owner, types)
    ways = ["no", "made", "joined"] if "in_flight" in dice.on else []
    if "promises" in dice.on:
        ways.append("ordered")
    labels = made["metadata"]["labels"]
    place = {key: labels[key] for key in (keys.INSTANCE_TYPE, keys.ZONE, keys.CAPACITY_TYPE)}
    options = [place]
    if dice.luck(0.5):
        options += [{**place, keys.INSTANCE_TYPE: value} for value in _alike(labels, types)]
    if dice.luck(0.5):
        elsewhere = [zone for zone in ZONES if zone != place[keys.ZONE]]
        options += [{**option, keys.ZONE: zone} for zone in elsewhere for option in options]
    return {
        "number": number,
        "node": made,
        "seen": dice.one(ways),
        "options": options,
        "pods": [],
    }


def _alike(labels: Json, types: list[str]) -> list[str]:
    """Return other types of the same architecture."""
    return [
        instance_type.name
        for instance_type in instance_types(types)
        if instance_type.labels[keys.ARCH] == labels[keys.ARCH]
        and instance_type.name != labels[keys.INSTANCE_TYPE]
    ]


def as_seen(flying: Json, owner: Json) -> Json | None:
    """Return the Node object of a slot as the cluster shows it now, if at all."""
    if flying["seen"] == "no":
        return None
    future = flying["node"]
    startup = list(owner["spec"].get("startupTaints") or ())
    status: Json = {"capacity": {}, "allocatable": {}, "conditions": []}
    if flying["seen"] == "joined":
        plain = ("cpu", "memory", "pods", "ephemeral-storage")
        status = {
            "capacity": {k: v for k, v in future["status"]["capacity"].items() if k in plain},
            "allocatable": {k: v for k, v in future["status"]["allocatable"].items() if k in plain},
            "conditions": ready("False"),
        }
    spec = {**future["spec"], "taints": [*future["spec"]["taints"], *startup, *BOOTING]}
    return {**future, "spec": spec, "status": status}
