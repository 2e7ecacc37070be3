"""Describes and terminates many instances with few calls.

Each drain is a timer of its own, and a thousand may run at once. No drain calls EC2 for itself
alone: each writes a request into the ledger. One execution locks the list for some seconds, calls
EC2 once for all requests and writes the statuses to the ledger. A single drain finds the list
unlocked, so it is no slower. If the execution crashes, the lock expires within seconds and the next
one repeats the calls; terminating twice is harmless.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from shared.model import labels as keys
from shared.model.codec import from_plain, to_plain
from shared.model.dialect import owner_kind_of
from shared.model.ec2.launches import Instance
from shared.model.errors import PermanentError, ThrottledError
from shared.model.kubernetes.nodes import Node
from shared.model.note import Note
from shared.model.values import replace
from shared.nodes.events.group_events import InstanceSummary, record_terminated
from shared.nodes.events.node_events import cause_of, price_of
from shared.ports import NodePorts

_TERMINATING: Final = frozenset({"shutting-down", "terminated"})
# No kubelet runs on an instance in these states.
_OFF: Final = frozenset({"stopped", "terminated"})
INSTANCE_REQUESTS: Final = "going#"
INSTANCE_STATUSES: Final = "instances"
# How long the list is locked: longer than the calls usually take.
_LOCKED_FOR: Final = timedelta(seconds=10)
# (Fewer terminating instances than this, the pause between two calls): few do not wait, many are
# combined into one call.
_SHORTEST_PAUSE: Final = timedelta(seconds=2)
_PAUSES: Final = (
    (3, timedelta(0)),
    (10, timedelta(seconds=4)),
    (50, timedelta(seconds=8)),
    (300, timedelta(seconds=12)),
)
_LONGEST_PAUSE: Final = timedelta(seconds=15)
# How long a status is valid during a drain, and while an instance shuts down.
_BELIEVED: Final = timedelta(seconds=30)
_BELIEVED_ENDING: Final = timedelta(seconds=2)
_KEEP: Final = timedelta(days=1)
# Instances described within this time count for the pause, though their drains may be over.
_RECENT: Final = timedelta(seconds=15)
# Most statuses at a time: one row of the ledger holds them.
_MOST: Final = 3000
# If EC2 refuses a call as a whole, it is split until this many instances are refused one by one.
_MOST_REFUSED: Final = 10


class InstanceStatus(Struct, frozen=True, kw_only=True):
    """The last status of an instance that EC2 returned.

    Attributes:
        state: The EC2 instance state; empty if EC2 does not know the instance.
        ours: Whether its tags prove that it was launched for this cluster, and its name that it is
            the instance of the Node that is removed.
        refused: Why EC2 refuses to terminate it, empty if it does not.
    """

    state: str
    ours: bool
    at: datetime
    refused: str = ""

    @property
    def is_terminated(self) -> bool:
        """Whether it is terminated: its state no longer changes."""
        return self.state == "terminated"

    @property
    def is_terminating(self) -> bool:
        """Whether it is terminated or shutting down; until it is terminated it may run pods."""
        return self.state in _TERMINATING

    @property
    def is_off(self) -> bool:
        """Whether it is terminated or stopped: it runs no pods."""
        return self.state in _OFF


class InstanceTerminator:
    """Describes and terminates the leaving instances of one cluster together."""

    def __init__(self, ports: NodePorts) -> None:
        self._ports = ports
        self._name = ports.cluster.name

    def describe(
        self, instance_id: str, *, terminate: bool, node: Node | None = None
    ) -> tuple[InstanceStatus | None, timedelta]:
        """Return the status of an instance and when to check again at the earliest.

        Args:
            terminate: Whether to terminate the instance; once requested, it is terminated even if
                the caller fails.
            node: The Node of an instance to terminate: its Provisioner gets an Event.

        Returns:
            None instead of a status if no execution has described the instance lately.

        Raises:
            PermanentError: If EC2 refuses to terminate this instance in particular.
            RetryableError: If the ledger or EC2 cannot be reached now.
        """
        ledger, now = self._ports.ledger, self._ports.clock.now()
        statuses = ledger.note(self._name, INSTANCE_STATUSES)
        row = statuses.value.get("seen", {}).get(instance_id)
        status = from_plain(InstanceStatus, row) if row is not None else None
        fresh = status is not None and not _is_old(status, now)
        if status is not None and status.refused and fresh:
            self.forget(instance_id)
            raise PermanentError(f"ec2 TerminateInstances: {instance_id}: {status.refused}")
        if status is not None and (
            status.is_terminated or (fresh and (status.is_terminating or not terminate))
        ):
            return status, _SHORTEST_PAUSE
        about = {} if node is None else {"node": to_plain(_instance_summary(node))}
        wanted = Note(name=f"{INSTANCE_REQUESTS}{instance_id}", value={"end": terminate, **about})
        ledger.put_note(self._name, wanted, now + _KEEP)
        free_at = _free_at(statuses)
        if now < free_at:
            # A call that is under way ends long before its lock expires.
            wait = timedelta(0) if statuses.value.get("busy") else free_at - now
            return (None if terminate else status), max(wait, _SHORTEST_PAUSE)
        return self._ask_all(statuses, now).get(instance_id), _SHORTEST_PAUSE

    def forget(self, instance_id: str) -> None:
        """Drop the request for an instance."""
        self._ports.ledger.drop_note(self._name, f"{INSTANCE_REQUESTS}{instance_id}")

    def _ask_all(self, statuses: Note, now: datetime) -> Mapping[str, InstanceStatus]:
        """Lock the list, call EC2 for all requests and save the statuses."""
        ledger = self._ports.ledger
        locked = {**statuses.value, "free_at": (now + _LOCKED_FOR).isoformat(), "busy": True}
        lock = replace(statuses, value=locked)
        if not ledger.change_note(self._name, lock, now + _KEEP):
            return {}
        requests = {
            note.name.removeprefix(INSTANCE_REQUESTS): note.value
            for note in ledger.notes(self._name, INSTANCE_REQUESTS)[:_MOST]
        }
        requested = {
            instance_id: value.get("end") is True for instance_id, value in requests.items()
        }
        before = _all_statuses(statuses)
        known = {item: before.get(item) for item in requested}
        due = [
            item
            for item, status in known.items()
            if status is None
            or not status.state
            or (not status.is_terminated and _is_old(status, now))
        ]
        found = {item: status for item, status in known.items() if status is not None}
        nodes = {item: row.get("node", {}).get("name", "") for item, row in requests.items()}
        found |= self._describe({item: nodes[item] for item in due}, now)
        to_terminate = [
            item
            for item, status in found.items()
            if requested[item] and status.state and not status.is_terminating and status.ours
        ]
        recent = {item: status for item, status in before.items() if now - status.at < _RECENT}
        pause = _pause_after(len({*requested, *recent}))
        try:
            found |= self._terminate(to_terminate, found)
        except ThrottledError as error:
            # The statuses read so far are saved; the next execution continues from them.
            pause = max(pause, error.delay or _SHORTEST_PAUSE)
        value = {
            "free_at": (now + pause).isoformat(),
            "seen": to_plain({**recent, **found}),
        }
        answered = replace(lock, value=value, version=lock.version + 1)
        ledger.change_note(self._name, answered, now + _KEEP)
        record_terminated(
            self._ports,
            [
                from_plain(InstanceSummary, requests[instance_id]["node"])
                for instance_id in to_terminate
                if found[instance_id].is_terminating and "node" in requests[instance_id]
            ],
        )
        return found

    def _describe(self, nodes: Mapping[str, str], now: datetime) -> dict[str, InstanceStatus]:
        """Return the statuses of instances; `nodes` names the Node of each, empty for none."""
        shown = (
            {entry.instance_id: entry for entry in self._ports.cloud.instances(list(nodes))}
            if nodes
            else {}
        )
        return {
            item: _status_of(shown.get(item), self._name, node, now) for item, node in nodes.items()
        }

    def _terminate(
        self, ids: Sequence[str], found: Mapping[str, InstanceStatus]
    ) -> dict[str, InstanceStatus]:
        """Terminate instances; one that EC2 refuses to terminate must not keep the others running.

        Nor may one whose tags do not permit its termination: its own drain reads that from its
        status, and the execution that holds the lock may belong to another instance.
        """
        if not ids:
            return {}
        try:
            self._ports.cloud.terminate(ids)
        except PermanentError as error:
            if len(ids) == 1:
                return {ids[0]: replace(found[ids[0]], refused=str(error) or "refused")}
        else:
            now = self._ports.clock.now()
            return {value: replace(found[value], state="shutting-down", at=now) for value in ids}
        terminated: dict[str, InstanceStatus] = {}
        half = len(ids) // 2
        for part in (ids[:half], ids[half:]):
            if sum(1 for status in terminated.values() if status.refused) < _MOST_REFUSED:
                terminated |= self._terminate(part, found)
        return terminated


def _instance_summary(node: Node) -> InstanceSummary:
    return InstanceSummary(
        name=node.name,
        provisioner=node.provisioner,
        kind=owner_kind_of(node.labels),
        instance_type=node.labels.get(keys.INSTANCE_TYPE, ""),
        capacity_type=node.labels.get(keys.CAPACITY_TYPE, ""),
        price_micros_per_hour=price_of(node),
        cause=cause_of(node),
    )


def _status_of(
    instance: Instance | None, cluster: str, node_name: str, now: datetime
) -> InstanceStatus:
    if instance is None:
        return InstanceStatus(state="", ours=True, at=now)
    ours = instance.tags.get(keys.TAG_CLUSTER) == cluster and (
        not node_name or instance.matches_node(node_name)
    )
    return InstanceStatus(state=instance.state, ours=ours, at=now)


def _is_old(status: InstanceStatus, now: datetime) -> bool:
    return now - status.at >= (_BELIEVED_ENDING if status.is_terminating else _BELIEVED)


def _pause_after(instances: int) -> timedelta:
    return next((pause for most, pause in _PAUSES if instances < most), _LONGEST_PAUSE)


def _free_at(statuses: Note) -> datetime:
    return datetime.fromisoformat(statuses.value.get("free_at", "1970-01-01T00:00:00+00:00"))


def _all_statuses(statuses: Note) -> dict[str, InstanceStatus]:
    return from_plain(dict[str, InstanceStatus], statuses.value.get("seen", {}))
