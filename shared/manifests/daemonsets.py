"""DaemonSets."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from shared.manifests.admission import Admission, with_toleration
from shared.manifests.affinity import label_selector
from shared.manifests.controllers import Workload, controller_labels, daemonset_generation
from shared.manifests.pod_bounds import REQUIRED
from shared.manifests.pods import decode_scheduling
from shared.manifests.raw_json import Raw, mapping, mappings, text, text_map
from shared.manifests.runtime_classes import runtimes_by_name
from shared.model import labels as keys
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.pods import Scheduling
from shared.model.kubernetes.taints import Effect

# Source: https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/#taints-and-tolerations
# (2026-08): what the DaemonSet controller adds to each of its pods.
_STANDARD: Final = (
    ("not-ready", Effect.NO_EXECUTE),
    ("unreachable", Effect.NO_EXECUTE),
    ("disk-pressure", Effect.NO_SCHEDULE),
    ("memory-pressure", Effect.NO_SCHEDULE),
    ("pid-pressure", Effect.NO_SCHEDULE),
    ("unschedulable", Effect.NO_SCHEDULE),
)
ReadScheduling = Callable[[Raw, Raw, Raw], Scheduling]
_HOST_NETWORK: Final = ("network-unavailable", Effect.NO_SCHEDULE)


def names_runtime_class(raws: Iterable[Raw]) -> bool:
    """Return whether the pods of some DaemonSet name a RuntimeClass."""
    return any(text(_pod_spec(raw).get("runtimeClassName")) for raw in raws)


def decode_daemonsets(
    raws: Iterable[Raw], runtimes: Iterable[Raw] = (), read: ReadScheduling = decode_scheduling
) -> tuple[DaemonSet, ...]:
    """Return the DaemonSets, sorted by namespace and name.

    Args:
        raws: DaemonSets.
        runtimes: RuntimeClasses that their pods may name.
        read: `decode_scheduling`, or a function like it that has a cache.
    """
    admission = Admission(runtimes=runtimes_by_name(runtimes))
    found = (decode_daemonset(raw, admission, read) for raw in raws)
    return tuple(sorted(found, key=lambda entry: (entry.namespace, entry.name)))


def decode_daemonset(
    raw: Raw, admission: Admission | None = None, read: ReadScheduling = decode_scheduling
) -> DaemonSet:
    """Return the DaemonSet; its pods are as its controller and admission complete them.

    Args:
        raw: The DaemonSet.
        admission: Admission of its cluster, as far as it is known.
        read: `decode_scheduling`, or a function like it.
    """
    metadata, spec = mapping(raw.get("metadata")), mapping(raw.get("spec"))
    namespace, name = text(metadata.get("namespace")), text(metadata.get("name"))
    made = _with_tolerations(_by_host(_pod_spec(raw)))
    admitted, refusal = (admission or Admission()).admit(namespace, made)
    template = mapping(mapping(spec.get("template")).get("metadata"))
    workload = Workload(
        kind="DaemonSet", namespace=namespace, name=name, spec=spec, metadata=metadata
    )
    labels = {**text_map(template.get("labels")), **controller_labels(workload)}
    # No pod name: claims of ephemeral volumes are named after each pod.
    of_pod = {"namespace": namespace, "labels": labels}
    scheduling = read(of_pod, admitted, {})
    return DaemonSet(
        namespace=namespace,
        name=name,
        labels=labels,
        uid=text(metadata.get("uid")),
        generation=daemonset_generation(metadata),
        problem=_problem(spec, labels) or refusal or next(iter(scheduling.beyond), ""),
        scheduling=scheduling,
    )


def _with_tolerations(spec: Raw) -> Raw:
    """Return the spec with the tolerations that the controller adds to each pod."""
    tolerations = mappings(spec.get("tolerations"))
    added = (*_STANDARD, _HOST_NETWORK) if spec.get("hostNetwork") is True else _STANDARD
    for name, effect in added:
        toleration = {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}
        tolerations = with_toleration(tolerations, toleration)
    return {**spec, "tolerations": tolerations}


def _pod_spec(raw: Raw) -> Raw:
    return mapping(mapping(mapping(raw.get("spec")).get("template")).get("spec"))


def _by_host(spec: Raw) -> Raw:
    """Return the spec with nodes named by their hostname label instead of by field.

    The controller reads both, and a node that does not exist yet has neither.
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
    """Return why its controller creates no pods, empty when it does or has no selector."""
    problems: list[str] = []
    selector = label_selector(spec.get("selector"), "spec.selector", problems)
    if problems:
        return problems[0]
    if selector is not None and not selector.selects(labels):
        return "spec.selector does not select the labels of spec.template"
    return ""
