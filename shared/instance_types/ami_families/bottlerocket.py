"""Bottlerocket: settings in TOML; the user's are merged with Dovetail's, and Dovetail's win.

Source: https://bottlerocket.dev/en/os/latest/api/settings/kubernetes/ and
https://docs.aws.amazon.com/eks/latest/userguide/retrieve-ami-id-bottlerocket.html (2026-08).
Bottlerocket computes what it reserves for the kubelet from max-pods, and has no setting for
podsPerCore.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import tomli_w

from shared.instance_types.ami_families.family import (
    BootstrapOptions,
    Family,
    ImageRequest,
    user_data_error,
)
from shared.instance_types.ami_families.kubelet_flags import kubelet_config, settable_labels
from shared.instance_types.ami_families.node_settings import NodeSettings, SettingsReader
from shared.model.kubernetes.taints import Taint
from shared.model.provisioner import RESERVABLE, BlockDevice

# Fields of the kubelet's configuration that have a setting, and its name; the others have none.
_SETTINGS: Final = {
    "evictionHard": "eviction-hard",
    "evictionMaxPodGracePeriod": "eviction-max-pod-grace-period",
    "evictionSoft": "eviction-soft",
    "evictionSoftGracePeriod": "eviction-soft-grace-period",
    "kubeReserved": "kube-reserved",
    "maxPods": "max-pods",
    "systemReserved": "system-reserved",
    "cpuCFSQuota": "cpu-cfs-quota-enforced",
}
# The settings that plans count.
_COUNTED: Final = {
    name: _SETTINGS[name] for name in ("maxPods", "kubeReserved", "systemReserved", "evictionHard")
}
# Settings that are written as text, percentages without the sign.
_PERCENTAGES: Final = {
    "imageGCHighThresholdPercent": "image-gc-high-threshold-percent",
    "imageGCLowThresholdPercent": "image-gc-low-threshold-percent",
}

# Values that its API refuses, and with them all user data: reservations of other resources,
# thresholds of 100 %, and spans below a millisecond.
# Source: https://github.com/bottlerocket-os/bottlerocket-settings-sdk/blob/develop/
# bottlerocket-settings-models/modeled-types/src/kubernetes.rs (2026-11).
_RESERVATIONS: Final = ("kubeReserved", "systemReserved")
_THRESHOLDS: Final = ("evictionHard", "evictionSoft")
_WHOLE: Final = re.compile(r"100(\.0*)?%\Z")
_BELOW_MILLISECONDS: Final = re.compile(r"\d+(\.\d+)?(us|ns)")

# Creates one file system on the instance's own disks, for what pods write.
# Source: https://bottlerocket.dev/en/os/latest/api/settings/bootstrap-commands/ (2026-11).
_INSTANCE_STORE: Final = {
    "000-mount-instance-storage": {
        "commands": [
            ["apiclient", "ephemeral-storage", "init"],
            [
                *("apiclient", "ephemeral-storage", "bind", "--dirs"),
                *("/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods"),
            ],
        ],
        "essential": True,
        "mode": "always",
    }
}


def _parameter(request: ImageRequest) -> str:
    variant = "-nvidia" if request.capacity["nvidia.com/gpu"] else ""
    return (
        f"/aws/service/bottlerocket/aws-k8s-{request.version}{variant}/"
        f"{request.kernel_architecture}/{request.release.removeprefix('v') or 'latest'}/image_id"
    )


def _check(custom: str) -> dict[str, Any]:
    try:
        # TOML does not accept Unicode's white space.
        found = msgspec.toml.decode(custom) if custom.strip() else {}
    except msgspec.DecodeError as error:
        raise user_data_error(*_place_of(custom, str(error))) from error
    except RecursionError as error:
        raise user_data_error("", custom, "is no TOML: nested too deeply") from error
    table: Any = found
    for key in ("settings", "kubernetes"):
        table = table.get(key, {})
        if not isinstance(table, Mapping):
            raise user_data_error("", custom, f"{key} must be a table, as in [settings.kubernetes]")
    return found


def _place_of(custom: str, problem: str) -> tuple[str, str, str]:
    """Return place, line and remedy from the parser's message, `... (at line 3, column 1)`."""
    reason, _, at = problem.rpartition(" (at ")
    number = at.removeprefix("line ").partition(",")[0]
    if not number.isdecimal():
        return f"line {len(custom.splitlines())}", custom.splitlines()[-1], f"is no TOML: {reason}"
    return f"line {number}", custom.splitlines()[int(number) - 1], f"is no TOML: {reason}"


def _settings(custom: str) -> NodeSettings:
    reader = SettingsReader()
    settings = _check(custom).get("settings", {})
    said, where = settings.get("kubernetes", {}), "settings.kubernetes"
    config = {key: said[name] for key, name in _COUNTED.items() if name in said}
    reader.add_config(config, where)
    labels, taints = said.get("node-labels", {}), said.get("node-taints", {})
    reader.add_labels(labels if isinstance(labels, Mapping) else {}, f"{where}.node-labels")
    for key, values in taints.items() if isinstance(taints, Mapping) else ():
        entries = values if isinstance(values, list) else [values]
        written = [f"{key}={entry}" for entry in entries]
        reader.add_taints(written, f"{where}.node-taints")
    kernel = settings.get("kernel", {})
    sysctl = kernel.get("sysctl", {}) if isinstance(kernel, Mapping) else {}
    for name in sysctl if isinstance(sysctl, Mapping) else ():
        if "hugepages" in name:
            reader.add_unread(f"settings.kernel.sysctl.{name}")
    return reader.found


def _accepted(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return an equivalent kubelet configuration that the API accepts.

    For kubelets a threshold of 0 % means none, as one of 100 % does.

    Source: https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/kubelet/eviction/helpers.go
    (parseThresholdStatement).
    """
    known = dict(config)
    reservable = RESERVABLE["Bottlerocket"]
    for field in _RESERVATIONS:
        if field in known:
            known[field] = {k: v for k, v in known[field].items() if k in reservable}
    for field in _THRESHOLDS:
        if field in known:
            known[field] = {k: _WHOLE.sub("0%", v) for k, v in known[field].items()}
    spans = known.get("evictionSoftGracePeriod", {})
    if spans:
        known["evictionSoftGracePeriod"] = {
            signal: _BELOW_MILLISECONDS.sub("", span) or "0s" for signal, span in spans.items()
        }
    return known


def _write(options: BootstrapOptions, custom: str) -> str:
    known = _accepted(kubelet_config(options.kubelet))
    ours: dict[str, Any] = {
        "api-server": options.endpoint,
        "cluster-certificate": options.certificate_authority,
        "cluster-name": options.cluster,
        "node-labels": settable_labels(options.labels),
        "node-taints": _taints(options.taints),
        **{name: known[key] for key, name in _SETTINGS.items() if key in known},
        **{name: str(known[key]) for key, name in _PERCENTAGES.items() if key in known},
    }
    theirs = _check(custom)
    named = theirs.get("settings", {}).get("kubernetes", {}).get("cluster-dns-ip")
    if options.kubelet.cluster_dns or (options.dns_addresses and not named):
        ours["cluster-dns-ip"] = list(options.dns_addresses)
    settings: dict[str, Any] = {"kubernetes": ours}
    if options.instance_store:
        settings["bootstrap-commands"] = _INSTANCE_STORE
    return tomli_w.dumps(_merged(theirs, {"settings": settings}))


def _taints(taints: tuple[Taint, ...]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for taint in taints:
        found.setdefault(taint.key, []).append(f"{taint.value}:{taint.effect.value}")
    return found


def _merged(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """Return both, tables merged at every depth; where both have a value, `ours` wins."""
    merged = dict(theirs)
    for key, value in ours.items():
        known = merged.get(key)
        if isinstance(value, Mapping) and isinstance(known, Mapping):
            merged[key] = _merged(known, value)
        else:
            merged[key] = value
    return merged


BOTTLEROCKET: Final = Family(
    name="Bottlerocket",
    parameter=_parameter,
    write=_write,
    check=_check,
    settings=_settings,
    # The first disk has the system, the second images, logs and what pods write.
    disks=(
        BlockDevice(device_name="/dev/xvda", volume_size_gib=4),
        BlockDevice(device_name="/dev/xvdb"),
    ),
    supports_pods_per_core=False,
    # The driver of its images does not support their GPUs: such an instance never joins.
    # Source: https://github.com/bottlerocket-os/bottlerocket/issues/4889 (2026-11).
    unsupported_families=frozenset({"g7"}),
    reserves_for_max_pods=True,
)
