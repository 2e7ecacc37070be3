"""Sends records that a function cannot handle to the dead-letter queue."""

import functools
from collections.abc import Callable, Sequence
from datetime import timedelta

from shared.aws.dead_letters import DeadLetters
from shared.aws.session import Session
from shared.runtime.system import environment, function_name, region
from shared.settings import FunctionSettings


def send_dead_letter(text: str, reason: str) -> None:
    """Send a record to the dead-letter queue, with the reason as an attribute.

    Raises:
        AutoscalerError: If the queue does not accept it.
    """
    _queue().send(text, reason)


def send_dead_letters(
    records: Sequence[tuple[str, str]], *, in_time: Callable[[], bool]
) -> tuple[int, ...]:
    """Send records with their reasons; return the positions of those that were not sent."""
    return _queue().send_all(records, in_time=in_time)


@functools.cache
def _queue() -> DeadLetters:
    settings = FunctionSettings.from_environment(environment())
    session = Session(
        region=region(),
        api_timeout=timedelta(seconds=settings.api_timeout_seconds),
        name=function_name(),
    )
    return DeadLetters(session, queue_url=settings.dead_letter_url)
