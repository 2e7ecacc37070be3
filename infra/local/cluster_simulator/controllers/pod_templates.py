"""Pods made from a workload's template, and what all workload controllers ask about pods."""

import hashlib
from collections.abc import Iterable
from typing import Any, Final

import orjson

from infra.local.cluster_simulator.client import Json
from infra.local.cluster_simulator.kinds import POD, Kind
from infra.local.cluster_simulator.rules.view import is_finished
from infra.local.cluster_simulator.world import condition_of, is_terminating, is_true, stamp

_HASH_LENGTH: Final = 10
_STAY_SECONDS: Final = 300
_ILL: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def template_hash(template: Json) -> str:
    """Return a short text that changes when a pod template does."""
    text = orjson.dumps(template, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(text).hexdigest()[:_HASH_LENGTH]


def owner_reference(kind: Kind, owner: Json) -> Json:
    """Return the reference by which a controller marks what is its own."""
    reference = kind.reference(owner) | {"controller": True, "blockOwnerDeletion": True}
    reference.pop("namespace", None)
    return reference


def pod_for(kind: Kind, owner: Json, *, name: str = "", labels: Json | None = None) -> Json:
    """Return a new pod of a workload.

    Args:
        kind: The owner's kind.
        owner: A workload with a pod template in its spec.
        name: Exact name of the pod; generated from the owner's when empty.
        labels: Labels on top of the template's.
    """
    template = owner["spec"]["template"]
    meta = template.get("metadata") or {}
    metadata: dict[str, Any] = {
        "namespace": owner["metadata"]["namespace"],
        "labels": {**(meta.get("labels") or {}), **(labels or {})},
        "annotations": meta.get("annotations") or {},
        "ownerReferences": [owner_reference(kind, owner)],
    }
    if name:
        metadata["name"] = name
    else:
        metadata["generateName"] = f"{owner['metadata']['name']}-"
    # What the DefaultTolerationSeconds admission plug-in would add.
    spec = {**template["spec"]}
    tolerations = list(spec.get("tolerations") or ())
    covered = {t.get("key") for t in tolerations if t.get("effect") in {None, "", "NoExecute"}}
    if None not in covered:
        tolerations += [
            {
                "key": key,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": _STAY_SECONDS,
            }
            for key in _ILL
            if key not in covered
        ]
    return POD.document(metadata, spec={**spec, "tolerations": tolerations})


def is_active(pod: Json) -> bool:
    """Return whether a pod counts as a replica: neither ended nor on its way out."""
    return not is_finished(pod) and not is_terminating(pod)


def ready_count(pods: Iterable[Json]) -> int:
    return sum(is_true(pod, "Ready") for pod in pods)


def condition(kind: str, *, holds: bool, reason: str, old: Json) -> Json:
    """Return a status condition; it keeps its times while nothing changes."""
    status = "True" if holds else "False"
    before = condition_of(old, kind)
    if (before.get("status"), before.get("reason")) == (status, reason):
        return before
    now = stamp()
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": reason,
        "lastTransitionTime": now,
    }
