"""The ports of the ledger, of decision records, and of messages and timers."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol

from shared.model.ec2.instance_types import OfferingKey
from shared.model.ec2.launches import LaunchIntent, Lease, Slot
from shared.model.ec2.quotas import QuotaReached
from shared.model.note import Note


class NodeLedger(Protocol):
    """Decisions about a cluster's nodes and their outcomes.

    A row of a newer schema is refused with a PermanentError; rows Dovetail did not write are
    logged and skipped. What services share that needs no row type of its own is a note:
    heartbeats of timers, trials and recorded Events are some.
    """

    def open_intents(self, cluster: str) -> tuple[LaunchIntent, ...]:
        """Return the intents of a cluster, sorted by plan and group."""
        ...

    def abandoned(self, cluster: str, now: datetime) -> bool:
        """Return whether the lease has expired without having been released."""
        ...

    def change_slot(self, slot: Slot) -> bool:
        """Replace a slot's row if it still has that instance and was not changed since it was read.

        The row's version grows by 1.

        Returns:
            False when the row is gone (it is not created again) or was changed since it was read.
        """
        ...

    def drop_slot(self, slot: Slot) -> None:
        """Remove a slot; its instance's row stays until the instance is gone."""
        ...

    def drop_instance(self, instance_id: str) -> None:
        """Remove the row of a terminated instance."""
        ...

    def slots(self, cluster: str) -> tuple[Slot, ...]:
        """Return all slots of a cluster, sorted by name."""
        ...

    def slot_with(self, cluster: str, instance_id: str) -> Slot | None:
        """Return the slot that an instance fills, None when there is none; reads two rows."""
        ...

    def cluster_of(self, instance_id: str) -> str | None:
        """Return the cluster of an instance, None if Dovetail did not launch it."""
        ...

    def mark_unavailable(
        self,
        offerings: Sequence[OfferingKey],
        now: datetime,
        *,
        certain: bool = True,
        cluster: str = "",
    ) -> None:
        """Mark offerings unavailable, longer with each repeat.

        Args:
            certain: False for offerings that EC2 did not name in an error, though it launched none
                of them.
            cluster: The cluster concerned; empty for all clusters of the account.
        """
        ...

    def note(self, cluster: str, name: str) -> Note:
        """Return the note of a name; an empty note of version 0 when there is none."""
        ...

    def notes(self, cluster: str, prefix: str) -> tuple[Note, ...]:
        """Return the notes whose name has the prefix, sorted by name."""
        ...

    def change_note(self, cluster: str, note: Note, until: datetime) -> bool:
        """Write a note that expires at `until`, if it was not changed since it was read.

        Returns:
            False if it was changed since it was read.
        """
        ...

    def put_note(self, cluster: str, note: Note, until: datetime) -> None:
        """Write a note that expires at `until`, unconditionally."""
        ...

    def drop_note(self, cluster: str, name: str) -> None:
        """Remove a note if it exists."""
        ...


class Ledger(NodeLedger, Protocol):
    """The table of decisions and their outcomes, keyed by cluster.

    Every write under a lease is conditional on its fencing token.
    """

    def acquire(self, cluster: str, holder: str, now: datetime) -> Lease | None:
        """Take the cluster's lease if it is free or expired.

        When another holder has it, set the dirty mark on that lease and return None: the holder
        plans once more. When it was released in between, try again.

        Where the last holder did not release it, the version of each slot of the cluster grows by
        1, so that late writes of that holder to slots it has read are refused.
        """
        ...

    def renew(self, lease: Lease, now: datetime) -> Lease:
        """Extend the lease and return it with its current dirty mark.

        Raises:
            ConflictError: If the lease has another holder or was released.
        """
        ...

    def release(self, lease: Lease) -> bool:
        """Release the lease unless it is dirty, in one conditional write.

        Returns:
            False when it was dirty: the mark is cleared and the lease kept; the caller plans once
            more. True also when the lease was lost in the meantime.
        """
        ...

    def open_intent(self, lease: Lease, intent: LaunchIntent, now: datetime) -> Lease:
        """Write an intent, once; return the lease, renewed by the same write.

        Raises:
            ConflictError: If the lease was lost or that intent is already written.
        """
        ...

    def change_intent(self, lease: Lease, intent: LaunchIntent, now: datetime) -> Lease:
        """Replace an intent (same plan, group; attempt or time changed), and renew the lease.

        Raises:
            ConflictError: If the lease was lost, or the intent is closed or at a later attempt.
        """
        ...

    def close_intent(self, lease: Lease, intent: LaunchIntent, now: datetime) -> Lease:
        """Remove an intent, which frees its reservation, and renew the lease.

        An intent that is gone counts as closed.

        Raises:
            ConflictError: If the lease was lost, or the intent is at a later attempt.
        """
        ...

    def fill_slot(self, lease: Lease, slot: Slot) -> bool:
        """Pair a slot with its instance; return False when either is paired already.

        Raises:
            ConflictError: If the lease was lost.
        """
        ...

    def fill_slots(self, lease: Lease, slots: Sequence[Slot]) -> tuple[bool, ...]:
        """Return the result of `fill_slot` for each slot; no two have the same instance."""
        ...

    def drop_slot(self, slot: Slot, lease: Lease | None = None) -> None:
        """Remove a slot; its instance's row stays until the instance is gone.

        Args:
            lease: The lease of a caller that plans; its write is fenced.

        Raises:
            ConflictError: If the lease was lost.
        """
        ...

    def slot_of(self, instance_id: str) -> str | None:
        """Return the name of the slot an instance was paired with, None if none.

        The slot itself may be gone.
        """
        ...

    def unavailable_offerings(self, now: datetime, cluster: str = "") -> frozenset[OfferingKey]:
        """Return the offerings that are marked unavailable now.

        Args:
            cluster: Offerings marked for this cluster alone are returned, too.
        """
        ...

    def quotas_reached(self, now: datetime) -> tuple[QuotaReached, ...]:
        """Return the quotas of the account that EC2 recently reported as reached, sorted."""
        ...

    def mark_quotas(self, marks: Sequence[QuotaReached], now: datetime) -> None:
        """Mark quotas as reached, longer with each repeat.

        While a mark is in force, the fewest vCPUs that were refused count.
        """
        ...

    def take_token(self, api: str, now: datetime) -> timedelta:
        """Take an API's next request token; return how long to wait until it may be used.

        The token already belongs to the caller: a later launch waits longer.
        """
        ...


class Decisions(Protocol):
    """Documents that outlive an invocation: bodies of requests, snapshots and plans."""

    def put(self, key: str, document: bytes) -> None:
        """Write a document once; a second write to the same key must have the same bytes.

        Raises:
            ConflictError: If other bytes are stored, or another write is under way.
        """
        ...

    def get(self, key: str) -> bytes:
        """Return a document.

        Raises:
            NotFoundError: If there is none.
        """
        ...


class TimerKind(StrEnum):
    """The kinds of timers, each with its own state machine."""

    EMPTINESS = "emptiness"
    EXPIRATION = "expiration"
    REGISTRATION = "registration"
    REPLACEMENT = "replacement"
    TERMINATION = "termination"


class Outbox(Protocol):
    """Messages and timers that functions start."""

    def wake(self, cluster: str, delay: timedelta) -> None:
        """Send a `resume` message to the queue, delivered after `delay` (at most 15 min)."""
        ...

    def evaluate(self, cluster: str, delay: timedelta = timedelta(0)) -> None:
        """Send a message that makes provision plan for the cluster.

        It also evaluates the cluster's nodes for disruption.
        """
        ...

    def invoke_provision(
        self, cluster: str, *, evaluate: bool = False, changed: bool = False
    ) -> None:
        """Invoke provision for one cluster, asynchronously.

        Args:
            evaluate: Whether to evaluate its nodes for disruption, too.
            changed: Whether to write the conditions of its Provisioners, as an evaluation does.
        """
        ...

    def invoke_sweep(self, cluster: str) -> None:
        """Invoke sweep for one cluster, asynchronously."""
        ...

    def start_timer(self, kind: TimerKind, name: str, payload: Mapping[str, Any]) -> bool:
        """Start an execution; each name is used once.

        Returns:
            False when an execution of that name was started before.
        """
        ...

    def invoke_bind(self, cluster: str, nodes: Sequence[str]) -> None:
        """Invoke bind for nodes, asynchronously."""
        ...
