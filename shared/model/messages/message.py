"""Dovetail's own messages on the bus and in the queue.

Each message is an EventBridge event: `source` is `dovetail.` and the name of the cluster it is
about, `detail-type` names the kind, `detail` is a `MessageDetail`. The IAM policy of each forwarder
allows only the source of its own cluster, so that it cannot send messages about another cluster.
The queue carries the same envelope, also for messages that the control plane sends to itself.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from shared.model.codec import CodecError, from_plain, to_plain
from shared.model.errors import InvalidMessageError

SOURCE_PREFIX: Final = "dovetail."
# The source of scheduled events.
SCHEDULE: Final = "aws.events"
VERSION: Final = 1
MAX_OBJECTS: Final = 200


class MessageKind(StrEnum):
    """What happened (the detail-type)."""

    POD_PENDING = "pod-pending"
    NODE_EMPTY = "node-empty"  # or no longer empty although it is annotated as empty
    NODE_READY = "node-ready"
    NODE_DELETED = "node-deleted"
    PROVISIONER_CHANGED = "provisioner-changed"
    HEARTBEAT = "heartbeat"
    RESUME = "resume"  # sent by the functions themselves: plan again, now or after a delay
    EVALUATE = "disruption-look"  # likewise: evaluate all nodes for disruption, too
    SWEEP = "sweep"  # likewise: sweep this cluster


# The kinds that forwarders may send; the control plane sends the others.
FORWARDED: Final = (
    MessageKind.POD_PENDING,
    MessageKind.NODE_EMPTY,
    MessageKind.NODE_READY,
    MessageKind.NODE_DELETED,
    MessageKind.PROVISIONER_CHANGED,
    MessageKind.HEARTBEAT,
)

# Kinds whose first message in 20 s starts provision at once, besides going to the queue.
FAST: Final = frozenset({MessageKind.POD_PENDING})

# Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/ (2026-11).
_LABEL: Final = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"
_Namespace = Annotated[str, Meta(max_length=63, pattern=rf"^({_LABEL})?\Z")]
_Name = Annotated[str, Meta(max_length=253, pattern=rf"^{_LABEL}(\.{_LABEL})*\Z")]
_Id = Annotated[str, Meta(max_length=64)]
_Cluster = Annotated[str, Meta(max_length=100, pattern=r"^[0-9A-Za-z][A-Za-z0-9_-]*\Z")]


class ObjectRef(Struct, frozen=True, kw_only=True):
    """Reference to a Kubernetes object as the forwarder last read it."""

    namespace: _Namespace = ""
    name: _Name
    uid: _Id = ""
    resource_version: _Id = ""


class MessageDetail(Struct, frozen=True, kw_only=True):
    """The detail of a message.

    Attributes:
        version: Version of this format.
        at: When it was observed (UTC).
        leading: Whether it is the first message of its kind in 20 s.
        objects: The objects it is about, at most 200; a hint, not a complete list.
    """

    version: Literal[1] = VERSION
    cluster: _Cluster
    at: Annotated[datetime, Meta(tz=True)]
    leading: bool = False
    objects: Annotated[tuple[ObjectRef, ...], Meta(max_length=MAX_OBJECTS)] = ()


class Message(Struct, frozen=True, kw_only=True):
    """A decoded message: its kind and its detail."""

    kind: MessageKind
    detail: MessageDetail

    @property
    def cluster(self) -> str:
        """The cluster it is about."""
        return self.detail.cluster


def decode(event: Mapping[str, Any]) -> Message:
    """Return the message in an EventBridge event.

    Raises:
        InvalidMessageError: If the kind is unknown, the detail does not validate or the source is
            not that of the detail's cluster; the error names the first wrong field.
    """
    source = event.get("source")
    if not str(source).startswith(SOURCE_PREFIX):
        raise InvalidMessageError(f"source: {source!r}: expected '{SOURCE_PREFIX}<cluster>'")
    try:
        kind = MessageKind(str(event.get("detail-type")))
    except ValueError as error:
        known = ", ".join(MessageKind)
        raise InvalidMessageError(
            f"detail-type: {event.get('detail-type')!r}: expected one of {known}"
        ) from error
    try:
        detail = from_plain(MessageDetail, event.get("detail"))
    except CodecError as error:
        raise InvalidMessageError(str(error.inside("detail"))) from error
    if source != source_of(detail.cluster):
        raise InvalidMessageError(
            f"source: {source!r} may not send messages about {detail.cluster!r}"
        )
    return Message(kind=kind, detail=detail)


def source_of(cluster: str) -> str:
    """Return the source of messages about a cluster."""
    return f"{SOURCE_PREFIX}{cluster}"


def decode_text(text: str) -> Message:
    """Return the message in the JSON text of an EventBridge event, as a queue record carries it.

    Raises:
        InvalidMessageError: If it is no JSON object or `decode` refuses it.
    """
    try:
        event = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidMessageError(f"body: not JSON: {error}") from error
    if not isinstance(event, dict):
        raise InvalidMessageError(f"body: expected an object, found {type(event).__name__}")
    return decode(event)


def encode(message: Message) -> dict[str, Any]:
    """Return the message as an EventBridge event that `decode` reads back unchanged."""
    return {
        "source": source_of(message.cluster),
        "detail-type": message.kind.value,
        "detail": to_plain(message.detail),
    }


def make_message(
    kind: MessageKind,
    cluster: str,
    at: datetime,
    *,
    objects: Sequence[ObjectRef] = (),
    leading: bool = False,
) -> Message:
    """Return a message; `at` is converted to UTC."""
    detail = MessageDetail(
        cluster=cluster, at=at.astimezone(UTC), leading=leading, objects=tuple(objects)
    )
    return Message(kind=kind, detail=detail)
