"""A running world whose every part is one object that a test answers with."""

from pathlib import Path
from typing import Any

from infra.local.breaking.running_world import RunningWorld


def running(answering: Any) -> RunningWorld:
    """Return the world; the object is its control, its clients of AWS and of the cluster."""
    return RunningWorld(
        folder=Path(),
        control=answering.control,
        client=lambda _: answering,
        cluster=answering,
        api_server=None,
    )
