"""Settings of refresh_catalog that `plan --set` takes: how machines are set up."""

import re
from collections.abc import Iterable
from typing import Any, Final

from functions.cli.offline.packing_settings import InvalidSettingError
from shared.catalog.machine_setup import MachineSetup
from shared.catalog.overhead import VM_MEMORY_OVERHEAD_PERCENT
from shared.catalog.pod_addresses import PodNetwork

# Key, default, and what it means with its unit.
EXPLAINED: Final = (
    (
        "vm_memory_overhead_percent",
        f"{VM_MEMORY_OVERHEAD_PERCENT:g}",
        "Percent of the memory EC2 sells that hypervisor and kernel keep; measured types differ.",
    ),
    (
        "prefix_delegation",
        "false",
        "Whether the VPC CNI gives interfaces prefixes of addresses (ENABLE_PREFIX_DELEGATION).",
    ),
    (
        "reserved_interfaces",
        "0",
        "Network interfaces of each node that pods do not get (custom networking: 1).",
    ),
    ("density_limited", "true", "Whether addresses limit pods at all; else 110 a node."),
    (
        "pod_interfaces",
        "false",
        "Whether pods may ask for an interface of their own (ENABLE_POD_ENI).",
    ),
)
_KEYS: Final = frozenset(key for key, _, _ in EXPLAINED)
_FLAGS: Final = {"true": True, "false": False}
_PERCENT: Final = re.compile(r"\d{1,2}(\.\d{1,4})?", re.ASCII)
_MOST_PERCENT: Final = 50
_MOST_INTERFACES: Final = 15


def machine_setup(given: Iterable[str]) -> tuple[MachineSetup | None, tuple[str, ...]]:
    """Return how machines are set up by the given settings, and the settings of anything else.

    Args:
        given: Each `key=value`; the last one of a key counts.

    Returns:
        The first is None when no setting says anything of machines.

    Raises:
        InvalidSettingError: If a value is none for its key.
    """
    said: dict[str, Any] = {}
    others = []
    for text in given:
        key, sign, value = (part.strip() for part in text.partition("="))
        if sign and key in _KEYS:
            said[key] = _value(key, value)
        else:
            others.append(text)
    if not said:
        return None, tuple(others)
    percent = said.pop("vm_memory_overhead_percent", VM_MEMORY_OVERHEAD_PERCENT)
    return MachineSetup(network=PodNetwork(**said), memory_percent=percent), tuple(others)


def _value(key: str, value: str) -> bool | int | float:
    if key == "vm_memory_overhead_percent":
        if not _PERCENT.fullmatch(value) or float(value) > _MOST_PERCENT:
            told = f"write a percentage from 0 to {_MOST_PERCENT}, such as 5.5"
            raise InvalidSettingError(f"--set {key}={value}: {told}")
        return float(value)
    if key == "reserved_interfaces":
        if not (value.isascii() and value.isdigit()) or int(value[:9]) > _MOST_INTERFACES:
            told = f"write a whole number from 0 to {_MOST_INTERFACES}"
            raise InvalidSettingError(f"--set {key}={value}: {told}")
        return int(value)
    if value.lower() not in _FLAGS:
        raise InvalidSettingError(f"--set {key}={value}: write true or false")
    return _FLAGS[value.lower()]
