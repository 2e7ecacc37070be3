"""Which disk of an instance pods write to."""

from collections.abc import Mapping, Sequence
from typing import Final

# The devices of the default disks of each AMI family; pods write to the last.
DEVICES: Final[Mapping[str, tuple[str, ...]]] = {
    "AL2023": ("/dev/xvda",),
    "AL2": ("/dev/xvda",),
    "Ubuntu": ("/dev/sda1",),
    "Bottlerocket": ("/dev/xvda", "/dev/xvdb"),
    "Custom": (),
}


def pod_disk(family: str, devices: Sequence[str]) -> int | None:
    """Return the index of the user's disk that pods write to, None when it is none of them.

    Where no disk has the device name that the family uses for it, pods write to the disk of the
    image. With the family Custom it is the last disk.

    Source: https://github.com/aws/karpenter-provider-aws/blob/main/pkg/providers/instancetype/types.go
    (ephemeralStorage, 2026-11).
    """
    own = DEVICES[family]
    if not devices:
        return None
    if not own:
        return len(devices) - 1
    return next((n for n, device in enumerate(devices) if device == own[-1]), None)
