"""Writes kubelet settings as fields of its configuration and as flags.

Source: https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/ and
https://kubernetes.io/docs/reference/command-line-tools-reference/kubelet/ (2026-08).
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from shared.model import labels as keys
from shared.model.errors import InvalidManifestError
from shared.model.kubernetes.taints import Taint
from shared.model.provisioner import KubeletConfiguration

_LABELS: Final = frozenset(
    {keys.HOSTNAME, keys.ARCH, keys.OS, keys.INSTANCE_TYPE, keys.ZONE, keys.REGION}
)
_DOMAINS: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")
# Flags whose name is not the configuration field's name with dashes.
_FLAGS: Final = {
    "clusterDNS": "cluster-dns",
    "cpuCFSQuota": "cpu-cfs-quota",
    "imageGCHighThresholdPercent": "image-gc-high-threshold",
    "imageGCLowThresholdPercent": "image-gc-low-threshold",
    "evictionHard": "eviction-hard",
    "evictionMaxPodGracePeriod": "eviction-max-pod-grace-period",
    "evictionSoft": "eviction-soft",
    "evictionSoftGracePeriod": "eviction-soft-grace-period",
    "kubeReserved": "kube-reserved",
    "maxPods": "max-pods",
    "podsPerCore": "pods-per-core",
    "systemReserved": "system-reserved",
}
# Images write flags into a systemd unit, which splits them at blanks and treats quotes,
# backslashes, dollar signs and a percent sign before a letter specially.
# Source: https://www.freedesktop.org/software/systemd/man/latest/systemd.service.html (2026-11).
_VALUE: Final = re.compile(r"([A-Za-z0-9._/:=,<+-]|%(?=,|\Z))*\Z")
# Maps whose flag has `<` between key and value.
_THRESHOLDS: Final = ("evictionHard", "evictionSoft")


def kubelet_config(kubelet: KubeletConfiguration) -> dict[str, Any]:
    """Return the user's settings as fields of the kubelet's configuration."""
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


def kubelet_flags(kubelet: KubeletConfiguration) -> list[str]:
    """Return the same as flags, each `--name=value`, sorted; empty settings have none.

    Raises:
        InvalidManifestError: If a value has characters that a flag cannot hold.
    """
    found = []
    for key, value in kubelet_config(kubelet).items():
        text = _flag_value(key, value)
        if text:
            found.append(flag(_FLAGS[key], text))
    return sorted(found)


def flag(name: str, value: str) -> str:
    """Return a flag, `--name=value`.

    Raises:
        InvalidManifestError: If the value has characters that a systemd unit changes.
    """
    if not _VALUE.match(value):
        remedy = "write letters, digits and . _ / : = , < + - %: it ends in a flag of the kubelet"
        raise InvalidManifestError(field=f"--{name}", value=value, remedy=remedy)
    return f"--{name}={value}"


def labels_flag(labels: Mapping[str, str]) -> str:
    """Return the flag that sets a node's labels, sorted, without those a kubelet may not set."""
    return flag("node-labels", ",".join(f"{k}={v}" for k, v in settable_labels(labels).items()))


def taints_flag(taints: Iterable[Taint]) -> str:
    """Return the flag that registers a node with taints, in their order."""
    return flag("register-with-taints", ",".join(_taint(taint) for taint in taints))


def settable_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels that a kubelet may set on its own node, sorted by key.

    Source: https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/
    (NodeRestriction) and the kubelet's own check of --node-labels (2026-08): it refuses to start
    with others.
    """
    return {key: value for key, value in sorted(labels.items()) if _may_set(key)}


def _may_set(key: str) -> bool:
    domain, slash, _ = key.rpartition("/")
    if not slash or key in _LABELS or _within(domain, _DOMAINS):
        return True
    return not _within(domain, ("kubernetes.io", "k8s.io"))


def _within(domain: str, parents: tuple[str, ...]) -> bool:
    return any(domain == parent or domain.endswith(f".{parent}") for parent in parents)


def _taint(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect.value}"


def _flag_value(key: str, value: Any) -> str:
    if isinstance(value, Mapping):
        sign = "<" if key in _THRESHOLDS else "="
        return ",".join(f"{name}{sign}{amount}" for name, amount in value.items())
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, list) else str(value)
