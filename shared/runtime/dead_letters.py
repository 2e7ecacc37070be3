"""Where any function puts aside what it cannot understand."""

import functools
from datetime import timedelta

from shared.aws.dead_letters import DeadLetters
from shared.aws.session import Session
from shared.runtime.system import environment, function_name, region
from shared.settings import FunctionSettings


def dead_letter(text: str, reason: str) -> None:
    """Send a record to the dead-letter queue, with the reason as an attribute."""
    _dead_letters().send(text, reason)


@functools.cache
def _dead_letters() -> DeadLetters:
    settings = FunctionSettings.from_environment(environment())
    session = Session(
        region=region(),
        api_timeout=timedelta(seconds=settings.api_timeout_seconds),
        name=function_name(),
    )
    return DeadLetters(session, queue_url=settings.dead_letter_url)
