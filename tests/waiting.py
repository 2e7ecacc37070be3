"""Waiting for what must come: how busy the machine is plays no part."""

from collections.abc import Callable
from typing import Any

from infra.local.patience import awaited


def until(holds: Callable[[], Any], what: str = "", seconds: float = 60.0) -> Any:
    """Wait for an outcome and return it; `seconds` are those in which processes were served."""
    found = awaited(holds, seconds)
    assert found, f"not within {seconds} s: {what}"
    return found
