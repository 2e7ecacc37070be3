"""What a starting node still waits for, and how long that may take."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from shared.model import labels as keys
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.taints import Effect, Taint, first_untolerated
from shared.model.provisioner import Provisioner
from shared.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from shared.planning.rules.daemon_overhead import runs_on
from shared.planning.rules.labels_and_taints import taint_refusal

StartupTaints = frozenset[tuple[str, Effect]]

JOIN: Final = "the kubelet to be Ready"
# An EKS node joins within a minute or two of its launch, and is initialized seconds later.
JOINED_BY: Final = timedelta(minutes=2)
INITIALIZED_BY: Final = timedelta(minutes=4)
_CLOUD_TAINTS: Final = frozenset({keys.CLOUD_UNINITIALIZED_TAINT, keys.NODE_NOT_READY_TAINT})
_PLAIN: Final = frozenset({CPU, MEMORY, PODS, EPHEMERAL_STORAGE})
# Words of a resource's name that do not tell the vendor of the device.
_COMMON: Final = frozenset({"com", "io", "org", "aws", "amazon", "amazonaws", "k8s", "gpu", "dev"})


def waiting_for(node: Node, owner: Provisioner | None, promised: Iterable[Pod]) -> str:
    """Return what a node waits for before it is initialized, empty if for nothing.

    Args:
        owner: The node's Provisioner, None if it is gone.
        promised: Pods that are nominated to the node.
    """
    return closed_by(node) or node_waits_for(node, startup_taints_of(owner), promised)


def closed_by(node: Node) -> str:
    """Return what must happen before kube-scheduler may use the node, empty if nothing must."""
    if node.ready is not True:
        return JOIN
    return next((_of_taint(taint) for taint in node.taints if taint.key in _CLOUD_TAINTS), "")


def node_waits_for(node: Node, startup_taints: StartupTaints, promised: Iterable[Pod]) -> str:
    """Return what an open node still lacks, first for its pods, empty if it lacks nothing."""
    for pod in promised:
        missing = lacks(node, pod, startup_taints)
        if missing:
            return missing
    return next(
        (_of_taint(taint) for taint in node.taints if _is_startup_taint(taint, startup_taints)), ""
    )


def lacks(node: Node, pod: Pod, startup_taints: StartupTaints) -> str:
    """Return what the node still lacks for a pod: a startup taint to be removed, or a device."""
    taints = [taint for taint in node.taints if _is_startup_taint(taint, startup_taints)]
    taint = first_untolerated(taints, pod.scheduling.tolerations)
    if taint is not None:
        return _of_taint(taint)
    devices = missing_devices(node, pod)
    return f"resource {devices[0]} to be shown" if devices else ""


def startup_taints_of(owner: Provisioner | None) -> StartupTaints:
    """Return key and effect of the taints that other controllers remove from a new node."""
    taints = owner.startup_taints if owner is not None else ()
    return frozenset((taint.key, taint.effect) for taint in taints)


def missing_devices(node: Node, pod: Pod) -> tuple[str, ...]:
    """Return the extended resources that a pod requests and its node does not show, sorted."""
    return tuple(
        sorted(
            name
            for name in pod.scheduling.requests
            if name not in _PLAIN and not node.allocatable[name]
        )
    )


def is_late(node: Node, now: datetime) -> bool:
    """Return whether a node has waited longer than nodes take to join or to be initialized."""
    allowed = node.registration_timeout(INITIALIZED_BY if node.ready is True else JOINED_BY)
    return node.created_at is not None and now - node.created_at > allowed


def device_plugin_problem(node: Node, resource: str, daemonsets: Sequence[DaemonSet]) -> str:
    """Return why no device plugin shows a resource on a node, empty if one may run there.

    A DaemonSet counts as the plugin of a resource by its name: there is no other link between the
    two.
    """
    plugins = [daemon_set for daemon_set in daemonsets if _may_be_plugin(daemon_set, resource)]
    if not plugins:
        return f"no DaemonSet looks like a device plugin for {resource}: install it"
    taints = [taint for taint in node.taints if taint.effect != Effect.PREFER_NO_SCHEDULE]
    if any(runs_on(plugin, node.labels, taints) for plugin in plugins):
        return ""
    first = plugins[0]
    why = taint_refusal(first.scheduling, taints) or "does not select the node's labels"
    return f"DaemonSet {first.namespace}/{first.name} {why}"


def _is_startup_taint(taint: Taint, startup_taints: StartupTaints) -> bool:
    return (taint.key, taint.effect) in startup_taints or taint.key.startswith(
        keys.READINESS_TAINTS
    )


def _of_taint(taint: Taint) -> str:
    return f"startup taint {taint.key} to go"


def _may_be_plugin(daemonset: DaemonSet, resource: str) -> bool:
    words = {word for word in re.split(r"[^a-z0-9]+", resource.lower()) if len(word) > 1} - _COMMON
    name = daemonset.name.lower()
    return "device-plugin" in name or any(word in name for word in words)
