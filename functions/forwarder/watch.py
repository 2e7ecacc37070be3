"""What is worth saying: a state machine without threads, clock or network."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from functions.forwarder.views import NodeView, PodView, ProvisionerView, View
from shared.messages.wake import Kind

REPEAT_AFTER: Final = timedelta(seconds=60)
HEARTBEAT_EVERY: Final = timedelta(minutes=5)


class Collection(StrEnum):
    """What is watched."""

    PODS = "pods"
    NODES = "nodes"
    PROVISIONERS = "provisioners"


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

    Nothing is announced before all three collections are complete: a node is not empty because
    its pods have not been read yet. Then everything that still needs somebody is announced again:
    what is pending, empty, deleting, or ready to be bound to, and all Provisioners.
    """

    def __init__(self) -> None:
        self._missing = set(Collection)
        self._waiting: dict[str, tuple[datetime, Ref]] = {}
        self._nodes: dict[str, NodeView] = {}
        self._provisioners: dict[str, ProvisionerView] = {}
        self._pods_on: dict[str, int] = {}
        self._next_heartbeat: datetime | None = None

    @property
    def is_synced(self) -> bool:
        """Whether all collections are complete."""
        return not self._missing

    @property
    def waiting_pods(self) -> int:
        """Pods that wait for capacity."""
        return len(self._waiting)

    def observe(self, old: View | None, new: View | None, now: datetime) -> list[Announcement]:
        """Return what a change gives to say: `old` None for a new object, `new` None for a gone."""
        match new or old:
            case PodView():
                found = list(self._pod(_pod(old), _pod(new), now))
            case NodeView():
                found = list(self._node(_node(old), _node(new)))
            case _:
                found = list(self._provisioner(_provisioner(old), _provisioner(new)))
        return found if self.is_synced else []

    def synced(self, collection: Collection, now: datetime) -> list[Announcement]:
        """Note that a collection is complete; return what to say if it was the last one."""
        self._missing.discard(collection)
        if self._missing:
            return []
        for uid, (_, ref) in self._waiting.items():
            self._waiting[uid] = (now + REPEAT_AFTER, ref)
        found = [Announcement(Kind.POD_PENDING, ref) for _, ref in self._waiting.values()]
        for node in self._nodes.values():
            found.extend(self._standing(node))
        found += [
            Announcement(Kind.PROVISIONER_CHANGED, _named(one))
            for one in self._provisioners.values()
        ]
        return found

    def tick(self, now: datetime) -> list[Announcement]:
        """Return what the time itself gives to say: pods still waiting, and the heartbeat."""
        found = []
        if self._next_heartbeat is None or now >= self._next_heartbeat:
            self._next_heartbeat = now + HEARTBEAT_EVERY
            found.append(Announcement(Kind.HEARTBEAT, None))
        if not self.is_synced:
            return found
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
        if before:
            left = self._pods_on.get(before, 1) - 1
            if left:
                self._pods_on[before] = left
                return
            self._pods_on.pop(before, None)
            node = self._nodes.get(before)
            if node is not None and self._is_empty(node):
                yield Announcement(Kind.NODE_EMPTY, _named(node))

    # --- nodes

    def _node(self, old: NodeView | None, new: NodeView | None) -> Iterable[Announcement]:
        if new is None:
            if old is not None:
                self._nodes.pop(old.name, None)
            return
        self._nodes[new.name] = new
        if not new.ours:
            return
        if old is None or not old.ours:
            yield from self._standing(new)
            return
        if new.deleting:
            if not old.deleting:
                yield Announcement(Kind.NODE_DELETED, _named(new))
            return
        if new.ready and (not old.ready or (new.held and new.shown != old.shown)):
            yield Announcement(Kind.NODE_READY, _named(new))
        if self._is_empty(new) and not old.initialized:
            yield Announcement(Kind.NODE_EMPTY, _named(new))

    def _standing(self, node: NodeView) -> Iterable[Announcement]:
        """Yield what a node that was not known before gives to say."""
        if node.ours and node.deleting:
            yield Announcement(Kind.NODE_DELETED, _named(node))
        elif node.ours and node.ready and node.held:
            yield Announcement(Kind.NODE_READY, _named(node))
        elif self._is_empty(node):
            yield Announcement(Kind.NODE_EMPTY, _named(node))

    def _is_empty(self, node: NodeView) -> bool:
        return (
            node.ours and node.initialized and not node.deleting and node.name not in self._pods_on
        )

    # --- provisioners

    def _provisioner(
        self, old: ProvisionerView | None, new: ProvisionerView | None
    ) -> Iterable[Announcement]:
        if new is None:
            if old is not None:
                self._provisioners.pop(old.name, None)
            return
        self._provisioners[new.name] = new
        # The pause annotation is no part of the spec: it does not count as a generation.
        if old is None or old[3:] != new[3:]:
            yield Announcement(Kind.PROVISIONER_CHANGED, _named(new))


def _pod(view: View | None) -> PodView | None:
    return view if isinstance(view, PodView) else None


def _node(view: View | None) -> NodeView | None:
    return view if isinstance(view, NodeView) else None


def _provisioner(view: View | None) -> ProvisionerView | None:
    return view if isinstance(view, ProvisionerView) else None


def _named(view: NodeView | ProvisionerView) -> Ref:
    return Ref("", view.name, view.uid, view.version)
