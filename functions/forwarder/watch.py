"""What is worth saying: a state machine without threads, clock or network."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from functions.forwarder.reminding import FIRST_AGAIN, Reminders, Standing, ttl_of
from functions.forwarder.views import NodeView, PodView, ProvisionerView, View
from shared.messages.wake import Kind

REPEAT_AFTER: Final = timedelta(seconds=60)
HEARTBEAT_EVERY: Final = timedelta(minutes=5)
# A watch lives for up to seven minutes, and a new one begins it again.
STALE_AFTER: Final = timedelta(minutes=10)


class Collection(StrEnum):
    """What is watched."""

    PODS = "pods"
    NODES = "nodes"
    PROVISIONERS = "provisioners"
    NODE_POOLS = "nodepools"


class Ref(NamedTuple):
    """Names an object as it was last seen."""

    namespace: str
    name: str
    uid: str
    version: str


class Announcement(NamedTuple):
    """One thing to say; a heartbeat is about no object."""

    kind: Kind
    ref: Ref | None


class Observer:
    """Turns changes of objects into announcements.

    Nothing is announced before all collections are complete: a node is not empty because
    its pods have not been read yet. Then every object that still needs action is announced again:
    pending pods, nodes that are empty, being deleted or ready for binding, and all Provisioners
    and NodePools.
    Objects that still need action later are announced again at intervals.
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

        It is false where a right is missing or was removed, or each list and watch fails.
        """
        return self.is_synced and now - min(self._served.values()) < STALE_AFTER

    @property
    def waiting_pods(self) -> int:
        """Pods that wait for capacity."""
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
        """Return what a change gives to say: `old` None for a new object, `new` None for a gone."""
        match new or old:
            case PodView():
                found = list(self._pod(_pod(old), _pod(new), now))
            case NodeView():
                found = list(self._node(_node(old), _node(new), now))
            case _:
                found = list(self._provisioner(_provisioner(old), _provisioner(new)))
        return found if self.is_synced else []

    def served(self, collection: Collection, now: datetime) -> None:
        """Note that the API server has served a list or a watch of a collection."""
        self._served[collection] = now

    def synced(self, collection: Collection, now: datetime) -> list[Announcement]:
        """Note that a collection is complete; return what to say if it was the last one."""
        self._missing.discard(collection)
        self.served(collection, now)
        if self._missing:
            return []
        for uid, (_, ref) in self._waiting.items():
            self._waiting[uid] = (now + REPEAT_AFTER, ref)
        found = [Announcement(Kind.POD_PENDING, ref) for _, ref in self._waiting.values()]
        for node in self._nodes.values():
            self._reminders.note(node.name, self._needs(node), now)
            found.extend(self._standing(node))
        found += [
            Announcement(Kind.PROVISIONER_CHANGED, _ref(provisioner))
            for provisioner in self._provisioners.values()
        ]
        return found

    def tick(self, now: datetime) -> list[Announcement]:
        """Return what the time itself gives to say: the heartbeat, and what is still to be done."""
        if not self.is_synced:
            return []
        found = []
        is_due = self._next_heartbeat is None or now >= self._next_heartbeat
        if is_due and self.is_current(now):
            self._next_heartbeat = now + HEARTBEAT_EVERY
            found.append(Announcement(Kind.HEARTBEAT, None))
        due = []
        # Kept in the order of their time: an entry that is renewed goes to the end.
        for uid, (at, _) in self._waiting.items():
            if at > now:
                break
            due.append(uid)
        for uid in due:
            _, ref = self._waiting.pop(uid)
            self._waiting[uid] = (now + REPEAT_AFTER, ref)
            found.append(Announcement(Kind.POD_PENDING, ref))
        for name, kind in self._reminders.due(now, self._waits_until):
            found.append(Announcement(kind, _ref(self._nodes[name])))
        return found

    # --- pods

    def _pod(
        self, old: PodView | None, new: PodView | None, now: datetime
    ) -> Iterable[Announcement]:
        if new is not None and new.waits:
            ref = Ref(new.namespace, new.name, new.uid, new.version)
            known = self._waiting.get(new.uid)
            self._waiting[new.uid] = (known[0] if known else now + REPEAT_AFTER, ref)
            if known is None:
                yield Announcement(Kind.POD_PENDING, ref)
        elif old is not None:
            self._waiting.pop(old.uid, None)
        before = old.node if old is not None and old.counts else ""
        after = new.node if new is not None and new.counts else ""
        if before == after:
            return
        if after:
            self._pods_on[after] = self._pods_on.get(after, 0) + 1
            if self._pods_on[after] == 1:
                yield from self._emptiness(after, now)
        if before:
            left = self._pods_on.get(before, 1) - 1
            if left:
                self._pods_on[before] = left
                return
            self._pods_on.pop(before, None)
            yield from self._emptiness(before, now)

    def _emptiness(self, name: str, now: datetime) -> Iterable[Announcement]:
        """Yield that a node became empty, or is used again while it is stamped as empty."""
        self._note(name, now)
        node = self._nodes.get(name)
        if node is not None and Kind.NODE_EMPTY in self._needs(node):
            yield Announcement(Kind.NODE_EMPTY, _ref(node))

    # --- nodes

    def _node(
        self, old: NodeView | None, new: NodeView | None, now: datetime
    ) -> Iterable[Announcement]:
        if new is None:
            # One that took its name may have been seen before: lists tell what is new first.
            if old is not None and _is_same(self._nodes.get(old.name), old):
                del self._nodes[old.name]
                self._reminders.note(old.name, (), now)
            return
        if old is None:
            self._reminders.note(new.name, (), now)
        self._nodes[new.name] = new
        self._note(new.name, now)
        if not new.ours:
            return
        if old is None or not old.ours:
            yield from self._standing(new)
            return
        if new.deleting:
            if not old.deleting:
                yield Announcement(Kind.NODE_DELETED, _ref(new))
            return
        news = not old.ready or (not new.initialized and new.shown != old.shown)
        if new.ready and news:
            yield Announcement(Kind.NODE_READY, _ref(new))
        if Kind.NODE_EMPTY in self._needs(new) and not old.started:
            yield Announcement(Kind.NODE_EMPTY, _ref(new))

    def _standing(self, node: NodeView) -> Iterable[Announcement]:
        """Yield what a node that was not known before gives to say."""
        for kind in self._needs(node):
            yield Announcement(kind, _ref(node))

    def _needs(self, node: NodeView) -> tuple[Kind, ...]:
        """Return the kinds of announcement for the actions that a node needs now."""
        if not node.ours:
            return ()
        if node.deleting:
            return (Kind.NODE_DELETED,)
        found = [Kind.NODE_READY] if node.ready and not node.initialized else []
        if node.started and (node.name not in self._pods_on or node.emptied is not None):
            found.append(Kind.NODE_EMPTY)
        return tuple(found)

    def _note(self, name: str, now: datetime) -> None:
        """Note what a node needs now, once everything is known."""
        node = self._nodes.get(name)
        if node is not None and self.is_synced:
            self._reminders.note(name, self._needs(node), now)

    def _waits_until(self, name: str, standing: Standing) -> datetime | None:
        """Return the earliest time to announce a node again, None for not at all now."""
        if standing.kind is not Kind.NODE_EMPTY:
            return standing.next_at
        node = self._nodes[name]
        owner = self._provisioners.get(node.provisioner)
        if owner is None or owner.paused or owner.ttl_seconds is None:
            return None
        used = node.name in self._pods_on
        if used or node.emptied is None or node.emptied > standing.next_at:
            # Not heard of yet, or used again, or what is written is no such time.
            return standing.next_at
        return node.emptied + ttl_of(owner.ttl_seconds) + FIRST_AGAIN

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
        # The pause annotation is no part of the spec: it does not count as a generation.
        if old is None or old[3:] != new[3:]:
            yield Announcement(Kind.PROVISIONER_CHANGED, _ref(new))


def _pod(view: View | None) -> PodView | None:
    return view if isinstance(view, PodView) else None


def _node(view: View | None) -> NodeView | None:
    return view if isinstance(view, NodeView) else None


def _provisioner(view: View | None) -> ProvisionerView | None:
    return view if isinstance(view, ProvisionerView) else None


def _is_same(known: NodeView | ProvisionerView | None, view: NodeView | ProvisionerView) -> bool:
    """Return whether the object of a name is this one, and not one that took its name."""
    return known is not None and known.uid == view.uid


def _ref(view: NodeView | ProvisionerView) -> Ref:
    return Ref("", view.name, view.uid, view.version)
