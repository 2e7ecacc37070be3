"""Which image a machine boots and what it is told at first boot.

Source: https://docs.aws.amazon.com/eks/latest/userguide/retrieve-ami-id.html and
https://awslabs.github.io/amazon-eks-ami/nodeadm/doc/api/ (2026-08).
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from shared.model import labels as keys
from shared.model.errors import PermanentError
from shared.model.provisioner import KubeletConfiguration, Provisioner
from shared.model.resources import Resources
from shared.model.taints import Effect, Taint
from shared.ports import ClusterEndpoint

_BOUNDARY: Final = "//"
_ARCHITECTURES: Final = {"amd64": "x86_64", "arm64": "arm64"}
_KUBELET_LABELS: Final = frozenset(
    {keys.HOSTNAME, keys.ARCH, keys.OS, keys.INSTANCE_TYPE, keys.ZONE, keys.REGION}
)
_KUBELET_DOMAINS: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")
_VARIANTS: Final = {"nvidia.com/gpu": "nvidia", "aws.amazon.com/neuron": "neuron"}


def image_parameter(family: str, version: str, architecture: str, capacity: Resources) -> str:
    """Return the SSM parameter that names the recommended image.

    Args:
        family: `amiFamily` of the provisioner; AL2023 is the one built in.
        version: Of the cluster, as `1.33`.
        architecture: `amd64` or `arm64`.
        capacity: Of the instance type: accelerators need an image with their driver.

    Raises:
        PermanentError: If the family is not supported; the text says what is.
    """
    if family != "AL2023":
        raise PermanentError(f"spec.provider.amiFamily: {family!r}: AL2023 is supported")
    variant = next((v for name, v in sorted(_VARIANTS.items()) if capacity[name]), "standard")
    machine = _ARCHITECTURES.get(architecture, architecture)
    return (
        f"/aws/service/eks/optimized-ami/{version}/amazon-linux-2023/"
        f"{machine}/{variant}/recommended/image_id"
    )


def boot_taints(provisioner: Provisioner) -> tuple[Taint, ...]:
    """Return the taints a node of the provisioner starts with, sorted.

    Ours keeps kube-scheduler away until pods are bound; the provider's asks the cloud controller
    to initialise the node.
    """
    ours = Taint(key=keys.NOT_READY_TAINT, effect=Effect.NO_SCHEDULE)
    cloud = Taint(key=keys.CLOUD_UNINITIALIZED_TAINT, value="true", effect=Effect.NO_SCHEDULE)
    return tuple(sorted({*provisioner.taints, *provisioner.startup_taints, ours, cloud}))


def user_data(
    endpoint: ClusterEndpoint,
    labels: Mapping[str, str],
    taints: Sequence[Taint],
    kubelet: KubeletConfiguration,
) -> str:
    """Return the user data (plain text, not yet base64) with which a machine joins.

    It carries the same labels and taints as the Node object, for a kubelet that comes first, but
    for labels a kubelet may not give itself: it would refuse to start.
    """
    config: dict[str, Any] = {
        "registerWithTaints": [
            {"key": one.key, "value": one.value, "effect": one.effect.value} for one in taints
        ]
    }
    config |= _kubelet_config(kubelet)
    flag = ",".join(
        f"{key}={value}" for key, value in sorted(labels.items()) if _kubelet_may_set(key)
    )
    document = {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "spec": {
            "cluster": {
                "name": endpoint.name,
                "apiServerEndpoint": endpoint.endpoint,
                "certificateAuthority": endpoint.certificate_authority,
                "cidr": endpoint.service_cidr,
            },
            "kubelet": {"config": config, "flags": [f"--node-labels={flag}"]},
        },
    }
    # YAML is a superset of JSON, and JSON needs no library here.
    return "\n".join(
        (
            "MIME-Version: 1.0",
            f'Content-Type: multipart/mixed; boundary="{_BOUNDARY}"',
            "",
            f"--{_BOUNDARY}",
            "Content-Type: application/node.eks.aws",
            "",
            json.dumps(document, indent=2, sort_keys=True),
            "",
            f"--{_BOUNDARY}--",
            "",
        )
    )


def _kubelet_config(kubelet: KubeletConfiguration) -> dict[str, Any]:
    """Return what the user set on the kubelet, in the kubelet's own words."""
    reserved = kubelet.kube_reserved
    grace = kubelet.eviction_soft_grace_period
    written: dict[str, Any] = {
        "maxPods": kubelet.max_pods,
        "podsPerCore": kubelet.pods_per_core,
        "clusterDNS": list(kubelet.cluster_dns) or None,
        "systemReserved": kubelet.system_reserved.to_quantities() or None,
        "kubeReserved": None if reserved is None else reserved.to_quantities(),
        "evictionHard": dict(sorted(kubelet.eviction_hard.items())) or None,
        "evictionSoft": dict(sorted(kubelet.eviction_soft.items())) or None,
        "evictionSoftGracePeriod": dict(sorted(grace.items())) or None,
        "evictionMaxPodGracePeriod": kubelet.eviction_max_pod_grace_period,
        "imageGCHighThresholdPercent": kubelet.image_gc_high_percent,
        "imageGCLowThresholdPercent": kubelet.image_gc_low_percent,
        "cpuCFSQuota": kubelet.cpu_cfs_quota,
    }
    return {key: value for key, value in written.items() if value is not None}


def _kubelet_may_set(key: str) -> bool:
    """Return whether a kubelet may give its own node a label.

    Source: https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/
    (NodeRestriction) and the kubelet's own check of --node-labels (2026-08).
    """
    domain, slash, _ = key.rpartition("/")
    if not slash or key in _KUBELET_LABELS or _within(domain, _KUBELET_DOMAINS):
        return True
    return not _within(domain, ("kubernetes.io", "k8s.io"))


def _within(domain: str, parents: tuple[str, ...]) -> bool:
    return any(domain == parent or domain.endswith(f".{parent}") for parent in parents)
