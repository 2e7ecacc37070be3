"""How a kubelet registers its Node with the API server.

Source: https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/kubelet/kubelet_node_status.go
(initialNode, registerWithAPIServer, tryRegisterWithAPIServer) and
https://github.com/kubernetes/kubernetes/blob/v1.35.4/cmd/kubelet/app/options/options.go
(ValidateKubeletFlags), read 2026-11-22.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final

from infra.local.cluster_simulator.client import ApiError, Json
from infra.local.cluster_simulator.kinds import NODE
from infra.local.cluster_simulator.kubelet.user_data import KubeletFlags
from infra.local.cluster_simulator.rules.matching import labels_of
from infra.local.cluster_simulator.world import World

# The kubelet of a node with an external cloud provider adds it to the taints of its flags.
CLOUD_TAINT: Final[Mapping[str, str]] = {
    "key": "node.cloudprovider.kubernetes.io/uninitialized",
    "value": "true",
    "effect": "NoSchedule",
}
ATTACH_DETACH: Final = "volumes.kubernetes.io/controller-managed-attach-detach"
# Labels of the nodes whose kubelet is simulated; any of them is enough.
SIMULATED: Final = (
    ("karpenter.sh/provisioner-name", None),
    ("karpenter.sh/nodepool", None),
    ("dovetail.dev/simulated", "true"),
)
FIRST_RETRY_SECONDS: Final = 0.1
LONGEST_RETRY_SECONDS: Final = 7.0

_LOG = logging.getLogger(__name__)
_ARCH: Final = ("kubernetes.io/arch", "beta.kubernetes.io/arch")
_OS: Final = ("kubernetes.io/os", "beta.kubernetes.io/os")
_HOSTNAME: Final = "kubernetes.io/hostname"
# Reset on a Node that exists already; labels and taints of the flags are not.
_DEFAULT_LABELS: Final = (
    _HOSTNAME,
    *_ARCH,
    *_OS,
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
)
_KUBELET_DOMAINS: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")
_RESERVED_DOMAINS: Final = ("kubernetes.io", "k8s.io")


def initial_node(
    name: str, provider_id: str, architecture: str, flags: KubeletFlags, status: Json
) -> Json:
    """Return the Node that a kubelet asks the API server to create."""
    labels = {
        _HOSTNAME: name,
        **dict.fromkeys(_ARCH, architecture),
        **dict.fromkeys(_OS, "linux"),
        **flags.labels,
    }
    spec: Json = {"taints": [*map(dict, flags.taints), dict(CLOUD_TAINT)]}
    if provider_id:
        spec["providerID"] = provider_id
    metadata = {"name": name, "labels": labels, "annotations": {ATTACH_DETACH: "true"}}
    return NODE.document(metadata, spec=spec, status=status)


def forbidden_labels(labels: Iterable[str]) -> list[str]:
    """Return the keys, sorted, with which a kubelet exits instead of starting."""
    return sorted(key for key in labels if not _may_set(key))


def _may_set(key: str) -> bool:
    domain, slash, _ = key.rpartition("/")
    if not slash or key in _DEFAULT_LABELS or _is_within(domain, _KUBELET_DOMAINS):
        return True
    return not _is_within(domain, _RESERVED_DOMAINS)


def _is_within(domain: str, parents: Iterable[str]) -> bool:
    return any(domain == parent or domain.endswith(f".{parent}") for parent in parents)


async def register(world: World, initial: Json) -> bool:
    """Try once to register a Node; return whether the kubelet counts as registered.

    A Node that exists keeps its labels and taints, but for the default labels; amounts are
    written only where it has none.
    """
    name = initial["metadata"]["name"]
    try:
        await world.create(NODE, initial)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            _LOG.warning("Unable to register node %s with API server: %s", name, error)
            return False
    else:
        return True
    try:
        existing = await world.client.get(NODE, "", name)
    except ApiError as error:
        _LOG.warning("Unable to register node %s: error getting existing node: %s", name, error)
        return False
    change = _reconciled(existing, initial)
    if change:
        await world.patch(NODE, existing, change, part="status")
    else:
        world.nodes.observe(existing)
    return True


def _reconciled(existing: Json, initial: Json) -> Json:
    labels = {
        key: value
        for key, value in labels_of(initial).items()
        if key in _DEFAULT_LABELS and labels_of(existing).get(key) != value
    }
    metadata: dict[str, Any] = {"labels": labels} if labels else {}
    if (existing["metadata"].get("annotations") or {}).get(ATTACH_DETACH) != "true":
        metadata["annotations"] = {ATTACH_DETACH: "true"}
    status = existing.get("status") or {}
    amounts = {
        key: initial["status"][key] for key in ("capacity", "allocatable") if not status.get(key)
    }
    return {
        **({"metadata": metadata} if metadata else {}),
        **({"status": amounts} if amounts else {}),
    }
