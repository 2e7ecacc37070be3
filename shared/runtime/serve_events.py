"""Serves the events of a function; what cannot be served goes to the dead-letter queue."""

import functools
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

from aws_lambda_powertools.utilities.typing import LambdaContext

from shared.model.errors import InvalidMessageError, NotAttachedError, PermanentError
from shared.model.messages.message import decode
from shared.runtime.dead_letters import send_dead_letter
from shared.runtime.logs_and_metrics import count, logger
from shared.runtime.service_runtime import ServiceRuntime

T = TypeVar("T")
Handler = Callable[[dict[str, Any], LambdaContext], Any]


class StartsTimers(Protocol):
    """A service that starts the timer of a node that a message names."""

    def begin(self, node_name: str) -> str:
        """Start the timer if it is due; return what was done."""


def dead_letters_invalid_events(handler: Handler) -> Handler:
    """Return the handler; an event that cannot be served goes to the dead-letter queue at once.

    It is invalid or names a cluster that is not attached: a retry would change nothing. The state
    of a timer is not an event: it fails its execution.
    """

    @functools.wraps(handler)
    def wrapped(event: dict[str, Any], context: LambdaContext) -> Any:
        try:
            return handler(event, context)
        except (InvalidMessageError, NotAttachedError) as error:
            if "detail-type" not in event:
                raise
            logger.exception("event put aside", reason=str(error))
            _send_to_dead_letters(event, str(error))
            return None

    return wrapped


def serve_each(
    event: Mapping[str, Any], names: Iterable[str], serve: Callable[[str], None]
) -> None:
    """Serve each node or instance of an event; an error in one does not stop the others.

    After permanent errors the event goes to the dead-letter queue, with the names of those it could
    not be served for, once no other is left to retry.

    Args:
        event: As it was received.
        names: Its nodes or instances.
        serve: Serves one of them; may be called again for each of them.

    Raises:
        Exception: The first error that is not permanent, after all were tried: the event must be
            retried.
    """
    retryable: list[Exception] = []
    permanent: list[str] = []
    for name in names:
        try:
            serve(name)
        except PermanentError as error:
            logger.exception("cannot be served", object=name, error=str(error))
            permanent.append(f"{name}: {error}")
        except Exception as error:  # noqa: BLE001 - raised below: the others are served first
            logger.warning("not served", object=name, error=str(error))
            retryable.append(error)
    if retryable:
        raise retryable[0]
    if permanent:
        _send_to_dead_letters(event, "; ".join(permanent))


def serve_nodes(
    runtime: ServiceRuntime[T], event: dict[str, Any], serve: Callable[[T, str, str], None]
) -> None:
    """Serve each node of a message, unless its cluster's forwarder sends too many messages.

    Args:
        serve: Gets the service, the name of the cluster and the name of the node.

    Raises:
        InvalidMessageError: If the event is no message.
        NotAttachedError: If no such cluster is attached.
        Exception: As `serve_each`.
    """
    message = decode(event)
    if not runtime.admits(message):
        return
    service = runtime.service(message.cluster)
    names = (node.name for node in message.detail.objects)
    serve_each(event, names, lambda name: serve(service, message.cluster, name))


def start_timers(
    runtime: ServiceRuntime[StartsTimers], event: dict[str, Any], told: str, context: LambdaContext
) -> None:
    """Start the timer of each node of a message, as `serve_nodes`, and log what was done.

    Args:
        told: The text of the log lines.
    """

    def begin(service: StartsTimers, cluster: str, node_name: str) -> None:
        outcome = service.begin(node_name)
        request = context.aws_request_id
        logger.info(told, cluster=cluster, node=node_name, outcome=outcome, request=request)

    serve_nodes(runtime, event, begin)


def _send_to_dead_letters(event: Mapping[str, Any], reason: str) -> None:
    count("DeadLetters", 1)
    send_dead_letter(json.dumps(event, default=str), reason)
