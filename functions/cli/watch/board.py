"""Holds what was read of one cluster and returns what has changed since the last call.

It has no threads, clock or network, like the forwarder's observer: the same input in the same order
gives the same changes, and all changes together give the whole.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct, field

from functions.cli.watch.view import (
    GOING,
    LAUNCHING,
    Nomination,
    OfferingPrices,
    ShownNode,
    WaitingGroup,
    view_node,
    view_planned,
    view_slot,
    view_waiting,
)
from shared.model.codec import to_plain
from shared.model.ec2.launches import PlannedNode, PodRef, Slot
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.provisioner import Provisioner

COMING: Final = frozenset({LAUNCHING, "launched", "registered"})


class Records(Struct, frozen=True, kw_only=True):
    """What Dovetail has recorded: empty without access to AWS.

    Attributes:
        launching: Nodes of unfinished launches without an instance, by name of their slot.
        refused: Why the last decision found no place for pods, by uid.
    """

    slots: tuple[Slot, ...] = ()
    launching: Mapping[str, PlannedNode] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)


class Totals(Struct, frozen=True, kw_only=True):
    """Figures of the whole cluster.

    Attributes:
        price: Total of all nodes whose price is known, in micro-dollars per hour.
        owned_price: Total of those that Dovetail launched.
        unpriced: Number of nodes without a known price.
    """

    nodes: int
    owned: int
    coming: int
    going: int
    pods: int
    waiting: int
    price: int
    owned_price: int
    unpriced: int


class BoardChange(Struct, frozen=True, kw_only=True):
    """What has changed since the last change.

    Attributes:
        nodes: Nodes that are new or shown differently, in order of name.
        gone: Names of nodes that no longer exist.
        waiting: All groups of waiting pods, None when unchanged.
    """

    nodes: tuple[ShownNode, ...]
    gone: tuple[str, ...]
    waiting: tuple[WaitingGroup, ...] | None
    totals: Totals

    def to_plain(self) -> dict[str, Any]:
        """Return it as JSON."""
        plain: dict[str, Any] = to_plain(self)
        return plain


class Board:
    """Nodes, pods and records as they were last read; not safe for several threads."""

    def __init__(self, prices: OfferingPrices) -> None:
        self._prices = prices
        self._nodes: dict[str, Node] = {}
        self._pods_on: dict[str, dict[str, Pod]] = {}
        self._pods: dict[str, Pod] = {}
        self._unbound: dict[str, Pod] = {}
        self._scheduler_messages: dict[str, str] = {}
        self._owners: tuple[Provisioner, ...] = ()
        self._records = Records()
        self._slots: dict[str, Slot] = {}
        self._instances: dict[str, str] = {}
        self._views: dict[str, ShownNode] = {}
        self._dirty: set[str] = set()
        self._shown_waiting: tuple[WaitingGroup, ...] = ()

    # --- what was read

    def put_node(self, old: Node | None, new: Node | None) -> None:
        """Apply a change of a Node: `old` is None for a new one, `new` for a deleted one."""
        for node in (old, new):
            if node is not None:
                self._dirty.update((node.name, node.instance_id))
        if new is not None:
            self._nodes[new.name] = new
            self._instances[new.instance_id] = new.name
        elif old is not None and self._nodes.get(old.name, old).uid == old.uid:
            self._nodes.pop(old.name, None)
            self._instances.pop(old.instance_id, None)

    def put_pod(self, old: Pod | None, new: Pod | None, scheduler_message: str = "") -> None:
        """Apply a change of a pod.

        Args:
            scheduler_message: Kube-scheduler's message about it, empty without one.
        """
        if old is not None:
            self._forget_pod(old)
        if new is None or new.is_terminal:
            return
        self._pods[new.uid] = new
        if new.node_name:
            self._pods_on.setdefault(new.node_name, {})[new.uid] = new
            self._dirty.add(new.node_name)
        else:
            self._unbound[new.uid] = new
            self._scheduler_messages[new.uid] = scheduler_message

    def _forget_pod(self, pod: Pod) -> None:
        self._pods.pop(pod.uid, None)
        self._unbound.pop(pod.uid, None)
        self._scheduler_messages.pop(pod.uid, None)
        if pod.node_name:
            self._pods_on.get(pod.node_name, {}).pop(pod.uid, None)
            self._dirty.add(pod.node_name)

    def put_owners(self, owners: Iterable[Provisioner]) -> None:
        """Set the Provisioners and NodePools."""
        found = tuple(owners)
        if found != self._owners:
            self._owners = found
            self._dirty.update(self._nodes)

    def put_records(self, records: Records) -> None:
        """Set what Dovetail has recorded."""
        before = self._records
        self._records = records
        self._slots = {slot.instance_id: slot for slot in records.slots}
        for slot in {*before.slots} ^ {*records.slots}:
            self._dirty.update((slot.instance_id, slot.node_name))
        self._dirty.update({*before.launching} | {*records.launching})

    def put_prices(self, prices: OfferingPrices) -> None:
        """Set the prices of another catalogue."""
        if prices != self._prices:
            self._prices = prices
            self._dirty.update(self._nodes)

    # --- what is shown

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The Nodes by name."""
        return self._nodes

    @property
    def pods(self) -> Mapping[str, Pod]:
        """The pods that have not ended, by uid."""
        return self._pods

    @property
    def is_idle(self) -> bool:
        """Whether no pod waits and no launch is under way."""
        return not self._unbound and not self._records.launching

    def next_change(self) -> BoardChange | None:
        """Return what has changed since the last call, None for nothing."""
        before = dict.fromkeys(self._views)
        changed = self._redrawn()
        gone = tuple(sorted(name for name in before if name not in self._views))
        waiting = self._waiting()
        same = waiting == self._shown_waiting
        self._shown_waiting = waiting
        if not changed and not gone and same:
            return None
        return BoardChange(
            nodes=changed, gone=gone, waiting=None if same else waiting, totals=self._totals()
        )

    def whole(self) -> BoardChange:
        """Return all of it, as the change from nothing; does not affect `next_change`."""
        return BoardChange(
            nodes=tuple(self._views[name] for name in sorted(self._views)),
            gone=(),
            waiting=self._shown_waiting,
            totals=self._totals(),
        )

    def _redrawn(self) -> tuple[ShownNode, ...]:
        """Update the views that may have changed; return those that have."""
        found = []
        # Nominated pods change with pods and not with the node.
        coming = {*self._records.launching, *map(self._name_of, self._records.slots)}
        for name in sorted(self._dirty | coming):
            view = self._view(name)
            if view == self._views.get(name):
                continue
            if view is None:
                del self._views[name]
            else:
                self._views[name] = view
                found.append(view)
        self._dirty.clear()
        return tuple(found)

    def _view(self, name: str) -> ShownNode | None:
        """Return what is shown under a name: a Node, an instance without one, or a planned node."""
        node = self._nodes.get(name)
        if node is not None:
            slot = self._slots.get(node.instance_id)
            promised = self._known(slot.pods) if slot is not None else []
            pods = [*self._pods_on.get(name, {}).values()]
            owner = next((found for found in self._owners if found.owns(node)), None)
            return view_node(node, pods, owner, promised, self._prices.of_node(node))
        slot = self._slots.get(name)
        if slot is not None:
            # An instance that has or had a Node is shown as that Node.
            named = name in self._instances or slot.node_name
            return (
                None
                if named
                else view_slot(slot, self._owner(slot.provisioner), self._known(slot.pods))
            )
        planned = self._records.launching.get(name)
        if planned is None:
            return None
        owner = self._owner(planned.provisioner)
        return view_planned(name, planned, owner, self._known(planned.pods))

    def _owner(self, name: str) -> Provisioner | None:
        return next((found for found in self._owners if found.name == name), None)

    def _name_of(self, slot: Slot) -> str:
        """Return the name under which a launched instance is shown."""
        return slot.node_name or self._instances.get(slot.instance_id, slot.instance_id)

    def _known(self, refs: Iterable[PodRef]) -> list[Pod]:
        return [pod for ref in refs if (pod := self._pods.get(ref.uid)) is not None]

    def _waiting(self) -> tuple[WaitingGroup, ...]:
        if not self._unbound:
            return ()
        nominations = {}
        for view, refs in self._coming():
            for ref in refs:
                nominations[ref.uid] = Nomination(node=view.name, waits_for=view.waits_for)
        waiting = self._unbound.values()
        return view_waiting(waiting, nominations, self._records.refused, self._scheduler_messages)

    def _coming(self) -> Iterable[tuple[ShownNode, tuple[PodRef, ...]]]:
        for slot in self._records.slots:
            view = self._views.get(self._name_of(slot))
            if view is not None:
                yield view, slot.pods
        for name, planned in self._records.launching.items():
            yield self._views[name], planned.pods

    def _totals(self) -> Totals:
        views = self._views.values()
        standing = [view for view in views if view.phase != LAUNCHING]
        owned = [view for view in standing if view.ours]
        return Totals(
            nodes=len(standing),
            owned=len(owned),
            coming=sum(view.phase in COMING for view in views),
            going=sum(view.phase == GOING for view in views),
            pods=sum(share.count for view in standing for share in view.pods),
            waiting=len(self._unbound),
            price=sum(view.price or 0 for view in views),
            owned_price=sum(view.price or 0 for view in views if view.ours),
            unpriced=sum(view.price is None for view in views),
        )
