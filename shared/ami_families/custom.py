"""An image of the user's own: chosen by `amiSelector`, told exactly what the user wrote."""

from typing import Final

from shared.ami_families.family import Family, Joining


def _check(_custom: str) -> None:
    """Take anything: only the image knows what it reads."""


def _write(_joining: Joining, custom: str) -> str:
    return custom


CUSTOM: Final = Family(name="Custom", parameter=None, write=_write, check=_check, disks=())
