"""What is written down and sent: ledger, decisions, messages and timers."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol

from shared.model.ec2.instance_types import OfferingKey
from shared.model.ec2.launches import LaunchIntent, Lease, Slot
from shared.model.ec2.quotas import QuotaReached
from shared.model.memo import Memo


class NodeLedger(Protocol):
    """What was decided for a cluster's nodes and what has come of it.

    A row of a newer schema is refused with a PermanentError; rows Dovetail did not write are
    logged and skipped. What several services must know, and what needs no fields of its own, is a
    memo: shared.timers.heartbeats, shared.brakes.trials and shared.events.recorded hold some.
    """

    def open_intents(self, cluster: str) -> tuple[LaunchIntent, ...]:
        """Return the intents of a cluster, sorted by plan, group."""
        ...

    def abandoned(self, cluster: str, now: datetime) -> bool:
        """Return whether the lease is expired without having been released."""
        ...

    def change_slot(self, slot: Slot) -> bool:
        """Replace a slot's row if it still has that instance and is as the slot was read.

        The row's version grows by 1.

        Returns:
            False when the row is gone (it stays gone) or was changed since it was read.
        """
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

    def slot_with(self, cluster: str, instance_id: str) -> Slot | None:
        """Return the slot that an instance fills, None when there is none: two rows are read."""
        ...

    def cluster_of(self, instance_id: str) -> str | None:
        """Return the cluster an instance was launched for, None if Dovetail did not launch it."""
        ...

    def mark_unavailable(
        self,
        offerings: Sequence[OfferingKey],
        now: datetime,
        *,
        certain: bool = True,
        cluster: str = "",
    ) -> None:
        """Mark offerings unavailable; each repeat lasts longer.

        Args:
            certain: False for those EC2 did not name, though it launched none of them.
            cluster: The cluster concerned; empty for all clusters of the account.
        """
        ...

    def memo(self, cluster: str, name: str) -> Memo:
        """Return what stands under a name; of version 0, and empty, when nothing does."""
        ...

    def memos(self, cluster: str, prefix: str) -> tuple[Memo, ...]:
        """Return the memos whose name has the prefix, sorted by name."""
        ...

    def change_memo(self, cluster: str, memo: Memo, until: datetime) -> bool:
        """Write a memo if it is still as it was read, and keep it until then.

        Returns:
            False if it was changed since it was read.
        """
        ...

    def put_memo(self, cluster: str, memo: Memo, until: datetime) -> None:
        """Write a memo, whatever stands there, and keep it until then."""
        ...

    def drop_memo(self, cluster: str, name: str) -> None:
        """Remove a memo; gone already is fine."""
        ...


class Ledger(NodeLedger, Protocol):
    """The table of what was decided and what has come of it, keyed by cluster.

    Every write under a lease is conditional on its fencing token.
    """

    def acquire(self, cluster: str, holder: str, now: datetime) -> Lease | None:
        """Take the cluster's lease if it is free or expired.

        When it is held, leave the dirty mark on that very lease and return None: the holder will
        plan once more. When it was released in between, try again.

        Where the last holder did not release it, the version of each slot of the cluster grows by
        1, so that what that holder writes late about slots it has read is not taken.
        """
        ...

    def renew(self, lease: Lease, now: datetime) -> Lease:
        """Push the lease's expiry, and see whether it is dirty.

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

    def open_intent(self, lease: Lease, intent: LaunchIntent, now: datetime) -> Lease:
        """Write an intent down, once; return the lease, renewed by the same write.

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
        """Remove an intent, whose reservation is free again, and renew the lease.

        One that is gone is closed.

        Raises:
            ConflictError: If the lease was lost, or the intent is at a later attempt.
        """
        ...

    def fill_slot(self, lease: Lease, slot: Slot) -> bool:
        """Pair a slot with its instance, each once; return False when either is paired already."""
        ...

    def fill_slots(self, lease: Lease, slots: Sequence[Slot]) -> tuple[bool, ...]:
        """Return for each slot what `fill_slot` returns for it; none has another's instance."""
        ...

    def drop_slot(self, slot: Slot, lease: Lease | None = None) -> None:
        """Remove a slot; its instance's row stays until the instance is gone.

        Args:
            lease: Of a caller that plans, whose write is then fenced.

        Raises:
            ConflictError: If the lease was lost.
        """
        ...

    def slot_of(self, instance_id: str) -> str | None:
        """Return the name of the slot an instance was paired with, gone or not; None if none."""
        ...

    def unavailable_offerings(self, now: datetime, cluster: str = "") -> frozenset[OfferingKey]:
        """Return the offerings that are not yet to be tried again.

        Args:
            cluster: Those marked for this cluster alone are returned, too.
        """
        ...

    def quotas_reached(self, now: datetime) -> tuple[QuotaReached, ...]:
        """Return the quotas of the account that EC2 said are reached lately, sorted."""
        ...

    def mark_quotas(self, marks: Sequence[QuotaReached], now: datetime) -> None:
        """Remember that quotas are reached; each repeat is remembered longer.

        While a mark is in force the fewest vCPUs that were refused count.
        """
        ...

    def take_token(self, api: str, now: datetime) -> timedelta:
        """Take an API's next request token; return how long to wait until it may be used."""
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
    REPLACEMENT = "replacement"
    TERMINATION = "termination"


class Outbox(Protocol):
    """Messages and timers that functions start."""

    def wake(self, cluster: str, delay: timedelta) -> None:
        """Send a `resume` message to the queue, delivered after `delay` (at most 15 min)."""
        ...

    def look(self, cluster: str, delay: timedelta = timedelta(0)) -> None:
        """Send a message to the queue that plans for a cluster and looks over all its nodes."""
        ...

    def invoke_provision(self, cluster: str, *, look: bool = False, changed: bool = False) -> None:
        """Call provision for one cluster, without waiting for its answer.

        Args:
            cluster: Its name.
            look: Whether to look over all its nodes, too.
            changed: Whether to write the conditions of its Provisioners, as a look does, too.
        """
        ...

    def invoke_sweep(self, cluster: str) -> None:
        """Call sweep for one cluster, without waiting for its answer."""
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
