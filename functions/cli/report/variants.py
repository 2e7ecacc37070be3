"""Settings that a report compares."""

from collections.abc import Sequence

from functions.cli.plan.packing_settings import changed_settings, with_settings
from functions.cli.report.cost_report import REPACK_SETTINGS
from shared.packing.problem import PackingSettings


def variants(given: Sequence[str]) -> tuple[tuple[str, PackingSettings], ...]:
    """Return the given settings with a name, if there are any.

    Args:
        given: Each `key=value`; together they are one variant.

    Raises:
        InvalidSettingError: If one cannot be read.
    """
    if not given:
        return ()
    own = with_settings(REPACK_SETTINGS, given)
    named = ", ".join(changed_settings(own, REPACK_SETTINGS)) or "the settings above"
    return ((f"As asked for ({named})", own),)
