"""Settings that a report compares."""

from collections.abc import Sequence
from typing import Final

from functions.cli.plan.packing_settings import changed_settings, with_settings
from functions.cli.report.cost_report import REPACK_SETTINGS
from shared.packing.problem import PackingSettings

_FEWER: Final = ("Fewer, larger nodes (fewer_nodes_permille=70)", "fewer_nodes_permille=70")
_SMALLER: Final = ("Nodes of at most 16 vCPUs (max_node_vcpus=16)", "max_node_vcpus=16")


def variants(given: Sequence[str]) -> tuple[tuple[str, PackingSettings], ...]:
    """Return settings with their names: those that users compare first, and the given ones.

    Args:
        given: Each `key=value`; together they are one more variant.

    Raises:
        InvalidSettingError: If one cannot be read.
    """
    found = [(name, with_settings(REPACK_SETTINGS, [text])) for name, text in (_FEWER, _SMALLER)]
    if given:
        own = with_settings(REPACK_SETTINGS, given)
        named = ", ".join(changed_settings(own, REPACK_SETTINGS)) or "the settings above"
        found.append((f"As asked for ({named})", own))
    return tuple(found)
