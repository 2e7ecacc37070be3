"""Launch bodies as they are stored among the decisions."""

from typing import Final

from shared.model.ec2.launches import LaunchIntent
from shared.model.errors import ConflictError, PermanentError
from shared.model.values import replace
from shared.nodes.launch.launch_request import LaunchContext, launch_body
from shared.ports import Decisions
from shared.snapshot.launch_body import LaunchAttempt, LaunchBody

# At most this many attempts that earlier invocations saved and never opened are skipped.
_MAX_ABANDONED: Final = 10


def body_of(decisions: Decisions, intent: LaunchIntent) -> LaunchBody:
    """Return the body that an intent was written for.

    Raises:
        PermanentError: If it is gone, cannot be read or does not match the hash of the intent.
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
        None if so many such bodies exist that the launch should start over.

    Raises:
        PermanentError: If nothing of the attempt can be requested.
    """
    for number in range(attempt.number, attempt.number + _MAX_ABANDONED):
        body = launch_body(context, replace(attempt, number=number))
        try:
            decisions.put(body.attempt.key, body.to_bytes())
        except ConflictError:
            continue
        return body
    return None
