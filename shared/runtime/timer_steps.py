"""Takes the steps of timers for their functions."""

from collections.abc import Mapping
from typing import Any

from shared.model.timer_state import text_of
from shared.nodes.timers.node_timer import BaseTimer
from shared.runtime.logs_and_metrics import logger
from shared.runtime.service_runtime import ServiceRuntime


def take_step(
    runtime: ServiceRuntime[BaseTimer], state: Mapping[str, Any], told: str, **fields: Any
) -> dict[str, Any]:
    """Take one step of a timer and log it; return its next state.

    Args:
        told: The text of the log line.
        fields: Further fields of the log line.

    Raises:
        InvalidMessageError: If the state lacks a field.
        RetryableError: If the cluster or EC2 could not be read or changed now.
    """
    after = runtime.service(text_of(state, "cluster")).step(state)
    logger.info(told, cluster=after["cluster"], node=after["node"], state=after, **fields)
    return after
