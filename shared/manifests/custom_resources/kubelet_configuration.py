"""The kubelet's configuration in a Provisioner.

Source: https://karpenter.sh/v0.31/concepts/provisioners/#speckubeletconfiguration (2023-09),
https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction/ (2026-08).
"""

import ipaddress
import re
from typing import Final

from shared.manifests.problems import Section
from shared.model.provisioner import KubeletConfiguration
from shared.model.quantity import parse_quantity
from shared.model.resources import Resources

_RESERVED: Final = ("cpu", "ephemeral-storage", "memory", "pid")
_SIGNALS: Final = (
    "imagefs.available",
    "imagefs.inodesFree",
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "pid.available",
)
_FIELDS: Final = (
    "clusterDNS",
    "containerRuntime",
    "cpuCFSQuota",
    "evictionHard",
    "evictionMaxPodGracePeriod",
    "evictionSoft",
    "evictionSoftGracePeriod",
    "imageGCHighThresholdPercent",
    "imageGCLowThresholdPercent",
    "kubeReserved",
    "maxPods",
    "podsPerCore",
    "systemReserved",
)
# A span as Go writes it: 1m30s, 500ms. Its digits keep it below 292 years, the longest span of Go.
_UNITS: Final = {"h": 6, "m": 7, "s": 9, "ms": 9, "us": 9, "ns": 9}
_SPAN: Final = re.compile(
    r"(?=\d)"
    + "".join(rf"(\d{{1,{n}}}(\.\d{{1,9}})?{unit})?" for unit, n in _UNITS.items())
    + r"\Z",
    re.ASCII,
)
_INT32: Final = 2**31 - 1
# What a kubelet assumes for the threshold that is not set.
_IMAGE_GC_HIGH, _IMAGE_GC_LOW = 85, 80
_PERCENT: Final = re.compile(r"(\d{1,3}(\.\d{1,9})?)%\Z", re.ASCII)


def read_kubelet(spec: Section) -> KubeletConfiguration:
    """Return the kubelet's configuration; what is wrong is noted."""
    section = spec.section("kubeletConfiguration")
    if section is None:
        return KubeletConfiguration()
    section.refuse_unknown(_FIELDS)
    section.text("containerRuntime", choices=("containerd",))
    hard, soft = _thresholds(section, "evictionHard"), _thresholds(section, "evictionSoft")
    grace = _grace_periods(section, soft)
    high = section.integer("imageGCHighThresholdPercent", 0, 100)
    low = section.integer("imageGCLowThresholdPercent", 0, 100)
    _refuse_image_gc(section, high, low)
    return KubeletConfiguration(
        cluster_dns=_addresses(section),
        max_pods=section.integer("maxPods", 0, _INT32),
        pods_per_core=section.integer("podsPerCore", 0, _INT32),
        system_reserved=_reserved(section, "systemReserved") or Resources(),
        kube_reserved=_reserved(section, "kubeReserved"),
        eviction_hard=hard,
        eviction_soft=soft,
        eviction_soft_grace_period=grace,
        eviction_max_pod_grace_period=section.integer("evictionMaxPodGracePeriod", 0, _INT32),
        image_gc_high_percent=high,
        image_gc_low_percent=low,
        cpu_cfs_quota=section.flag("cpuCFSQuota"),
    )


def _refuse_image_gc(section: Section, high: int | None, low: int | None) -> None:
    """Note thresholds with which a kubelet does not start: the high one must be above the low one.

    Source: https://github.com/kubernetes/kubernetes (v1.36.3), ValidateKubeletConfiguration and the
    defaults of https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/ (2026-11).
    """
    if (_IMAGE_GC_HIGH if high is None else high) > (_IMAGE_GC_LOW if low is None else low):
        return
    if high is None:
        remedy = f"write less than the high threshold, which is {_IMAGE_GC_HIGH} unless it is set"
        section.refuse("imageGCLowThresholdPercent", remedy)
        return
    known = f"which is {_IMAGE_GC_LOW} unless it is set" if low is None else str(low)
    section.refuse("imageGCHighThresholdPercent", f"write more than the low threshold, {known}")


def _addresses(section: Section) -> tuple[str, ...]:
    found = section.texts("clusterDNS")
    for value in found:
        try:
            address = ipaddress.ip_address(value)
        except ValueError:
            address = None
        # Whatever follows a percent sign is the zone of an address, also a blank or a quote.
        if address is None or "%" in value:
            section.refuse("clusterDNS", f"{value!r} is no IP address")
    return found


def _reserved(section: Section, key: str) -> Resources | None:
    part = section.section(key)
    if part is None:
        return None
    part.refuse_unknown(_RESERVED)
    # A zero replaces what the AMI would keep.
    return part.ceilings()


def _thresholds(section: Section, key: str) -> dict[str, str]:
    found = section.text_map(key)
    part = Section(found, section.at(key), section.problems)
    part.refuse_unknown(_SIGNALS)
    for signal, value in found.items():
        percent = _PERCENT.match(value)
        if percent is not None:
            if float(percent[1]) > 100:
                part.refuse(signal, "write a percentage from 0% to 100%")
            continue
        try:
            positive = parse_quantity(value) > 0
        except ValueError:
            positive = False
        if not positive:
            part.refuse(signal, "write a quantity such as 100Mi or a percentage such as 5%")
    return found


def _grace_periods(section: Section, soft: dict[str, str]) -> dict[str, str]:
    key = "evictionSoftGracePeriod"
    found = section.text_map(key)
    part = Section(found, section.at(key), section.problems)
    for signal in sorted({*soft, *found}):
        if signal not in found:
            part.refuse(signal, "each evictionSoft signal needs its grace period here")
        elif signal not in soft:
            part.refuse(signal, "there is no evictionSoft threshold for this signal")
        elif not _SPAN.match(found[signal]):
            part.refuse(signal, "write a span such as 90s or 1m30s")
    return found
