"""Settings that a report compares."""

from collections.abc import Sequence
from typing import Final

from functions.cli.offline.packing_settings import changed_keys, with_settings
from shared.packing.problem import PackingSettings
from shared.savings.survey import ALL_AT_ONCE

_FEWER: Final = ("Fewer, larger nodes (fewer_nodes_permille=70)", "fewer_nodes_permille=70")
_SMALLER: Final = ("Nodes of at most 16 vCPUs (max_node_vcpus=16)", "max_node_vcpus=16")


def variants(given: Sequence[str]) -> tuple[tuple[str, PackingSettings], ...]:
    """Return settings with their names: those that a user compares first, and the given ones.

    Args:
        given: Each `key=value`, all of them one more setting.

    Raises:
        InvalidSettingError: If one cannot be read.
    """
    found = [(name, with_settings(ALL_AT_ONCE, [text])) for name, text in (_FEWER, _SMALLER)]
    if given:
        own = with_settings(ALL_AT_ONCE, given)
        named = ", ".join(changed_keys(own, ALL_AT_ONCE)) or "the settings above"
        found.append((f"As asked for ({named})", own))
    return tuple(found)
