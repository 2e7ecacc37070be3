"""Short ways to write manifests, which are decoded like any others.

A case so covers the way from the document to the decision.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from shared.manifests.custom_resources.provisioners import decode_provisioner
from shared.manifests.daemonsets import decode_daemonset
from shared.manifests.pods import PodDecoder
from shared.model import labels as keys
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.pods import Pod
from shared.model.provisioner import Provisioner
from tests.karpenter_cases.scheduling.market import GENERATION

TEAM: Final = "example.com/team"
APP: Final = {"app": "web"}

Expression = tuple[str, ...]
Raw = dict[str, Any]


def wants(key: str, operator: str, *values: str) -> Raw:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def provisioner(name: str = "default", *requirements: Expression, **spec: Any) -> Provisioner:
    """Return a Provisioner of all types, both architectures and both capacity types.

    A requirement on one of these keys replaces what would be allowed.
    """
    open_to = (
        (keys.CAPACITY_TYPE, "In", "on-demand", "spot"),
        (keys.ARCH, "In", "amd64", "arm64"),
        (GENERATION, "Gt", "0"),
    )
    named = {requirement[0] for requirement in requirements} | set(spec.get("labels", {}))
    given = [*requirements, *(entry for entry in open_to if entry[0] not in named)]
    return decode_provisioner(
        {
            "apiVersion": "karpenter.sh/v1alpha5",
            "kind": "Provisioner",
            "metadata": {"name": name, "uid": f"uid-{name}", **spec.pop("metadata", {})},
            "spec": {
                "requirements": [wants(*entry) for entry in given],
                "provider": {"subnetSelector": {"a": "b"}, "securityGroupSelector": {"a": "b"}},
                **spec,
            },
        }
    )


def container(
    cpu: str = "", memory: str = "", extra: Mapping[str, str] | None = None, **more: Any
) -> Raw:
    """Return a container that requests the amounts that are not empty."""
    requests = {name: value for name, value in (("cpu", cpu), ("memory", memory)) if value}
    return {"name": "main", "resources": {"requests": {**requests, **(extra or {})}}, **more}


def spread(
    key: str = keys.ZONE,
    skew: int = 1,
    *,
    soft: bool = False,
    match: Mapping[str, str] | None = APP,
    **more: Any,
) -> Raw:
    selector = {} if match is None else {"labelSelector": {"matchLabels": dict(match)}}
    return {
        "topologyKey": key,
        "maxSkew": skew,
        "whenUnsatisfiable": "ScheduleAnyway" if soft else "DoNotSchedule",
        **selector,
        **more,
    }


def near(key: str = keys.HOSTNAME, match: Mapping[str, str] = APP, **more: Any) -> Raw:
    """Return a term of pod affinity or anti-affinity."""
    return {"topologyKey": key, "labelSelector": {"matchLabels": dict(match)}, **more}


def affinity(
    *,
    required: Sequence[Sequence[Expression]] = (),
    preferred: Sequence[tuple[int, Sequence[Expression]]] = (),
    together: Sequence[Raw] = (),
    apart: Sequence[Raw] = (),
    rather_together: Sequence[tuple[int, Raw]] = (),
    rather_apart: Sequence[tuple[int, Raw]] = (),
) -> Raw:
    """Return an `affinity` block: node terms as key, operator and values; pod terms as `near`."""
    need, like = (
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
    )

    def term(expressions: Sequence[Expression]) -> Raw:
        return {"matchExpressions": [wants(*expression) for expression in expressions]}

    def weighted(terms: Sequence[tuple[int, Raw]]) -> list[Raw]:
        return [{"weight": weight, "podAffinityTerm": entry} for weight, entry in terms]

    node: Raw = {}
    if required:
        node[need] = {"nodeSelectorTerms": [term(entry) for entry in required]}
    if preferred:
        node[like] = [{"weight": weight, "preference": term(entry)} for weight, entry in preferred]
    return {
        "nodeAffinity": node,
        "podAffinity": {need: list(together), like: weighted(rather_together)},
        "podAntiAffinity": {need: list(apart), like: weighted(rather_apart)},
    }


AFFINITY_WORDS: Final = (
    "required",
    "preferred",
    "together",
    "apart",
    "rather_together",
    "rather_apart",
)
_DECODER: Final = PodDecoder()


def pod_manifest(
    name: str = "a",
    *,
    cpu: str = "500m",
    memory: str = "512Mi",
    extra: Mapping[str, str] | None = None,
    labels: Mapping[str, str] = APP,
    namespace: str = "default",
    node: str = "",
    phase: str = "",
    deleting: bool = False,
    owner: str = "ReplicaSet",
    owner_name: str = "o",
    selector: Mapping[str, str] | None = None,
    spreads: Sequence[Raw] = (),
    **spec: Any,
) -> Raw:
    """Return a pod: one that waits for capacity, or one that is bound to `node`."""
    words = {value: spec.pop(value) for value in AFFINITY_WORDS if value in spec}
    if words:
        spec["affinity"] = affinity(**words)
    metadata: Raw = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{namespace}-{name}",
        "labels": dict(labels),
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [
            {
                "kind": owner,
                "name": owner_name,
                "uid": owner_name,
                "apiVersion": "apps/v1",
                "controller": True,
            }
        ],
    }
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:10:00Z"
    waiting = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "containers": [container(cpu, memory, extra)],
            "nodeSelector": dict(selector or {}),
            "topologySpreadConstraints": list(spreads),
            **({"nodeName": node} if node else {}),
            **spec,
        },
        "status": {
            "phase": phase or ("Running" if node else "Pending"),
            "conditions": [] if node else [waiting],
        },
    }


def pod(name: str = "a", **words: Any) -> Pod:
    return _DECODER.decode(pod_manifest(name, **words))


def pods(count: int, prefix: str = "p", **words: Any) -> tuple[Pod, ...]:
    return tuple(pod(f"{prefix}{number:03}", **words) for number in range(count))


def daemonset(name: str = "agent", cpu: str = "1", memory: str = "1Gi", **spec: Any) -> DaemonSet:
    words = {value: spec.pop(value) for value in AFFINITY_WORDS if value in spec}
    if words:
        spec["affinity"] = affinity(**words)
    spec.setdefault("containers", [container(cpu, memory)])
    return decode_daemonset(
        {
            "metadata": {"name": name, "namespace": "kube-system"},
            "spec": {"template": {"metadata": {"labels": {"app": name}}, "spec": spec}},
        }
    )


def taint(key: str, effect: str = "NoSchedule", value: str = "") -> Raw:
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


def tolerates(key: str = "", **more: str) -> Raw:
    return {**({"key": key} if key else {}), "operator": "Exists", **more}
