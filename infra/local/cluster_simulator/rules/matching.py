"""Selectors, node affinity, taints and tolerations on raw objects (standard library only).

Source: https://kubernetes.io/docs/concepts/scheduling-eviction/ (2026-08).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

Object = Mapping[str, Any]

HARD_EFFECTS: Final = ("NoSchedule", "NoExecute")
# What Go reads as a number of base ten; Python would take 1_0 and digits of other scripts, too.
_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1


def labels_of(thing: Object) -> Mapping[str, str]:
    return thing["metadata"].get("labels") or {}


def matches_expression(expression: Object, labels: Mapping[str, str]) -> bool:
    """Return whether labels satisfy one requirement of a label or node selector."""
    operator, actual = expression["operator"], labels.get(expression["key"])
    values = expression.get("values") or ()
    if operator == "In":
        return actual is not None and actual in values
    if operator == "NotIn":
        return actual is None or actual not in values
    if operator == "Exists":
        return actual is not None
    if operator == "DoesNotExist":
        return actual is None
    return _compares(operator, actual, values)


def _compares(operator: str, actual: str | None, values: Sequence[str]) -> bool:
    if actual is None or len(values) != 1:
        return False
    left, right = _number(actual), _number(values[0])
    if left is None or right is None:
        return False
    return left > right if operator == "Gt" else operator == "Lt" and left < right


def _number(text: str) -> int | None:
    """Return a signed whole number of 64 bits, None for any other text."""
    if not _WHOLE_NUMBER.fullmatch(text):
        return None
    number = int(text)
    return number if _LEAST <= number <= _MOST else None


def matches_selector(selector: Object | None, labels: Mapping[str, str]) -> bool:
    """Return whether a LabelSelector matches: no selector matches nothing, an empty one all."""
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        matches_expression(expression, labels)
        for expression in selector.get("matchExpressions") or ()
    )


def matches_node_selector(selector: Object | None, node: Object) -> bool:
    """Return whether any term of a NodeSelector matches; no selector matches every node."""
    if selector is None:
        return True
    return any(matches_node_term(term, node) for term in selector.get("nodeSelectorTerms") or ())


def matches_node_term(term: Object, node: Object) -> bool:
    """Return whether one node selector term matches; an empty term matches nothing."""
    expressions = term.get("matchExpressions") or ()
    fields = term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    names = {"metadata.name": node["metadata"]["name"]}
    return all(matches_expression(e, labels_of(node)) for e in expressions) and all(
        matches_expression(f, names) for f in fields
    )


def matches_node_affinity(pod: Object, node: Object) -> bool:
    """Return whether a node satisfies a pod's nodeSelector and required node affinity."""
    spec = pod["spec"]
    labels = labels_of(node)
    if any(labels.get(k) != v for k, v in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    return matches_node_selector(
        affinity.get("requiredDuringSchedulingIgnoredDuringExecution"), node
    )


def tolerates(toleration: Object, taint: Object) -> bool:
    """Return whether one toleration accepts one taint."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Equal":
        return (toleration.get("value") or "") == (taint.get("value") or "")
    return bool(operator == "Exists")


def untolerated(
    taints: Iterable[Object], pod: Object, effects: Sequence[str] = HARD_EFFECTS
) -> Object | None:
    """Return the first taint of these effects that a pod does not tolerate."""
    tolerations = pod["spec"].get("tolerations") or ()
    for taint in taints:
        if taint["effect"] in effects and not any(tolerates(t, taint) for t in tolerations):
            return taint
    return None


def taints_of(node: Object) -> Sequence[Object]:
    return (node.get("spec") or {}).get("taints") or ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """Raw API objects around one decision.

    Attributes:
        nodes: Every node, also those that cannot take the pod: they form topology domains.
        pods: The pods bound to nodes; finished ones are left out by the reader.
        csi_nodes: CSINodes by name: how many volumes each driver attaches to the node.
        nominated: Pods without a node for which others are being preempted; their place is kept.
    """

    nodes: Sequence[Object] = ()
    pods: Sequence[Object] = ()
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    claims: Mapping[tuple[str, str], Object] = field(default_factory=dict)
    volumes: Mapping[str, Object] = field(default_factory=dict)
    storage_classes: Mapping[str, Object] = field(default_factory=dict)
    csi_nodes: Mapping[str, Object] = field(default_factory=dict)
    nominated: Sequence[Object] = ()


def is_finished(pod: Object) -> bool:
    """Return whether a pod has ended and no longer counts on its node."""
    return (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}


def condition_of(obj: Object, kind: str) -> Object:
    """Return one of an object's status conditions, empty when it is not there."""
    conditions: Sequence[Object] = (obj.get("status") or {}).get("conditions") or ()
    return next((entry for entry in conditions if entry["type"] == kind), {})


def is_true(obj: Object, kind: str) -> bool:
    """Return whether a status condition holds."""
    return condition_of(obj, kind).get("status") == "True"
