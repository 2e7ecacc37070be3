"""Dovetail's own messages on the bus and in the queue.

Each message is an EventBridge event: `source` is `dovetail.` and the name of the cluster it is
about, `detail-type` names the kind, `detail` is a `Wake`. The rights of each forwarder allow the
source of its own cluster alone, so that it cannot send messages about another cluster. The queue
carries the same envelope, also for messages that the control plane sends to itself.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from shared.model.errors import InvalidMessageError

SOURCE_PREFIX: Final = "dovetail."
# The source of what the schedules send.
SCHEDULE: Final = "aws.events"
VERSION: Final = 1
MAX_OBJECTS: Final = 200


class Kind(StrEnum):
    """What happened (the detail-type)."""

    POD_PENDING = "pod-pending"
    NODE_EMPTY = "node-empty"  # or used again though it is stamped as empty
    NODE_READY = "node-ready"
    NODE_DELETED = "node-deleted"
    PROVISIONER_CHANGED = "provisioner-changed"
    HEARTBEAT = "heartbeat"
    RESUME = "resume"  # sent by the functions themselves: plan again, now or after a delay
    LOOK = "disruption-look"  # likewise: look over all nodes, too
    SWEEP = "sweep"  # likewise: sweep this cluster


# What forwarders may send; the other kinds are ours.
FORWARDED: Final = (
    Kind.POD_PENDING,
    Kind.NODE_EMPTY,
    Kind.NODE_READY,
    Kind.NODE_DELETED,
    Kind.PROVISIONER_CHANGED,
    Kind.HEARTBEAT,
)

# Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/ (2026-11).
_LABEL: Final = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"
_NAME: Final = rf"^{_LABEL}(\.{_LABEL})*$"


class ObjectRef(BaseModel):
    """Names one Kubernetes object as the forwarder last saw it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    namespace: str = Field(default="", max_length=63, pattern=rf"^({_LABEL})?$")
    name: str = Field(min_length=1, max_length=253, pattern=_NAME)
    uid: str = Field(default="", max_length=64)
    resource_version: str = Field(default="", max_length=64)


class Wake(BaseModel):
    """The detail of a message.

    Attributes:
        version: Of this format.
        at: When it was observed (UTC).
        leading: Nothing of that kind was sent for 20 s before, so the fast lane takes it too.
        objects: What it is about, at most 200; a hint, never the whole truth.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    version: Literal[1] = VERSION
    cluster: str = Field(min_length=1, max_length=100, pattern=r"^[0-9A-Za-z][A-Za-z0-9_-]*$")
    at: AwareDatetime
    leading: bool = False
    objects: tuple[ObjectRef, ...] = Field(default=(), max_length=MAX_OBJECTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A decoded message: its kind and its detail."""

    kind: Kind
    wake: Wake

    @property
    def cluster(self) -> str:
        """The cluster it is about."""
        return self.wake.cluster


def decode(event: Mapping[str, Any]) -> Message:
    """Return the message in an EventBridge event.

    Raises:
        InvalidMessageError: If the kind is unknown, the detail does not validate or the source is
            not that of the detail's cluster; the text names the first wrong field.
    """
    source = event.get("source")
    if not str(source).startswith(SOURCE_PREFIX):
        raise InvalidMessageError(f"source: {source!r}: expected '{SOURCE_PREFIX}<cluster>'")
    try:
        kind = Kind(str(event.get("detail-type")))
    except ValueError as error:
        known = ", ".join(Kind)
        raise InvalidMessageError(
            f"detail-type: {event.get('detail-type')!r}: expected one of {known}"
        ) from error
    try:
        detail = Wake.model_validate(event.get("detail"))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in ("detail", *first["loc"]))
        raise InvalidMessageError(f"{where}: {first['msg']}") from error
    if source != source_of(detail.cluster):
        raise InvalidMessageError(
            f"source: {source!r} may not send messages about {detail.cluster!r}"
        )
    return Message(kind=kind, wake=detail)


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
        "detail": message.wake.model_dump(mode="json", exclude_none=True),
    }


def wake(
    kind: Kind,
    cluster: str,
    at: datetime,
    *,
    objects: Sequence[ObjectRef] = (),
    leading: bool = False,
) -> Message:
    """Return a message; `at` is converted to UTC."""
    detail = Wake(cluster=cluster, at=at.astimezone(UTC), leading=leading, objects=tuple(objects))
    return Message(kind=kind, wake=detail)
