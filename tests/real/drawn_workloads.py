"""Workloads with all that controllers and admission act on, drawn from a seed."""

import random
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

from functions.cli.plan.reading.workloads import WORKLOADS
from infra.local.demo.cluster_client import read_documents

Raw = dict[str, Any]

IN_NAMESPACE: Final = 5
_KINDS: Final = (*WORKLOADS, "DaemonSet", "Pod")
_VERSIONS: Final = {**WORKLOADS, "DaemonSet": "apps/v1", "Pod": "v1"}
_AT_MOST: Final = 3
CLASSES: Final[tuple[Raw, ...]] = (
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "hurried"},
        "value": 1000,
    },
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "patient"},
        "value": 7,
        "preemptionPolicy": "Never",
        "globalDefault": True,
    },
    {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "kata"},
        "handler": "kata",
        "overhead": {"podFixed": {"cpu": "250m", "memory": "64Mi"}},
        "scheduling": {
            "nodeSelector": {"runtime": "kata"},
            "tolerations": [
                {"key": "kata", "operator": "Exists"},
                {"key": "team", "operator": "Exists", "effect": "NoSchedule"},
            ],
        },
    },
    {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "plain"},
        "handler": "runc",
    },
)


def examples(folder: Path) -> list[Raw]:
    """Return the workloads of the examples, each example in a namespace of its own.

    Of each workload at most three pods are asked for.
    """
    found: list[Raw] = []
    for example in sorted(path for path in folder.iterdir() if path.is_dir()):
        documents = read_documents(sorted(example.glob("*.yaml")))
        kept = [
            entry
            for entry in documents
            if entry["apiVersion"] == _VERSIONS.get(entry["kind"])
            # Such as stand in a dump: the API server takes neither.
            and not (entry.get("status") or entry.get("spec", {}).get("nodeName"))
        ]
        found += [
            entry for entry in documents if entry["kind"] in ("PriorityClass", "RuntimeClass")
        ]
        if not kept:
            continue
        namespace = f"example-{example.name}"
        found.append(_object("v1", "Namespace", namespace, ""))
        for entry in kept:
            spec = entry.get("spec", {})
            for field in ("replicas", "parallelism"):
                if field in spec:
                    spec[field] = min(max(spec[field], 1), _AT_MOST)
            if "completions" in spec:
                spec["completions"] = max(spec["completions"], spec.get("parallelism", 1))
            entry["metadata"]["namespace"] = namespace
            found.append(entry)
    return found


def drawn(count: int, seed: int, *, without: Collection[str] = ()) -> list[Raw]:
    """Return so many workloads, five to a namespace, and what their namespaces say of pods.

    A namespace with a ResourceQuota has one workload: which of several is refused is chance. So is
    whose defaults count where several LimitRanges say some, so at most one does.

    Args:
        count: Of workloads.
        seed: Of the draw; it begins the names of the namespaces.
        without: Kinds that are not drawn.
    """
    kinds = [kind for kind in _KINDS if kind not in without]
    chance = random.Random(seed)
    found: list[Raw] = []
    made = namespaces = 0
    while made < count:
        namespace = f"drawn-{seed}-{namespaces}"
        namespaces += 1
        found.append(_object("v1", "Namespace", namespace, ""))
        for number, item in enumerate((_of_containers(chance), _of_pods(chance))):
            if chance.random() < (0.6, 0.2)[number]:
                limits = {"limits": [item]}
                found.append(
                    _object("v1", "LimitRange", f"limits-{number}", namespace, spec=limits)
                )
        with_quota = chance.random() < 0.4
        if with_quota:
            found.append(_object("v1", "ResourceQuota", "quota", namespace, spec=_quota(chance)))
        for _ in range(1 if with_quota else IN_NAMESPACE):
            # How many pods a DaemonSet has depends on nodes, which a plan has yet to choose.
            kind = chance.choice(
                [kind for kind in kinds if not (with_quota and kind == "DaemonSet")]
            )
            found.append(_workload(chance, kind, f"w{made}", namespace))
            made += 1
    return found


def _object(version: str, kind: str, name: str, namespace: str, **more: Any) -> Raw:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}


def _of_pods(chance: random.Random) -> Raw:
    return {"type": "Pod", chance.choice(("max", "min")): {"cpu": chance.choice(("200m", "2"))}}


def _of_containers(chance: random.Random) -> Raw:
    item: Raw = {"type": "Container"}
    # In this order each is valid beside the others.
    for field, cpu, memory in (
        ("min", "50m", "16Mi"),
        ("defaultRequest", "100m", "64Mi"),
        ("default", "500m", "256Mi"),
        ("max", "1", "1Gi"),
    ):
        if chance.random() < 0.45:
            amounts = {"cpu": cpu, "memory": memory, "ephemeral-storage": "1Gi"}
            names = chance.sample(sorted(amounts), chance.randint(1, 2))
            item[field] = {name: amounts[name] for name in names}
    if chance.random() < 0.2:
        item["maxLimitRequestRatio"] = {"cpu": chance.choice(("5", "10"))}
    return item


def _quota(chance: random.Random) -> Raw:
    hard = {
        "pods": chance.choice(("0", "1", "2", "9")),
        "count/pods": chance.choice(("1", "9")),
        "requests.cpu": chance.choice(("200m", "1", "9")),
        "limits.memory": chance.choice(("512Mi", "9Gi")),
        "requests.nvidia.com/gpu": "1",
        "requests.ephemeral-storage": "1Gi",
    }
    names = chance.sample(sorted(hard), chance.randint(1, 2))
    spec: Raw = {"hard": {name: hard[name] for name in names}}
    if chance.random() < 0.3 and set(names) == {"pods"}:
        spec["scopes"] = [chance.choice(("BestEffort", "NotBestEffort", "PriorityClass"))]
    return spec


def _workload(chance: random.Random, kind: str, name: str, namespace: str) -> Raw:
    template = _template(chance, kind, name)
    if kind == "Pod":
        return {**_object("v1", "Pod", name, namespace), "spec": template["spec"]}
    spec: Raw = {"template": template}
    if kind in ("Job", "CronJob"):
        spec |= {"parallelism": chance.randint(1, _AT_MOST)}
        if chance.random() < 0.6:
            spec["completions"] = chance.randint(1, _AT_MOST)
            spec["completionMode"] = chance.choice(("Indexed", "NonIndexed"))
        if kind == "CronJob":
            spec = {
                "schedule": "* * * * *",
                "concurrencyPolicy": "Forbid",
                "jobTemplate": {"spec": spec},
            }
    elif kind == "ReplicationController":
        spec |= {"replicas": chance.randint(1, _AT_MOST), "selector": {"app": name}}
    else:
        spec["selector"] = {"matchLabels": {"app": name}}
        if kind != "DaemonSet":
            spec["replicas"] = chance.randint(1, _AT_MOST)
    if kind == "StatefulSet":
        spec |= {"serviceName": name, "podManagementPolicy": "Parallel"}
        if chance.random() < 0.5:
            spec["ordinals"] = {"start": chance.randint(1, 7)}
        if chance.random() < 0.5:
            spec["volumeClaimTemplates"] = [
                {"metadata": {"name": "data"}, "spec": _claim()},
            ]
    return {**_object(_VERSIONS[kind], kind, name, namespace), "spec": spec}


def _claim() -> Raw:
    return {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def _template(chance: random.Random, kind: str, name: str) -> Raw:
    containers = [_container(chance, f"c{n}") for n in range(chance.randint(1, 2))]
    spec: Raw = {"containers": containers}
    if kind in ("Job", "CronJob"):
        spec |= {"restartPolicy": "Never", "activeDeadlineSeconds": 3600}
    for share, drawn_fields in (
        (0.3, {"initContainers": [_container(chance, "i0")]}),
        (0.2, {"initContainers": [{**_container(chance, "i0"), "restartPolicy": "Always"}]}),
        (0.3, {"runtimeClassName": chance.choice(("kata", "plain"))}),
        (0.3, {"priorityClassName": chance.choice(_PRIORITIES)}),
        (0.3, {"nodeSelector": chance.choice(({"team": "a"}, {"runtime": "kata"}))}),
        (0.4, {"tolerations": chance.sample(_TOLERATIONS, chance.randint(1, 2))}),
        (0.2, {"hostNetwork": True, "containers": [_with_port(entry) for entry in containers]}),
        (0.3, {"volumes": chance.sample(_VOLUMES, chance.randint(1, 2))}),
        (0.2, {"resources": chance.choice(_OF_PODS)}),
        (0.4, {"affinity": {"podAntiAffinity": {_REQUIRED: [_rule(chance, name)]}}}),
        (0.4, {"topologySpreadConstraints": [{**_rule(chance, name), **_spread(chance)}]}),
    ):
        if chance.random() < share:
            spec |= drawn_fields
    return {"metadata": {"labels": {"app": name}}, "spec": spec}


def _rule(chance: random.Random, name: str) -> Raw:
    rule: Raw = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": name}},
    }
    return {**rule, "matchLabelKeys": [chance.choice(_KEYS)]} if chance.random() < 0.5 else rule


def _spread(chance: random.Random) -> Raw:
    policy = chance.choice(("DoNotSchedule", "ScheduleAnyway"))
    return {"maxSkew": 1, "whenUnsatisfiable": policy}


def _with_port(container: Raw) -> Raw:
    return {**container, "ports": [{"containerPort": 8000 + int(container["name"][1:])}]}


_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PRIORITIES: Final = ("hurried", "patient", "system-node-critical")
_KEYS: Final = (
    "pod-template-hash",
    "controller-revision-hash",
    "apps.kubernetes.io/pod-index",
    "batch.kubernetes.io/job-name",
    "tier",
)
_TOLERATIONS: Final[tuple[Raw, ...]] = (
    {"key": "team", "operator": "Equal", "value": "a", "effect": "NoSchedule"},
    {"key": "kata", "operator": "Exists", "effect": "NoSchedule"},
    {"operator": "Exists"},
    {
        "key": "node.kubernetes.io/not-ready",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 30,
    },
    {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
)
_VOLUMES: Final[tuple[Raw, ...]] = (
    {"name": "data", "persistentVolumeClaim": {"claimName": "shared"}},
    {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": _claim()}}},
    {"name": "empty", "emptyDir": {}},
)
_OF_PODS: Final[tuple[Raw, ...]] = (
    {"limits": {"cpu": "6"}},
    {"requests": {"cpu": "5"}, "limits": {"cpu": "6", "memory": "8Gi"}},
)


def _container(chance: random.Random, name: str) -> Raw:
    container: Raw = {"name": name, "image": "registry.example/app:1"}
    requests, limits = {}, {}
    for resource, low, high in (("cpu", "200m", "800m"), ("memory", "128Mi", "512Mi")):
        if chance.random() < 0.4:
            requests[resource] = low
        if chance.random() < 0.3:
            limits[resource] = high
    if chance.random() < 0.15:
        limits["nvidia.com/gpu"] = "1"
    resources = {"requests": requests, "limits": limits}
    return {**container, "resources": {key: value for key, value in resources.items() if value}}
