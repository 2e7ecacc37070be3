"""What is written down and sent: ledger, decisions, messages and timers."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol

from shared.model.instance_types import OfferingKey
from shared.model.launch import LaunchIntent, Lease, Slot


class Ledger(Protocol):
    """The table of what was decided and what has come of it, keyed by cluster.

    Every write under a lease is conditional on its fencing token.
    """

    def acquire(self, cluster: str, holder: str, now: datetime) -> Lease | None:
        """Take the cluster's lease if it is free or expired.

        When it is held, leave the dirty mark on that very lease and return None: the holder will
        plan once more. When it was released in between, try again.
        """
        ...

    def renew(self, lease: Lease, now: datetime) -> Lease:
        """Push the lease's expiry.

        Raises:
            ConflictError: If the lease is no longer ours.
        """
        ...

    def release(self, lease: Lease) -> bool:
        """Give the lease back unless it is dirty, in one conditional write.

        Returns:
            False when it was dirty: the mark is cleared, the lease kept, plan once more. True
            also when the lease was lost in the meantime.
        """
        ...

    def abandoned(self, cluster: str, now: datetime) -> bool:
        """Return whether the lease is expired without having been released."""
        ...

    def open_intent(self, lease: Lease, intent: LaunchIntent) -> None:
        """Write an intent down, once.

        Raises:
            ConflictError: If the lease was lost or that attempt is already written.
        """
        ...

    def change_intent(self, lease: Lease, intent: LaunchIntent) -> None:
        """Replace an intent's row (same plan, group; attempt, state or time changed).

        Raises:
            ConflictError: If the lease was lost.
        """
        ...

    def open_intents(self, cluster: str) -> tuple[LaunchIntent, ...]:
        """Return the intents that are not done, sorted by plan, group."""
        ...

    def fill_slot(self, lease: Lease, slot: Slot) -> bool:
        """Pair a slot with its instance, each once.

        Returns:
            False when the slot or the instance is paired already (with whatever).
        """
        ...

    def change_slot(self, slot: Slot) -> None:
        """Replace a slot's row; one that is gone stays gone."""
        ...

    def drop_slot(self, slot: Slot) -> None:
        """Remove a slot; its instance's row stays until the instance is gone."""
        ...

    def drop_instance(self, instance_id: str) -> None:
        """Remove an instance's row: it is terminated."""
        ...

    def slots(self, cluster: str) -> tuple[Slot, ...]:
        """Return all slots of a cluster, sorted by name."""
        ...

    def cluster_of(self, instance_id: str) -> str | None:
        """Return the cluster an instance was launched for, None when it is not ours."""
        ...

    def unavailable_offerings(self, now: datetime) -> frozenset[OfferingKey]:
        """Return the offerings EC2 was out of and that are not yet to be tried again."""
        ...

    def mark_unavailable(self, offerings: Sequence[OfferingKey], now: datetime) -> None:
        """Remember that EC2 was out of these; each repeat is remembered longer."""
        ...

    def take_token(self, api: str, now: datetime) -> timedelta | None:
        """Take one request token of an API for account and Region.

        Returns:
            None when taken, else how long to wait for one.
        """
        ...

    def note_timer(self, cluster: str, node_uid: str, kind: str, at: datetime) -> None:
        """Write down that a timer of that kind runs for a node and was last seen at `at`."""
        ...

    def timers(self, cluster: str) -> Mapping[tuple[str, str], datetime]:
        """Return when each timer, by (node uid, kind), was last seen."""
        ...

    def drop_timer(self, cluster: str, node_uid: str, kind: str) -> None:
        """Remove a timer's row."""
        ...

    def note_heartbeat(self, cluster: str, at: datetime) -> None:
        """Write down when the cluster's forwarder last spoke."""
        ...


class Decisions(Protocol):
    """Documents that outlive an invocation: bodies of requests, snapshots and plans."""

    def put(self, key: str, document: bytes) -> None:
        """Write a document once; the same key again must carry the same bytes."""
        ...

    def get(self, key: str) -> bytes:
        """Return a document.

        Raises:
            NotFoundError: If there is none.
        """
        ...


class TimerKind(StrEnum):
    """The state machines."""

    EMPTINESS = "emptiness"
    EXPIRATION = "expiration"
    REGISTRATION = "registration"
    TERMINATION = "termination"


class Outbox(Protocol):
    """Messages and timers that functions start."""

    def wake(self, cluster: str, delay: timedelta) -> None:
        """Send a `resume` message to the queue, delivered after `delay` (at most 15 min)."""
        ...

    def start_timer(self, kind: TimerKind, name: str, payload: Mapping[str, Any]) -> bool:
        """Start an execution; the name is taken once.

        Returns:
            False when an execution of that name was started before.
        """
        ...

    def invoke_bind(self, cluster: str, nodes: Sequence[str]) -> None:
        """Wake the bind function for nodes, without waiting for its answer."""
        ...
