"""Combines a batch of queue records into one wake for each cluster."""

from collections.abc import Iterable

from msgspec import Struct

from shared.model.errors import InvalidMessageError
from shared.model.messages.message import Message, MessageKind, decode_text


class ClusterWake(Struct, frozen=True, kw_only=True):
    """The request to plan for one cluster.

    Attributes:
        record_ids: The IDs of the records that requested it.
        provisioners_changed: Whether one of them reports a changed Provisioner.
        evaluate: Whether one of them requests an evaluation of all nodes.
    """

    cluster: str
    record_ids: tuple[str, ...]
    provisioners_changed: bool = False
    evaluate: bool = False


class InvalidRecord(Struct, frozen=True, kw_only=True):
    """A record that cannot be decoded or served, however often it is delivered."""

    record_id: str
    text: str
    reason: str


def wakes(
    records: Iterable[tuple[str, str]],
) -> tuple[tuple[ClusterWake, ...], tuple[InvalidRecord, ...]]:
    """Return one wake per cluster, in the order of first records, and the invalid records.

    Args:
        records: (ID, text) of each; many records of one cluster become one wake, because the
            decision reads the state itself.
    """
    found: dict[str, list[str]] = {}
    changed: set[str] = set()
    to_evaluate: set[str] = set()
    invalid = []
    for record_id, text in records:
        try:
            message = decode_text(text)
        except InvalidMessageError as error:
            invalid.append(InvalidRecord(record_id=record_id, text=text, reason=str(error)))
            continue
        found.setdefault(message.cluster, []).append(record_id)
        if message.kind == MessageKind.PROVISIONER_CHANGED:
            changed.add(message.cluster)
        if message.kind == MessageKind.EVALUATE:
            to_evaluate.add(message.cluster)
    listed = tuple(
        ClusterWake(
            cluster=cluster,
            record_ids=tuple(ids),
            provisioners_changed=cluster in changed,
            evaluate=cluster in to_evaluate,
        )
        for cluster, ids in found.items()
    )
    return listed, tuple(invalid)


def wake_of(message: Message) -> ClusterWake:
    """Return the wake that a single message requests."""
    return ClusterWake(
        cluster=message.cluster,
        record_ids=(),
        provisioners_changed=message.kind == MessageKind.PROVISIONER_CHANGED,
        evaluate=message.kind == MessageKind.EVALUATE,
    )
