"""Edited NodePools and Provisioners, and patches of workloads, as YAML."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml
from msgspec import Struct

from functions.cli.plan.cost_of_rules import Rule, RuleKind
from functions.cli.plan.svg_plan import workload_of
from shared.manifests.raw_json import Raw, mapping, mappings, text
from shared.model import labels as keys
from shared.model.dialect import WHEN_EMPTY, OwnerKind
from shared.model.kubernetes.pods import Pod
from shared.model.requirements import Requirement, Requirements

# What the API server or a controller writes.
_OF_THE_SERVER: Final = frozenset(
    {"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"}
)
_OF_CONTROLLERS: Final = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        "karpenter.sh/nodepool-hash",
        "karpenter.sh/nodepool-hash-version",
        "karpenter.sh/provisioner-hash",
    }
)
_UNDERUTILIZED: Final = {"karpenter.sh/v1beta1": "WhenUnderutilized"}
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_SPREADS: Final = "topologySpreadConstraints"
# A Job's template cannot be changed.
_KINDS: Final = frozenset({"StatefulSet", "ReplicaSet"})


def with_requirements(raw: Raw, before: Requirements, after: Requirements) -> Raw:
    """Return a NodePool or Provisioner with other requirements; all other fields stay.

    Args:
        before: What it requires, its defaults included.
        after: What it shall require.
    """
    changed = {
        key
        for key in sorted({item.key for item in (*before, *after)})
        if before.get(key) != after.get(key)
    }
    path = _requirements_path(raw)
    kept = [
        entry
        for entry in mappings(_at(raw, path).get("requirements"))
        if keys.normalize(text(entry.get("key"))) not in changed
    ]
    added = [entry for item in after if item.key in changed for entry in _written(item)]
    return _with(raw, (*path, "requirements"), [*kept, *added])


def consolidating(raw: Raw) -> Raw | None:
    """Return a NodePool or Provisioner whose nodes are consolidated; None if nothing is to edit."""
    if raw.get("kind") == OwnerKind.PROVISIONER:
        if _at(raw, ("spec", "consolidation")).get("enabled") is True:
            return None
        spec = {k: v for k, v in _at(raw, ("spec",)).items() if k != "ttlSecondsAfterEmpty"}
        return _with(raw, ("spec",), {**spec, "consolidation": {"enabled": True}})
    disruption = _at(raw, ("spec", "disruption"))
    edited: dict[str, Any] = {**disruption}
    if disruption.get("consolidationPolicy") == WHEN_EMPTY:
        policy = _UNDERUTILIZED.get(text(raw.get("apiVersion")), "WhenEmptyOrUnderutilized")
        edited["consolidationPolicy"] = policy
        if policy in _UNDERUTILIZED.values():
            edited.pop("consolidateAfter", None)
    if disruption.get("consolidateAfter") == "Never":
        edited["consolidateAfter"] = "1m"
    if isinstance(budgets := disruption.get("budgets"), list):
        edited["budgets"] = [
            {**entry, "nodes": "10%"} if _allows_nothing(entry) else entry
            for entry in mappings(budgets)
        ]
    return None if edited == disruption else _with(raw, ("spec", "disruption"), edited)


def _allows_nothing(budget: Mapping[str, Any]) -> bool:
    """Return whether a budget never allows a node to be disrupted."""
    return str(budget.get("nodes")) in ("0", "0%") and not budget.get("schedule")


def manifest_yaml(raw: Raw) -> str:
    """Return an object as YAML that can be applied, without what the API server wrote."""
    metadata = {k: v for k, v in mapping(raw.get("metadata")).items() if k not in _OF_THE_SERVER}
    if "annotations" in metadata:
        annotations = mapping(metadata["annotations"])
        metadata["annotations"] = {k: v for k, v in annotations.items() if k not in _OF_CONTROLLERS}
        if not metadata["annotations"]:
            del metadata["annotations"]
    head = {"apiVersion": raw.get("apiVersion"), "kind": raw.get("kind"), "metadata": metadata}
    rest = {k: v for k, v in raw.items() if k not in (*head, "status")}
    return _dump({**head, **rest})


class WorkloadPatch(Struct, frozen=True, kw_only=True):
    """A strategic merge patch of a workload.

    Attributes:
        manifest: As YAML.
    """

    kind: str
    namespace: str
    name: str
    manifest: str

    @property
    def command(self) -> str:
        """The command that applies it from a file."""
        return (
            f"kubectl patch {self.kind.lower()} {self.name} -n {self.namespace} --patch-file FILE"
        )


def patch_without(pod: Pod, spec: Raw, rule: Rule, *, softened: bool) -> WorkloadPatch | None:
    """Return a patch that takes a rule from a workload; None where no patch can.

    Args:
        spec: Of the pod, as the API server has it.
        softened: Whether the rule becomes a preference where there is one of its kind.
    """
    if pod.owner is None or pod.owner.kind not in _KINDS:
        return None
    name = workload_of(pod).partition("/")[2]
    kind = "Deployment" if name != pod.owner.name else pod.owner.kind
    patch = {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"namespace": pod.namespace, "name": name},
        "spec": {"template": {"spec": _patched(spec, rule, softened=softened)}},
    }
    return WorkloadPatch(kind=kind, namespace=pod.namespace, name=name, manifest=_dump(patch))


def _patched(spec: Raw, rule: Rule, *, softened: bool) -> dict[str, Any]:
    match rule.kind:
        case RuleKind.SPREAD:
            soft = {"whenUnsatisfiable": "ScheduleAnyway"} if softened else {"$patch": "delete"}
            return {_SPREADS: [{"topologyKey": rule.key, **soft}]}
        case RuleKind.AFFINITY | RuleKind.ANTI_AFFINITY:
            part = "podAffinity" if rule.kind == RuleKind.AFFINITY else "podAntiAffinity"
            return {"affinity": {part: _terms(spec, part, rule, softened=softened)}}
        case RuleKind.NODES:
            selector = {"nodeSelector": None} if "nodeSelector" in spec else {}
            return {**selector, **_without_parts(spec, _REQUIRED, "nodeAffinity")}
        case _:
            soft_keys = [
                {"topologyKey": entry.get("topologyKey"), "$patch": "delete"}
                for entry in mappings(spec.get(_SPREADS))
                if entry.get("whenUnsatisfiable") == "ScheduleAnyway"
            ]
            parts = ("nodeAffinity", "podAffinity", "podAntiAffinity")
            spreads = {_SPREADS: soft_keys} if soft_keys else {}
            return {**spreads, **_without_parts(spec, _PREFERRED, *parts)}


def _terms(spec: Raw, part: str, rule: Rule, *, softened: bool) -> dict[str, Any]:
    """Return the part of an affinity without its required terms over a key."""
    given = _at(spec, ("affinity", part))
    required = mappings(given.get(_REQUIRED))
    kept = [term for term in required if term.get("topologyKey") != rule.key]
    found: dict[str, Any] = {_REQUIRED: kept or None}
    if softened:
        found[_PREFERRED] = [
            *mappings(given.get(_PREFERRED)),
            *({"weight": 100, "podAffinityTerm": term} for term in required if term not in kept),
        ]
    return found


def _without_parts(spec: Raw, field: str, *parts: str) -> dict[str, Any]:
    affinity = {part: {field: None} for part in parts if _at(spec, ("affinity", part)).get(field)}
    return {"affinity": affinity} if affinity else {}


def _written(item: Requirement) -> Iterator[Mapping[str, Any]]:
    """Yield a requirement as a manifest writes it."""
    if not item.complement:
        yield {"key": item.key, "operator": "In", "values": sorted(item.values)}
    else:
        # Edits set no other bound than the least generation.
        yield {"key": item.key, "operator": "Gt", "values": [str((item.minimum or 0) - 1)]}


def _requirements_path(raw: Raw) -> tuple[str, ...]:
    if raw.get("kind") == OwnerKind.PROVISIONER:
        return ("spec",)
    return ("spec", "template", "spec")


def _at(raw: Raw, path: tuple[str, ...]) -> Raw:
    for name in path:
        raw = mapping(raw.get(name))
    return raw


def _with(raw: Raw, path: tuple[str, ...], value: object) -> Raw:
    first, *rest = path
    inner = _with(mapping(raw.get(first)), tuple(rest), value) if rest else value
    return {**raw, first: inner}


def _dump(document: Mapping[str, Any]) -> str:
    return str(yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=1000))
