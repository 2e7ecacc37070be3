"""The kubelet's configuration.

Source: https://karpenter.sh/v0.31/concepts/provisioners/#speckubeletconfiguration (2023-09),
https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction/ (2026-08).
"""

import ipaddress
import re
from collections.abc import Iterator
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from shared.manifests.api.parts import (
    QUANTITY,
    Fault,
    Int32,
    Part,
    Schema,
    ValidationRule,
    refuse,
    refuse_entries,
)
from shared.manifests.problems import Section
from shared.model.provisioner import KubeletConfiguration
from shared.model.quantity import parse_quantity
from shared.model.resources import Resources

_RESERVED: Final = ("cpu", "memory", "ephemeral-storage", "pid")
_SIGNALS: Final = (
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "pid.available",
)
# A Go duration: 1m30s, 500ms. Its digits keep it below 292 years, the longest duration of Go.
_UNITS: Final = {"h": 6, "m": 7, "s": 9, "ms": 9, "us": 9, "ns": 9}
_SPAN: Final = re.compile(
    r"(?=\d)"
    + "".join(rf"(\d{{1,{n}}}(\.\d{{1,9}})?{unit})?" for unit, n in _UNITS.items())
    + r"\Z",
    re.ASCII,
)
_INT32: Final = 2**31 - 1
# The kubelet's default for a threshold that is not set.
_IMAGE_GC_HIGH, _IMAGE_GC_LOW = 85, 80
_PERCENT: Final = re.compile(r"(\d{1,3}(\.\d{1,9})?)%\Z", re.ASCII)


def _address(value: str) -> str:
    try:
        # A percent sign starts the zone of an address, which may be any text.
        found = "%" not in value and ipaddress.ip_address(value)
    except ValueError:
        found = False
    if not found:
        refuse([Fault((), value, f"{value!r} is no IP address")])
    return value


def _reserved(given: dict[str, Any]) -> dict[str, Any]:
    refuse_entries(
        given, lambda entries: entries.refuse_unknown(_RESERVED), Section.resources_with_zeros
    )
    return given


def _thresholds(given: dict[str, str]) -> dict[str, str]:
    refuse_entries(given, lambda entries: entries.refuse_unknown(_SIGNALS), _refuse_thresholds)
    return given


def _refuse_thresholds(entries: Section) -> None:
    for signal, value in entries.raw.items():
        percent = _PERCENT.match(value)
        if percent is not None:
            if float(percent[1]) > 100:
                entries.refuse(signal, "write a percentage from 0% to 100%")
            continue
        try:
            positive = parse_quantity(value) > 0
        except ValueError:
            positive = False
        if not positive:
            entries.refuse(signal, "write a quantity such as 100Mi or a percentage such as 5%")


def _grace_faults(found: dict[str, str], soft: dict[str, str]) -> Iterator[Fault]:
    for signal in sorted({*soft, *found}):
        value = found.get(signal)
        if value is None:
            remedy = "each evictionSoft signal needs its grace period here"
        elif signal not in soft:
            remedy = "there is no evictionSoft threshold for this signal"
        elif not _SPAN.match(value):
            remedy = "write a span such as 90s or 1m30s"
        else:
            continue
        yield Fault((signal,), value, remedy)


def _image_gc_fault(high: int | None, low: int | None) -> Fault:
    if high is None:
        remedy = f"write less than the high threshold, which is {_IMAGE_GC_HIGH} unless it is set"
        return Fault(("imageGCLowThresholdPercent",), low, remedy)
    known = f"which is {_IMAGE_GC_LOW} unless it is set" if low is None else str(low)
    remedy = f"write more than the low threshold, {known}"
    return Fault(("imageGCHighThresholdPercent",), high, remedy)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in names)


_BY_SIGNAL: Final = Schema(
    ValidationRule(
        f"signals are {', '.join(_SIGNALS[:-1])} and {_SIGNALS[-1]}",
        f"self.all(key, key in [{_listed(_SIGNALS)}])",
    ),
    maxProperties=6,
    additionalProperties={"type": "string", "minLength": 1, "maxLength": 32},
)
Thresholds = Annotated[dict[str, str], AfterValidator(_thresholds), _BY_SIGNAL]
Reserved = Annotated[
    dict[str, Any],
    AfterValidator(_reserved),
    Schema(
        ValidationRule(
            f"only {', '.join(_RESERVED[:-1])} and {_RESERVED[-1]} can be reserved",
            f"self.all(key, key in [{_listed(_RESERVED)}])",
        ),
        maxProperties=4,
        additionalProperties=QUANTITY,
    ),
]
Address = Annotated[str, AfterValidator(_address), Schema(minLength=1, maxLength=45)]


class Kubelet(Part):
    """What is set on the kubelet of each node."""

    cluster_dns: Annotated[list[Address], Schema(maxItems=10)] = Field(
        default=[], alias="clusterDNS", description="Addresses of the cluster's DNS"
    )
    max_pods: Int32 | None = Field(default=None, ge=0, le=_INT32)
    pods_per_core: Int32 | None = Field(default=None, ge=0, le=_INT32)
    system_reserved: Reserved = Field(default={}, description="Kept for the operating system")
    kube_reserved: Reserved | None = Field(
        default=None,
        description="Kept for the kubelet and the container runtime; estimated when absent",
    )
    eviction_hard: Thresholds = Field(
        default={}, description="Thresholds at which pods are evicted at once"
    )
    eviction_soft: Thresholds = Field(
        default={}, description="Thresholds at which pods are evicted after a grace period"
    )
    eviction_soft_grace_period: Annotated[dict[str, str], _BY_SIGNAL] = Field(
        default={},
        validate_default=True,
        description="Grace period of each evictionSoft threshold, such as 90s",
    )
    eviction_max_pod_grace_period: Int32 | None = Field(default=None, ge=0, le=_INT32)
    image_gc_high_percent: Int32 | None = Field(
        default=None, alias="imageGCHighThresholdPercent", ge=0, le=100
    )
    image_gc_low_percent: Int32 | None = Field(
        default=None, alias="imageGCLowThresholdPercent", ge=0, le=100
    )
    cpu_cfs_quota: bool | None = Field(default=None, alias="cpuCFSQuota")

    @field_validator("eviction_soft_grace_period")
    @classmethod
    def _fit_the_soft_thresholds(
        cls, found: dict[str, str], info: ValidationInfo
    ) -> dict[str, str]:
        refuse(_grace_faults(found, info.data.get("eviction_soft", found)))
        return found

    @model_validator(mode="after")
    def _high_is_above_low(self) -> Self:
        """Refuse thresholds with which a kubelet does not start.

        Source: https://github.com/kubernetes/kubernetes (v1.36.3), ValidateKubeletConfiguration and
        the defaults of https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/
        (2026-11).
        """
        high, low = self.image_gc_high_percent, self.image_gc_low_percent
        if (_IMAGE_GC_HIGH if high is None else high) <= (_IMAGE_GC_LOW if low is None else low):
            refuse([_image_gc_fault(high, low)])
        return self

    @property
    def configuration(self) -> KubeletConfiguration:
        """Return the configuration that joining instances get."""
        return KubeletConfiguration(
            cluster_dns=tuple(self.cluster_dns),
            max_pods=self.max_pods,
            pods_per_core=self.pods_per_core,
            system_reserved=_amounts(self.system_reserved),
            # A zero replaces what the AMI would reserve.
            kube_reserved=None if self.kube_reserved is None else _amounts(self.kube_reserved),
            eviction_hard=self.eviction_hard,
            eviction_soft=self.eviction_soft,
            eviction_soft_grace_period=self.eviction_soft_grace_period,
            eviction_max_pod_grace_period=self.eviction_max_pod_grace_period,
            image_gc_high_percent=self.image_gc_high_percent,
            image_gc_low_percent=self.image_gc_low_percent,
            cpu_cfs_quota=self.cpu_cfs_quota,
        )


def _amounts(given: dict[str, Any]) -> Resources:
    return Section(given, "", []).resources_with_zeros()


KUBELET: Final = Schema(
    ValidationRule(
        f"imageGCHighThresholdPercent ({_IMAGE_GC_HIGH} unless set) must be above "
        f"imageGCLowThresholdPercent ({_IMAGE_GC_LOW} unless set)",
        f"""(!has(self.imageGCHighThresholdPercent) || (
        (!has(self.imageGCLowThresholdPercent)
        && self.imageGCHighThresholdPercent > {_IMAGE_GC_LOW})
        || (has(self.imageGCLowThresholdPercent)
        && self.imageGCHighThresholdPercent > self.imageGCLowThresholdPercent)))
        && (has(self.imageGCHighThresholdPercent)
        || !has(self.imageGCLowThresholdPercent)
        || self.imageGCLowThresholdPercent < {_IMAGE_GC_HIGH})""",
    ),
    ValidationRule(
        "each evictionSoft signal needs a grace period in evictionSoftGracePeriod",
        """!has(self.evictionSoft) || (has(self.evictionSoftGracePeriod)
        && self.evictionSoft.all(key, key in self.evictionSoftGracePeriod))""",
    ),
    ValidationRule(
        "evictionSoftGracePeriod names a signal that evictionSoft does not",
        """!has(self.evictionSoftGracePeriod) || (has(self.evictionSoft)
        && self.evictionSoftGracePeriod.all(key, key in self.evictionSoft))""",
    ),
)
