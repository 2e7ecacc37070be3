"""Where any function puts aside what it cannot understand."""

import functools
from collections.abc import Callable, Sequence
from datetime import timedelta

from shared.aws.dead_letters import DeadLetters
from shared.aws.session import Session
from shared.runtime.system import environment, function_name, region
from shared.settings import FunctionSettings


def dead_letter(text: str, reason: str) -> None:
    """Send a record to the dead-letter queue, with the reason as an attribute.

    Raises:
        AutoscalerError: If the queue does not take it.
    """
    _dead_letters().send(text, reason)


def dead_letters(
    records: Sequence[tuple[str, str]], *, in_time: Callable[[], bool]
) -> tuple[int, ...]:
    """Send records with their reasons; return the positions of those that were not taken."""
    return _dead_letters().send_all(records, in_time=in_time)


@functools.cache
def _dead_letters() -> DeadLetters:
    settings = FunctionSettings.from_environment(environment())
    session = Session(
        region=region(),
        api_timeout=timedelta(seconds=settings.api_timeout_seconds),
        name=function_name(),
    )
    return DeadLetters(session, queue_url=settings.dead_letter_url)
