"""Bodies of launches as they are kept among the decisions."""

import dataclasses
from typing import Final

from shared.launching.fleet_request import LaunchContext, launch_body
from shared.model.ec2.launches import LaunchIntent
from shared.model.errors import ConflictError, PermanentError
from shared.ports import Decisions
from shared.snapshot.launch_body import LaunchAttempt, LaunchBody

# Attempts that earlier invocations wrote down and never opened are stepped over, at most so many.
_MAX_ABANDONED: Final = 10


def body_of(decisions: Decisions, intent: LaunchIntent) -> LaunchBody:
    """Return the body an intent was written for.

    Raises:
        PermanentError: If it is gone, cannot be read or is another one.
    """
    body = LaunchBody.from_bytes(decisions.get(intent.body_key))
    if body.sha256() != intent.body_hash:
        raise PermanentError(f"{intent.body_key}: is not what the intent was written for")
    return body


def write_body(
    decisions: Decisions, context: LaunchContext, attempt: LaunchAttempt
) -> LaunchBody | None:
    """Write the body of an attempt, under the first number that no other body has.

    An invocation that ended between body and header leaves a body behind that was never sent.

    Returns:
        None when so many of them stand written that the launch had better begin anew.

    Raises:
        PermanentError: If nothing of the attempt can be asked for.
    """
    for number in range(attempt.number, attempt.number + _MAX_ABANDONED):
        body = launch_body(context, dataclasses.replace(attempt, number=number))
        try:
            decisions.put(body.attempt.key, body.to_bytes())
        except ConflictError:
            continue
        return body
    return None
