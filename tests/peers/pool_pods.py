"""Pods that the author of some NodePools would run on them, and some that find no place there.

They follow from what each NodePool says: its requirements, labels, taints and limits. A seed draws
values and sizes.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType
from shared.model.quantity import parse_cpu_millis
from tests.peers.cases import needs, pod_template, required, spread_over, term_of
from tests.peers.problems import Raw, Workload

# Label key to what the table calls it.
_ASKED: Final[Mapping[str, str]] = {
    keys.ZONE: "zone",
    keys.ARCH: "architecture",
    keys.CAPACITY_TYPE: "capacity type",
    keys.INSTANCE_TYPE: "instance type",
    keys.INSTANCE_FAMILY: "instance family",
    keys.INSTANCE_SIZE: "instance size",
    keys.INSTANCE_CATEGORY: "instance category",
    keys.INSTANCE_GENERATION: "instance generation",
    keys.INSTANCE_CPU: "vCPUs",
    keys.INSTANCE_HYPERVISOR: "hypervisor",
    keys.OS: "operating system",
}
_OLDER_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
_OLDER_ARCH: Final = "beta.kubernetes.io/arch"
_DEVICES: Final = {
    "nvidia.com/gpu": "an NVIDIA GPU",
    "aws.amazon.com/neuron": "a Neuron device",
}
_CPUS: Final = (100, 250, 500, 1000, 2000)
_MEMORIES_MIB: Final = (128, 512, 1024, 4096)
_MORE_THAN_ANY: Final = 2_000_000
_HARD: Final = ("NoSchedule", "NoExecute")
# Karpenter looks at every type of every NodePool for each decision.
MOST_WORKLOADS: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Pods of one template, and what they ask for.

    Attributes:
        kind: What the table counts them as.
    """

    kind: str
    workload: Workload


def pods_for(pools: Sequence[Raw], types: Sequence[InstanceType], seed: int) -> list[Asked]:
    """Return pods for NodePools, in an order that follows from them alone.

    For many NodePools MOST_WORKLOADS of their workloads are drawn.
    """
    sold = _sold(types)
    found: list[Asked] = []
    for number, pool in enumerate(pools):
        rng = random.Random(f"{seed} {pool['metadata']['name']} {number}")
        for kind, replicas, spec, size in _pods(pool, sold, rng):
            name = f"pods{len(found)}"
            cpu = size.pop("cpu", None) or rng.choice(_CPUS)
            template = pod_template(
                {"app": name}, cpu, size.pop("memory", None) or rng.choice(_MEMORIES_MIB), **spec
            )
            resources = template["spec"]["containers"][0]["resources"]
            resources["requests"].update(size)
            if devices := {key: value for key, value in size.items() if key in _DEVICES}:
                resources["limits"] = devices
            _select_own(template, name)
            workload = Workload(name=name, replicas=replicas, template=template)
            found.append(Asked(kind=kind, workload=workload))
    drawn = random.Random(seed).sample(range(len(found)), min(len(found), MOST_WORKLOADS))
    return [found[number] for number in sorted(drawn)]


def _sold(types: Iterable[InstanceType]) -> dict[str, list[str]]:
    """Return the values that machines of the catalogue have of each label, sorted."""
    found: dict[str, set[str]] = {}
    for entry in types:
        for key, value in entry.labels.items():
            found.setdefault(key, set()).add(value)
        for offering in entry.offerings:
            found.setdefault(keys.ZONE, set()).add(offering.zone)
            found.setdefault(keys.CAPACITY_TYPE, set()).add(offering.capacity_type.value)
    return {key: sorted(values) for key, values in found.items()}


_Pods = tuple[str, int, dict[str, Any], dict[str, Any]]


def _pods(pool: Raw, sold: Mapping[str, list[str]], rng: random.Random) -> Iterator[_Pods]:
    """Yield kind, replicas, spec and size of pods for a NodePool."""
    spec = pool["spec"]["template"]["spec"]
    tolerations = list(_tolerations(spec, rng))
    own = {keys.NODE_POOL: pool["metadata"]["name"]}

    def pods(kind: str, replicas: int = 1, **more: Any) -> _Pods:
        size = more.pop("size", {})
        return kind, replicas, {"tolerations": tolerations, **more}, size

    def pinned(kind: str, replicas: int = 1, **more: Any) -> _Pods:
        return pods(kind, replicas, nodeSelector={**own, **more.pop("selector", {})}, **more)

    yield pods("nothing but tolerations", 3)
    yield pinned("the NodePool by name", 2)
    if labels := pool["spec"]["template"].get("metadata", {}).get("labels"):
        yield pods("the NodePool's labels", 2, nodeSelector=dict(labels))
    for need in spec["requirements"]:
        if need["operator"] == "In" and need.get("values"):
            name = _ASKED.get(need["key"], "another label")
            value = rng.choice(need["values"])
            yield pods(f"{name}, named by the NodePool", nodeSelector={need["key"]: value})
    for key, name in _ASKED.items():
        value = rng.choice(sold[key])
        yield pinned(f"{name}, any there is", selector={key: value})
    yield pinned("zone, by its older label", selector={_OLDER_ZONE: rng.choice(sold[keys.ZONE])})
    yield pinned("architecture, by its older label", selector={_OLDER_ARCH: "amd64"})
    yield from (
        pinned("a rule of each operator", affinity=_node_affinity(need))
        for need in (
            needs(keys.ZONE, "NotIn", *rng.sample(sold[keys.ZONE], 2)),
            needs(keys.INSTANCE_CATEGORY, "In", "c", "m"),
            needs(keys.INSTANCE_CPU, "Gt", "7"),
            needs(keys.INSTANCE_GENERATION, "Lt", "6"),
            needs(keys.INSTANCE_GPU_NAME, "DoesNotExist"),
            needs(keys.INSTANCE_LOCAL_NVME, "Exists"),
            needs("example.com/absent", "DoesNotExist"),
        )
    )
    if any(taint["effect"] in _HARD for taint in spec.get("taints", ())):
        yield "a taint not tolerated", 1, {"nodeSelector": own}, {}
    yield from _limits(pool, pinned)


def _limits(pool: Raw, pinned: Callable[..., _Pods]) -> Iterator[_Pods]:
    """Yield pods with rules between them, and those at the limits of machines and NodePool."""
    for key, kind in (
        (keys.ZONE, "spread over zones"),
        (keys.HOSTNAME, "spread over hosts"),
        (keys.CAPACITY_TYPE, "spread over capacity types"),
    ):
        yield pinned(kind, 4, topologySpreadConstraints=[spread_over(key, {})])
    apart = required("podAntiAffinity", term_of(keys.HOSTNAME, {}))
    yield pinned("no host together", 2, affinity=apart)
    together = required("podAffinity", term_of(keys.ZONE, {}))
    yield pinned("one zone together", 3, affinity=together)
    for device, kind in _DEVICES.items():
        yield pinned(kind, size={device: "1"})
    yield pinned("a large disk", size={"ephemeral-storage": "30Gi"})
    yield pinned("more than any machine has", size={"cpu": _MORE_THAN_ANY})
    if "cpu" in pool["spec"].get("limits", {}):
        limit = parse_cpu_millis(pool["spec"]["limits"]["cpu"])
        yield pinned("more than the limit", size={"cpu": limit + 1000})
    yield pinned("a label that no node has", selector={"example.com/absent": "x"})


def _tolerations(spec: Raw, rng: random.Random) -> Iterator[dict[str, str]]:
    for taint in spec.get("taints", ()):
        if rng.random() < 0.5 or not taint.get("value"):
            yield {"key": taint["key"], "operator": "Exists", "effect": taint["effect"]}
        else:
            yield {"key": taint["key"], "value": taint["value"], "effect": taint["effect"]}


def _node_affinity(need: Raw) -> dict[str, Any]:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [need]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def _select_own(template: Raw, name: str) -> None:
    """Let rules between pods select the pods of the template."""
    spec = template["spec"]
    rules = list(spec.get("topologySpreadConstraints", ()))
    for kind in ("podAffinity", "podAntiAffinity"):
        rules += spec.get("affinity", {}).get(kind, {}).values()
    for rule in rules:
        for entry in rule if isinstance(rule, list) else [rule]:
            entry["labelSelector"] = {"matchLabels": {"app": name}}
