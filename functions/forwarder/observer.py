"""Decides which changes are announced: a state machine without threads, clock or network."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from functions.forwarder.reminders import FIRST_AGAIN, Reminder, Reminders, ttl_of
from functions.forwarder.views import NodeView, PodView, ProvisionerView, View
from shared.model.messages.message import MessageKind

REPEAT_AFTER: Final = timedelta(seconds=60)
HEARTBEAT_EVERY: Final = timedelta(minutes=5)
# A watch request lasts up to seven minutes; the next one is served again.
STALE_AFTER: Final = timedelta(minutes=10)


class Collection(StrEnum):
    """The watched collections."""

    PODS = "pods"
    NODES = "nodes"
    PROVISIONERS = "provisioners"
    NODE_POOLS = "nodepools"


class Ref(NamedTuple):
    """Identifies an object in the version that was last seen."""

    namespace: str
    name: str
    uid: str
    version: str


class Announcement(NamedTuple):
    """One announcement; a heartbeat has no object."""

    kind: MessageKind
    ref: Ref | None


class Observer:
    """Turns changes of objects into announcements.

    Nothing is announced before all collections are complete: a node would count as empty only
    because its pods have not been read yet. Then every object that needs action is announced:
    pending pods, nodes that are empty, being deleted or ready for binding, and all Provisioners
    and NodePools. Objects that still need action later are announced again at intervals.
    """

    def __init__(self) -> None:
        self._missing = set(Collection)
        self._served: dict[Collection, datetime] = {}
        self._waiting: dict[str, tuple[datetime, Ref]] = {}
        self._nodes: dict[str, NodeView] = {}
        self._provisioners: dict[str, ProvisionerView] = {}
        self._pods_on: dict[str, int] = {}
        self._reminders = Reminders()
        self._next_heartbeat: datetime | None = None

    @property
    def is_synced(self) -> bool:
        """Whether all collections are complete."""
        return not self._missing

    def is_current(self, now: datetime) -> bool:
        """Return whether all collections are complete, and each was served in the last 10 minutes.

        It is false if a permission is missing or was removed, or if every list and watch fails.
        """
        return self.is_synced and now - min(self._served.values()) < STALE_AFTER

    @property
    def waiting_pods(self) -> int:
        """The number of pods that wait for capacity."""
        return len(self._waiting)

    @property
    def nodes(self) -> list[NodeView]:
        """Dovetail's nodes."""
        return [node for node in self._nodes.values() if node.ours]

    @property
    def owners(self) -> list[ProvisionerView]:
        """Provisioners and NodePools, by key."""
        return [self._provisioners[key] for key in sorted(self._provisioners)]

    def is_empty(self, node: NodeView) -> bool:
        """Return whether no pod keeps a node from being empty."""
        return node.name not in self._pods_on

    def observe(self, old: View | None, new: View | None, now: datetime) -> list[Announcement]:
        """Return the announcements for one change of an object.

        Args:
            old: None for a new object.
            new: None for a deleted object.
            now: The current time.
        """
        match new or old:
            case PodView():
                found = list(self._pod(_pod(old), _pod(new), now))
            case NodeView():
                found = list(self._node(_node(old), _node(new), now))
            case _:
                found = list(self._provisioner(_provisioner(old), _provisioner(new)))
        return found if self.is_synced else []

    def collection_served(self, collection: Collection, now: datetime) -> None:
        """Record that the API server has answered a list or a watch of a collection."""
        self._served[collection] = now

    def collection_synced(self, collection: Collection, now: datetime) -> list[Announcement]:
        """Record that a collection is complete; after the last one, return all announcements."""
        self._missing.discard(collection)
        self.collection_served(collection, now)
        if self._missing:
            return []
        for uid, (_, ref) in self._waiting.items():
            self._waiting[uid] = (now + REPEAT_AFTER, ref)
        found = [Announcement(MessageKind.POD_PENDING, ref) for _, ref in self._waiting.values()]
        for node in self._nodes.values():
            self._reminders.set_needs(node.name, self._needed_kinds(node), now)
            found.extend(self._announce_needs(node))
        found += [
            Announcement(MessageKind.PROVISIONER_CHANGED, _ref(provisioner))
            for provisioner in self._provisioners.values()
        ]
        return found

    def announcements_due(self, now: datetime) -> list[Announcement]:
        """Return what is due: the heartbeat, waiting pods, and nodes that still need action."""
        if not self.is_synced:
            return []
        found = []
        is_due = self._next_heartbeat is None or now >= self._next_heartbeat
        if is_due and self.is_current(now):
            self._next_heartbeat = now + HEARTBEAT_EVERY
            found.append(Announcement(MessageKind.HEARTBEAT, None))
        due = []
        # Sorted by time: an entry that is renewed moves to the end.
        for uid, (at, _) in self._waiting.items():
            if at > now:
                break
            due.append(uid)
        for uid in due:
            _, ref = self._waiting.pop(uid)
            self._waiting[uid] = (now + REPEAT_AFTER, ref)
            found.append(Announcement(MessageKind.POD_PENDING, ref))
        for name, kind in self._reminders.due(now, self._waits_until):
            found.append(Announcement(kind, _ref(self._nodes[name])))
        return found

    # --- pods

    def _pod(
        self, old: PodView | None, new: PodView | None, now: datetime
    ) -> Iterable[Announcement]:
        if new is not None and new.waits_for_capacity:
            ref = Ref(new.namespace, new.name, new.uid, new.version)
            known = self._waiting.get(new.uid)
            self._waiting[new.uid] = (known[0] if known else now + REPEAT_AFTER, ref)
            if known is None:
                yield Announcement(MessageKind.POD_PENDING, ref)
        elif old is not None:
            self._waiting.pop(old.uid, None)
        before = old.node if old is not None and old.occupies_node else ""
        after = new.node if new is not None and new.occupies_node else ""
        if before == after:
            return
        if after:
            self._pods_on[after] = self._pods_on.get(after, 0) + 1
            if self._pods_on[after] == 1:
                yield from self._announce_emptiness(after, now)
        if before:
            left = self._pods_on.get(before, 1) - 1
            if left:
                self._pods_on[before] = left
                return
            self._pods_on.pop(before, None)
            yield from self._announce_emptiness(before, now)

    def _announce_emptiness(self, name: str, now: datetime) -> Iterable[Announcement]:
        """Yield an announcement if a node became empty, or is used while stamped as empty."""
        self._update_reminders(name, now)
        node = self._nodes.get(name)
        if node is not None and MessageKind.NODE_EMPTY in self._needed_kinds(node):
            yield Announcement(MessageKind.NODE_EMPTY, _ref(node))

    # --- nodes

    def _node(
        self, old: NodeView | None, new: NodeView | None, now: datetime
    ) -> Iterable[Announcement]:
        if new is None:
            # A new object of the same name may have arrived first: a list reports new objects
            # before deleted ones.
            if old is not None and _is_same(self._nodes.get(old.name), old):
                del self._nodes[old.name]
                self._reminders.set_needs(old.name, (), now)
            return
        if old is None:
            self._reminders.set_needs(new.name, (), now)
        self._nodes[new.name] = new
        self._update_reminders(new.name, now)
        if not new.ours:
            return
        if old is None or not old.ours:
            yield from self._announce_needs(new)
            return
        if new.deleting:
            if not old.deleting:
                yield Announcement(MessageKind.NODE_DELETED, _ref(new))
            return
        needs_binding = not old.ready or (
            not new.initialized and new.shown_resources != old.shown_resources
        )
        if new.ready and needs_binding:
            yield Announcement(MessageKind.NODE_READY, _ref(new))
        if MessageKind.NODE_EMPTY in self._needed_kinds(new) and not old.started:
            yield Announcement(MessageKind.NODE_EMPTY, _ref(new))

    def _announce_needs(self, node: NodeView) -> Iterable[Announcement]:
        """Yield an announcement for each action that a node needs."""
        for kind in self._needed_kinds(node):
            yield Announcement(kind, _ref(node))

    def _needed_kinds(self, node: NodeView) -> tuple[MessageKind, ...]:
        """Return the kinds of announcement for the actions that a node needs now."""
        if not node.ours:
            return ()
        if node.deleting:
            return (MessageKind.NODE_DELETED,)
        found = [MessageKind.NODE_READY] if node.ready and not node.initialized else []
        if node.started and (node.name not in self._pods_on or node.empty_since is not None):
            found.append(MessageKind.NODE_EMPTY)
        return tuple(found)

    def _update_reminders(self, name: str, now: datetime) -> None:
        """Set the reminders of what a node needs now, once all collections are complete."""
        node = self._nodes.get(name)
        if node is not None and self.is_synced:
            self._reminders.set_needs(name, self._needed_kinds(node), now)

    def _waits_until(self, name: str, reminder: Reminder) -> datetime | None:
        """Return the earliest time to announce a node again, None for not now."""
        if reminder.kind is not MessageKind.NODE_EMPTY:
            return reminder.next_at
        node = self._nodes[name]
        owner = self._provisioners.get(node.provisioner)
        if owner is None or owner.paused or owner.ttl_seconds is None:
            return None
        used = node.name in self._pods_on
        if used or node.empty_since is None or node.empty_since > reminder.next_at:
            # Used again, not stamped yet, or stamped with a time in the future.
            return reminder.next_at
        return node.empty_since + ttl_of(owner.ttl_seconds) + FIRST_AGAIN

    # --- provisioners

    def _provisioner(
        self, old: ProvisionerView | None, new: ProvisionerView | None
    ) -> Iterable[Announcement]:
        if new is None:
            if old is not None and _is_same(self._provisioners.get(old.key), old):
                del self._provisioners[old.key]
            return
        if new.foreign:
            return
        self._provisioners[new.key] = new
        # The pause annotation is not part of the spec: it does not change the generation.
        if old is None or old[3:] != new[3:]:
            yield Announcement(MessageKind.PROVISIONER_CHANGED, _ref(new))


def _pod(view: View | None) -> PodView | None:
    return view if isinstance(view, PodView) else None


def _node(view: View | None) -> NodeView | None:
    return view if isinstance(view, NodeView) else None


def _provisioner(view: View | None) -> ProvisionerView | None:
    return view if isinstance(view, ProvisionerView) else None


def _is_same(known: NodeView | ProvisionerView | None, view: NodeView | ProvisionerView) -> bool:
    """Return whether both are the same object, and not two of the same name."""
    return known is not None and known.uid == view.uid


def _ref(view: NodeView | ProvisionerView) -> Ref:
    return Ref("", view.name, view.uid, view.version)
