"""DaemonSets."""

from dataclasses import replace
from typing import Final

from shared.manifests.fields import Raw, mapping, text
from shared.manifests.pods import decode_scheduling
from shared.model.daemonset import DaemonSet
from shared.model.taints import Effect, Toleration

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


def decode_daemonset(raw: Raw) -> DaemonSet:
    """Return the DaemonSet; its tolerations include those its controller adds to each pod."""
    metadata = mapping(raw.get("metadata"))
    template = mapping(mapping(raw.get("spec")).get("template"))
    spec = mapping(template.get("spec"))
    namespace = text(metadata.get("namespace"))
    # No pod name: claims of ephemeral volumes are named after each pod.
    of_pod = {"namespace": namespace, "labels": mapping(template.get("metadata")).get("labels")}
    scheduling = decode_scheduling(of_pod, spec, {})
    added = (*_STANDARD, _HOST_NETWORK) if spec.get("hostNetwork") is True else _STANDARD
    return DaemonSet(
        namespace=namespace,
        name=text(metadata.get("name")),
        scheduling=replace(
            scheduling, tolerations=tuple(dict.fromkeys((*scheduling.tolerations, *added)))
        ),
    )
