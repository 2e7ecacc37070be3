"""The problems of the table, by family and size; a seed draws what is random in them."""

import dataclasses
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, Final

from shared.instance_types.catalog import embedded_catalog
from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType, InstanceType, Offering, Overhead
from shared.model.resources import Resources
from shared.model.values import replace
from tests.benchmarks.packing import workloads as packed
from tests.peers.problems import Problem, Raw, Workload

# What four small DaemonSets take of each node.
DAEMONS: Final = Resources.of(cpu=280, memory=320 * 2**20, pods=4)
THREE_ZONES: Final = ("us-east-1a", "us-east-1b", "us-east-1c")
_CATEGORY: Final = "karpenter.k8s.aws/instance-category"
_GENERATION: Final = "karpenter.k8s.aws/instance-generation"
_CPU_COUNT: Final = "karpenter.k8s.aws/instance-cpu"
_SPREAD_KEYS: Final = {"spread": (keys.ZONE,), "soft-spread": (keys.ZONE, keys.HOSTNAME)}
_LETTERS: Final = "abcdefg"
_CPUS: Final = (100, 250, 500, 1000, 1500)
_MEMORIES_MIB: Final = (100, 256, 512, 1024, 2048, 4096)
_SINGLE: Final = {"S400": (250, 256), "S100": (1000, 1024), "S10": (10_000, 10_240)}


def needs(key: str, operator: str, *values: str) -> Raw:
    """Return a NodeSelectorRequirement."""
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


ON_DEMAND: Final = needs(keys.CAPACITY_TYPE, "In", "on-demand")
AMD64: Final = needs(keys.ARCH, "In", "amd64")
# Without it a Provisioner buys c, m and r only, a NodePool everything.
ANY_CATEGORY: Final = needs(_CATEGORY, "Exists")


@lru_cache(maxsize=8)
def instance_types(which: str, zones: Sequence[str] = ()) -> tuple[InstanceType, ...]:
    """Return types of the embedded catalogue, on demand, less what daemons take.

    Args:
        which: `usual` are c, m and r, amd64, newer than the second generation, no metal; `both`
            has arm64 too, `gpu` every amd64 type with Nvidia GPUs.
        zones: Only these; all without.
    """
    found = []
    for instance_type in embedded_catalog().instance_types:
        offerings = tuple(
            offering
            for offering in instance_type.offerings
            if offering.capacity_type == CapacityType.ON_DEMAND
            and (not zones or offering.zone in zones)
        )
        if offerings and _belongs(instance_type, which):
            overhead = replace(
                instance_type.overhead,
                system_reserved=instance_type.overhead.system_reserved + DAEMONS,
            )
            found.append(replace(instance_type, offerings=offerings, overhead=overhead))
    return tuple(found)


def _belongs(instance_type: InstanceType, which: str) -> bool:
    labels = instance_type.labels
    if labels.get(keys.INSTANCE_SIZE, "").startswith("metal"):
        return False
    amd64 = labels[keys.ARCH] == "amd64"
    usual = labels.get(_CATEGORY) in ("c", "m", "r") and int(labels.get(_GENERATION, "0")) > 2
    if which == "gpu":
        return amd64 and (usual or bool(instance_type.capacity["nvidia.com/gpu"]))
    return usual and (amd64 or which == "both")


@lru_cache(maxsize=1)
def linear_types() -> tuple[InstanceType, ...]:
    """Return the 400 types of Karpenter's own scheduling benchmark: the price follows the size."""
    found = []
    for cpus in range(1, 401):
        price = round((0.1 * cpus + 0.2 * cpus * 2**30 / 1e9) * 1e6)
        name = f"fake-it-{cpus - 1}"
        labels = {
            keys.ARCH: "amd64",
            keys.OS: "linux",
            keys.INSTANCE_TYPE: name,
            _CATEGORY: "m",
            _GENERATION: "9",
            _CPU_COUNT: str(cpus),
        }
        offerings = tuple(
            Offering(zone=zone, capacity_type=CapacityType.ON_DEMAND, price_micros_per_hour=price)
            for zone in ("test-zone-1", "test-zone-2", "test-zone-3")
        )
        found.append(
            InstanceType(
                name=name,
                labels=labels,
                capacity=Resources.of(cpu=1000 * cpus, memory=cpus * 2**31, pods=10 * cpus),
                overhead=Overhead(kube_reserved=Resources.of(cpu=100, memory=10 * 2**20)),
                offerings=offerings,
            )
        )
    return tuple(sorted(found, key=lambda entry: entry.name))


def pod_template(
    labels: dict[str, str], cpu_millis: int, memory_mib: int, *, gpus: int = 0, **spec: Any
) -> Raw:
    requests = {"cpu": f"{cpu_millis}m", "memory": f"{memory_mib}Mi"}
    resources: dict[str, Any] = {"requests": requests}
    if gpus:
        requests["nvidia.com/gpu"] = str(gpus)
        resources["limits"] = {"nvidia.com/gpu": str(gpus)}
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": resources}
    return {"metadata": {"labels": labels}, "spec": {"containers": [container], **spec}}


def spread_over(key: str, labels: dict[str, str], *, hard: bool = True) -> Raw:
    return {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        "labelSelector": {"matchLabels": labels},
    }


def term_of(key: str, labels: dict[str, str]) -> Raw:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}}


def required(kind: str, term: Raw) -> Raw:
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def plain(family: str, count: int, seed: int) -> Problem:
    """Return pods without rules between them: those of `make bench`."""
    if family in _SINGLE:
        rows = packed.single(count, *_SINGLE[family])
    else:
        rows = packed.WORKLOADS[family](count, seed)
    found = []
    for number, ((cpu, memory, gpus, where), replicas) in enumerate(packed.classes_of(rows)):
        spec: dict[str, Any] = {}
        if where in ("amd64", "arm64"):
            spec["nodeSelector"] = {keys.ARCH: where}
        elif where not in ("", "any"):
            spec["nodeSelector"] = {keys.INSTANCE_GPU_NAME: where.lower()}
        name = f"class{number}"
        template = pod_template({"app": name}, cpu, memory, gpus=gpus, **spec)
        found.append(Workload(name=name, replicas=replicas, template=template))
    which = {"constr": "both", "gpumix": "gpu"}.get(family, "usual")
    arch = needs(keys.ARCH, "In", "amd64", "arm64") if family == "constr" else AMD64
    return Problem(
        name=family,
        workloads=tuple(found),
        requirements=(ON_DEMAND, arch, ANY_CATEGORY),
        instance_types=instance_types(which),
    )


def topo(
    types: Callable[[], tuple[InstanceType, ...]], name: str, count: int, seed: int
) -> Problem:
    """Return the five kinds of pods of Karpenter's own scheduling benchmark, a fifth of each."""
    rng = random.Random(seed)
    groups: dict[str, list[Raw]] = defaultdict(list)
    fifth = count // 5

    def letter(key: str) -> dict[str, str]:
        return {key: rng.choice(_LETTERS)}

    def add(labels: dict[str, str], **spec: Any) -> None:
        template = pod_template(labels, rng.choice(_CPUS), rng.choice(_MEMORIES_MIB), **spec)
        groups[repr(template)].append(template)

    for _ in range(count - 4 * fifth):
        add(letter("my-label"))
    for key in (keys.ZONE, keys.HOSTNAME):
        for _ in range(fifth):
            spread = spread_over(key, letter("my-label"))
            add(letter("my-label"), topologySpreadConstraints=[spread])
    for _ in range(fifth):
        alike = letter("my-affinity")
        add(alike, affinity=required("podAffinity", term_of(keys.ZONE, alike)))
    apart = {"app": "nginx"}
    for _ in range(fifth):
        add(apart, affinity=required("podAntiAffinity", term_of(keys.HOSTNAME, apart)))
    return Problem(
        name=name,
        workloads=tuple(
            Workload(name=f"class{number}", replicas=len(alike), template=alike[0])
            for number, alike in enumerate(groups.values())
        ),
        requirements=(ON_DEMAND, AMD64),
        instance_types=types(),
    )


def spread(name: str, count: int, seed: int) -> Problem:
    """Return log-normal deployments: hard over zones, or soft over zones and over hosts."""
    found = []
    rows = packed.classes_of(packed.skew(count, seed))
    for number, ((cpu, memory, _, _), replicas) in enumerate(rows):
        labels = {"app": f"app{number}"}
        rules = [spread_over(key, labels, hard=name == "spread") for key in _SPREAD_KEYS[name]]
        template = pod_template(labels, cpu, memory, topologySpreadConstraints=rules)
        found.append(Workload(name=f"app{number}", replicas=replicas, template=template))
    return Problem(
        name=name,
        workloads=tuple(found),
        requirements=(ON_DEMAND, AMD64),
        instance_types=instance_types("usual"),
    )


def apart_if_possible(name: str, count: int, seed: int) -> Problem:
    """Return pods of one size that prefer a zone, and neither zone nor host with their like."""
    rng = random.Random(seed)
    labels = {"app": "nginx"}
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    near = {"matchExpressions": [needs(keys.ZONE, "In", THREE_ZONES[0])]}
    terms = [
        {"weight": weight, "podAffinityTerm": term_of(key, labels)}
        for weight, key in ((10, keys.ZONE), (1, keys.HOSTNAME))
    ]
    affinity = {
        "nodeAffinity": {preferred: [{"weight": 1, "preference": near}]},
        "podAntiAffinity": {preferred: terms},
    }
    size = (rng.choice(_CPUS), rng.choice(_MEMORIES_MIB))
    template = pod_template(labels, *size, affinity=affinity)
    return Problem(
        name=name,
        workloads=(Workload(name="choosy", replicas=count, template=template),),
        requirements=(ON_DEMAND, AMD64),
        instance_types=instance_types("usual"),
    )


def capped(asked: Problem, most_vcpus: int = 64) -> Problem:
    """Return the same with a pool that buys no machine of more vCPUs, as careful users write it."""
    cap = needs(_CPU_COUNT, "Lt", str(most_vcpus + 1))
    return dataclasses.replace(
        asked,
        name=f"{asked.name}, {most_vcpus} vCPUs at most",
        requirements=(*asked.requirements, cap),
    )


FAMILIES: Final[dict[str, Callable[[int, int], Problem]]] = {
    **{name: partial(plain, name) for name in (*_SINGLE, *packed.WORKLOADS)},
    "topo": partial(topo, lambda: instance_types("usual"), "topo"),
    "topo-3-zones": partial(topo, lambda: instance_types("usual", THREE_ZONES), "topo-3-zones"),
    "topo-linear": partial(topo, linear_types, "topo-linear"),
    "spread": partial(spread, "spread"),
    "soft-spread": partial(spread, "soft-spread"),
    "soft-apart": partial(apart_if_possible, "soft-apart"),
}
