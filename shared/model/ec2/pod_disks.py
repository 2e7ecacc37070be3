"""Which disk of a machine pods write to."""

from collections.abc import Mapping, Sequence
from typing import Final

# The devices of the disks that machines of a family have by themselves; pods write to the last.
DEVICES: Final[Mapping[str, tuple[str, ...]]] = {
    "AL2023": ("/dev/xvda",),
    "AL2": ("/dev/xvda",),
    "Ubuntu": ("/dev/sda1",),
    "Bottlerocket": ("/dev/xvda", "/dev/xvdb"),
    "Custom": (),
}


def pod_disk(family: str, devices: Sequence[str]) -> int | None:
    """Return which of the disks that a user names pods write to, None when it is none of them.

    Where no disk has the name that the family has for it, it is the image's own. Of an image of the
    user's own it is the last.

    Source: https://github.com/aws/karpenter-provider-aws/blob/main/pkg/providers/instancetype/types.go
    (ephemeralStorage, 2026-11).
    """
    own = DEVICES[family]
    if not devices:
        return None
    if not own:
        return len(devices) - 1
    return next((n for n, device in enumerate(devices) if device == own[-1]), None)
