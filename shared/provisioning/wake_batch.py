"""From a batch of queue records to one wake per cluster."""

from collections.abc import Iterable
from dataclasses import dataclass

from shared.messages.wake import Kind, Message, decode_text
from shared.model.errors import InvalidMessageError


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterWake:
    """Why one cluster is to be planned for.

    Attributes:
        record_ids: Of the records that asked for it.
        provisioners_changed: Whether one of them says that a Provisioner changed.
        look: Whether one of them asks for a look over all nodes.
    """

    cluster: str
    record_ids: tuple[str, ...]
    provisioners_changed: bool = False
    look: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidRecord:
    """A record that cannot be understood or served, however often it comes."""

    record_id: str
    text: str
    reason: str


def wakes(
    records: Iterable[tuple[str, str]],
) -> tuple[tuple[ClusterWake, ...], tuple[InvalidRecord, ...]]:
    """Return one wake per cluster, in order of first record, and what cannot be understood.

    Args:
        records: (id, text) of each; many records of one cluster are one wake, for the decision
            reads the state itself.
    """
    found: dict[str, list[str]] = {}
    changed: set[str] = set()
    looks: set[str] = set()
    invalid = []
    for record_id, text in records:
        try:
            message = decode_text(text)
        except InvalidMessageError as error:
            invalid.append(InvalidRecord(record_id=record_id, text=text, reason=str(error)))
            continue
        found.setdefault(message.cluster, []).append(record_id)
        if message.kind == Kind.PROVISIONER_CHANGED:
            changed.add(message.cluster)
        if message.kind == Kind.LOOK:
            looks.add(message.cluster)
    listed = tuple(
        ClusterWake(
            cluster=cluster,
            record_ids=tuple(ids),
            provisioners_changed=cluster in changed,
            look=cluster in looks,
        )
        for cluster, ids in found.items()
    )
    return listed, tuple(invalid)


def wake_of(message: Message) -> ClusterWake:
    """Return what a message that came by itself asks for."""
    return ClusterWake(
        cluster=message.cluster,
        record_ids=(),
        provisioners_changed=message.kind == Kind.PROVISIONER_CHANGED,
        look=message.kind == Kind.LOOK,
    )
