"""Settings of refresh_catalog that `plan --set` accepts: how instances are set up."""

import re
from collections.abc import Iterable
from typing import Any, Final

from functions.cli.input_error import InvalidSettingError
from functions.cli.plan.packing_settings import described_settings, flag
from shared.instance_types.instance_setup import InstanceSetup
from shared.instance_types.overhead import VM_MEMORY_OVERHEAD_PERCENT
from shared.instance_types.pod_addresses import DEFAULT_NETWORK, PodNetwork

_OF_MEMORY: Final = "vm_memory_overhead_percent"
_OF_NETWORK: Final = frozenset(PodNetwork.__struct_fields__)
_PERCENT: Final = re.compile(r"\d{1,2}(\.\d{1,4})?", re.ASCII)
_NUMBER: Final = re.compile(r"\d{1,2}", re.ASCII)
_MOST_PERCENT: Final = 50
_MOST_INTERFACES: Final = 15


def described_instance_settings() -> tuple[tuple[str, str, str], ...]:
    """Return (key, default, what it means with its unit) for every instance setting."""
    meaning = "Of the memory EC2 sells, what hypervisor and kernel keep; measured types differ."
    return (
        (_OF_MEMORY, f"{VM_MEMORY_OVERHEAD_PERCENT:g}", meaning),
        *described_settings(DEFAULT_NETWORK),
    )


def instance_setup(given: Iterable[str]) -> tuple[InstanceSetup | None, tuple[str, ...]]:
    """Return how instances are set up by the given settings, and the other settings.

    Args:
        given: Each `key=value`; the last one of a key counts.

    Returns:
        The first is None when no setting is about instances.

    Raises:
        InvalidSettingError: If a value is invalid for its key.
    """
    values: dict[str, Any] = {}
    others = []
    for text in given:
        key, sign, value = (part.strip() for part in text.partition("="))
        if sign and (key == _OF_MEMORY or key in _OF_NETWORK):
            values[key] = _value(key, value)
        else:
            others.append(text)
    if not values:
        return None, tuple(others)
    percent = values.pop(_OF_MEMORY, VM_MEMORY_OVERHEAD_PERCENT)
    return InstanceSetup(network=PodNetwork(**values), memory_percent=percent), tuple(others)


def _value(key: str, value: str) -> bool | int | float:
    if key == _OF_MEMORY:
        if not _PERCENT.fullmatch(value) or float(value) > _MOST_PERCENT:
            remedy = f"write a percentage from 0 to {_MOST_PERCENT}, such as 5.5"
            raise InvalidSettingError(f"--set {key}={value}: {remedy}")
        return float(value)
    if key == "reserved_interfaces":
        if not _NUMBER.fullmatch(value) or int(value) > _MOST_INTERFACES:
            remedy = f"write a whole number from 0 to {_MOST_INTERFACES}"
            raise InvalidSettingError(f"--set {key}={value}: {remedy}")
        return int(value)
    return flag(key, value)
