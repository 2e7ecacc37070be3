"""DaemonSets."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from shared.manifests.affinity import REQUIRED, label_selector
from shared.manifests.fields import Raw, mapping, mappings, text, text_map
from shared.manifests.pods import decode_scheduling
from shared.manifests.runtime_classes import names_runtime, runtimes_by_name, with_runtime
from shared.manifests.sizes import excesses
from shared.model import labels as keys
from shared.model.kubernetes.daemonsets import DaemonSet
from shared.model.kubernetes.taints import Effect, Toleration

# Source: https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/#taints-and-tolerations
# (2026-08): what the DaemonSet controller adds to each of its pods.
_STANDARD: Final = tuple(
    Toleration(key=f"node.kubernetes.io/{name}", operator="Exists", effect=effect)
    for name, effect in (
        ("not-ready", Effect.NO_EXECUTE),
        ("unreachable", Effect.NO_EXECUTE),
        ("disk-pressure", Effect.NO_SCHEDULE),
        ("memory-pressure", Effect.NO_SCHEDULE),
        ("pid-pressure", Effect.NO_SCHEDULE),
        ("unschedulable", Effect.NO_SCHEDULE),
    )
)
_HOST_NETWORK: Final = Toleration(
    key="node.kubernetes.io/network-unavailable", operator="Exists", effect=Effect.NO_SCHEDULE
)


def wants_runtimes(raws: Iterable[Raw]) -> bool:
    """Return whether some DaemonSet's pods get something from a RuntimeClass."""
    return any(names_runtime(_pod_spec(raw)) for raw in raws)


def decode_daemonsets(raws: Iterable[Raw], runtimes: Iterable[Raw] = ()) -> tuple[DaemonSet, ...]:
    """Return the DaemonSets, sorted by namespace and name.

    Args:
        raws: DaemonSets.
        runtimes: RuntimeClasses that their pods may name.
    """
    known = runtimes_by_name(runtimes)
    found = (decode_daemonset(raw, known) for raw in raws)
    return tuple(sorted(found, key=lambda entry: (entry.namespace, entry.name)))


def decode_daemonset(raw: Raw, runtimes: Mapping[str, Raw] | None = None) -> DaemonSet:
    """Return the DaemonSet; its tolerations include those its controller adds to each pod.

    Args:
        raw: The DaemonSet.
        runtimes: RuntimeClasses by name, for what they add to its pods.
    """
    metadata = mapping(raw.get("metadata"))
    template = mapping(mapping(raw.get("spec")).get("template"))
    spec = _by_host(with_runtime(_pod_spec(raw), runtimes or {}))
    labels = text_map(mapping(template.get("metadata")).get("labels"))
    namespace = text(metadata.get("namespace"))
    # No pod name: claims of ephemeral volumes are named after each pod.
    of_pod = {"namespace": namespace, "labels": labels}
    scheduling = decode_scheduling(of_pod, spec, {})
    added = (*_STANDARD, _HOST_NETWORK) if spec.get("hostNetwork") is True else _STANDARD
    return DaemonSet(
        namespace=namespace,
        name=text(metadata.get("name")),
        labels=labels,
        problem=_problem(mapping(raw.get("spec")), labels) or next(excesses(scheduling), ""),
        scheduling=replace(
            scheduling, tolerations=tuple(dict.fromkeys((*scheduling.tolerations, *added)))
        ),
    )


def _pod_spec(raw: Raw) -> Raw:
    return mapping(mapping(mapping(raw.get("spec")).get("template")).get("spec"))


def _by_host(spec: Raw) -> Raw:
    """Return the spec with nodes named by their host label, where it names them by field.

    The controller looks at both, and a node that is still to come has neither.
    """
    affinity = mapping(spec.get("affinity"))
    of_nodes = mapping(affinity.get("nodeAffinity"))
    terms = mappings(mapping(of_nodes.get(REQUIRED)).get("nodeSelectorTerms"))
    if not any(term.get("matchFields") for term in terms):
        return spec
    named = [
        {
            "matchExpressions": [
                *mappings(term.get("matchExpressions")),
                *({**field, "key": keys.HOSTNAME} for field in mappings(term.get("matchFields"))),
            ]
        }
        for term in terms
    ]
    of_nodes = {**of_nodes, REQUIRED: {"nodeSelectorTerms": named}}
    return {**spec, "affinity": {**affinity, "nodeAffinity": of_nodes}}


def _problem(spec: Raw, labels: Mapping[str, str]) -> str:
    """Return why its controller makes no pods, empty when it does or nothing is said."""
    problems: list[str] = []
    selector = label_selector(spec.get("selector"), "spec.selector", problems)
    if problems:
        return problems[0]
    if selector is not None and not selector.selects(labels):
        return "spec.selector does not select the labels of spec.template"
    return ""
