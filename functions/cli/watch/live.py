"""A running cluster as messages: watches and records feed the board, which reports changes."""

import contextlib
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from functions.cli.watch.board import Board, BoardChange, Totals
from functions.cli.watch.cluster_watch import ClusterRecords, ClusterWatch, WatchedPod
from functions.cli.watch.day_before import day_before
from functions.cli.watch.history import History, Point
from functions.cli.watch.rebuilt import (
    NO_OWNER,
    NO_TYPES,
    ClusterBound,
    cluster_bound,
    rebuilt_snapshot,
)
from functions.cli.watch.recent_decisions import (
    RecentDecisions,
    summary,
    without_repeats,
)
from functions.cli.watch.view import OfferingPrices
from shared.model.codec import to_plain
from shared.model.ec2.instance_types import InstanceType
from shared.model.errors import AutoscalerError, NotInstalledError
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import LabelSelector
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.settings import SettingsError

if TYPE_CHECKING:
    from shared.kube.reflector import Reflector

RECORDS_EVERY: Final = timedelta(seconds=3)
# While no pod waits: reads of S3 and DynamoDB cost money.
IDLE_RECORDS_EVERY: Final = timedelta(seconds=10)
BOUND_EVERY: Final = timedelta(seconds=2)
# A bound that took long is proved less often: the computer has other work.
_REST: Final = 4
_BOUND: Final = "bound"
_DAY: Final = "day"
# What an action rests that need not run again.
FOREVER: Final = float("inf")
_POINT_EVERY: Final = timedelta(seconds=1)

_LOG: Final = logging.getLogger(__name__)

Message = dict[str, Any]


def utc_now() -> datetime:
    """Return the current time."""
    return datetime.now(UTC)  # noqa: TID251 -- the entry point's own clock


class LiveCluster:
    """One cluster, watched until `stop`.

    Args:
        cluster: Reads it.
        name: Its name until the records give one.
        connect: Connects to AWS; after an error, which is shown, it is called again later.
        instance_types: For prices and bound if AWS has no catalogue.
        worker: Runs what takes long.
        now: The current time, UTC.
        selector: Selects the Nodes that are shown by their labels; None for all.
    """

    def __init__(  # noqa: PLR0913 -- one of them by keyword
        self,
        cluster: ClusterWatch,
        name: str,
        connect: Callable[[], ClusterRecords],
        instance_types: Sequence[InstanceType],
        worker: Executor,
        now: Callable[[], datetime] = utc_now,
        *,
        selector: LabelSelector | None = None,
    ) -> None:
        self._cluster = cluster
        self._name = name
        self._connect = connect
        self._types = tuple(instance_types)
        self._worker = worker
        self._now = now
        self._selector = selector
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._board = Board(OfferingPrices.of(self._types))
        self._history = History()
        self._began = now()
        self._proved_snapshot: ClusterSnapshot | None = None
        self._bound: ClusterBound | None = None
        self._notes: dict[str, str] = {}
        self._reader: ClusterRecords | None = None
        self._recent_decisions: RecentDecisions | None = None
        self._day_is_told = True
        self._sent: dict[str, Any] = {}
        self._next_point = self._next_records = now()
        self._watches: tuple[Reflector[Any], ...] = (
            cluster.nodes(self._node),
            cluster.pods(self._pod),
            *cluster.owners(self._owners),
        )
        self._threads = [
            threading.Thread(target=self._repeat, args=(every, action), daemon=True, name=name)
            for name, every, action in (
                ("records", RECORDS_EVERY, self._read_records),
                (_BOUND, BOUND_EVERY, self._prove_bound),
                (_DAY, RECORDS_EVERY, self._read_day_before),
            )
        ]

    def start(self, *, proves: bool = True, looks_back: bool = False) -> None:
        """Start to read.

        Args:
            proves: Whether the lower bound for the current pods is proved.
            looks_back: Whether the day before is read.
        """
        for watch in self._watches:
            watch.start()
        left_out = {_BOUND: not proves, _DAY: not looks_back}
        for thread in self._threads:
            if not left_out.get(thread.name):
                thread.start()

    def stop(self) -> None:
        """Stop reading."""
        self._stopped.set()
        for watch in self._watches:
            watch.stop(timedelta())

    @property
    def server(self) -> str:
        """Address of the cluster's API server."""
        return self._cluster.url

    @property
    def is_synced(self) -> bool:
        """Whether nodes and pods have been read once."""
        return all(watch.has_synced for watch in self._watches[:2])

    @property
    def is_complete(self) -> bool:
        """Whether records and bound have been read once, or are reported as missing."""
        with self._lock:
            known = self._bound is not None or bool(self._notes.get("bound"))
            return known and "records" in self._notes

    @property
    def is_current(self) -> bool:
        """Whether the decisions that are shown are all there are, or there are none to be read."""
        with self._lock:
            recent = self._recent_decisions
            return "records" in self._notes and (recent is None or recent.is_current)

    # --- what is shown

    def next_change(self) -> Message | None:
        """Return what has changed since the last call, None for nothing."""
        with self._lock:
            if not self.is_synced:
                return None
            change = self._board.next_change()
            message = {} if change is None else change.to_plain()
            message |= self._other_changes(self._board.whole() if change is None else change)
            return {"kind": "change", **message} if message else None

    def whole(self) -> Message:
        """Return all that there is to show."""
        with self._lock:
            whole = self._board.whole()
            return {
                "kind": "whole",
                "synced": self.is_synced,
                **whole.to_plain(),
                **self._other_fields(whole.totals),
                "history": self._history.points,
            }

    def node_labels(self) -> dict[str, Mapping[str, str]]:
        """Return the labels of each Node, by its name."""
        with self._lock:
            return {name: node.labels for name, node in self._board.nodes.items()}

    def decision(self, plan_id: str) -> Message | None:
        """Return all about a decision, None when it cannot be read."""
        recent = self._recent_decisions
        with contextlib.suppress(AutoscalerError):
            return None if recent is None else recent.decision(plan_id)
        return None

    def document(self, plan_id: str) -> bytes | None:
        """Return a decision as it was recorded, for `dovetail replay`; None if it is not there."""
        recent = self._recent_decisions
        with contextlib.suppress(AutoscalerError):
            return None if recent is None else recent.document(plan_id)
        return None

    def _other_changes(self, change: BoardChange) -> Message:
        """Return what has changed besides nodes and pods."""
        rest = self._other_fields(change.totals)
        new = {name: value for name, value in rest.items() if self._sent.get(name) != value}
        self._sent = rest
        now = self._now()
        totals = change.totals
        least = self._least(totals)
        bound = least.bound if least is not None else None
        point = Point(now.timestamp(), totals.price, totals.owned_price, bound, totals.nodes)
        if now >= self._next_point:
            self._next_point = now + _POINT_EVERY
            if self._history.add(point):
                new["point"] = point
        if not self._day_is_told:
            self._day_is_told = True
            new.pop("point", None)
            new["history"] = self._history.points
        return new

    def _other_fields(self, totals: Totals) -> Message:
        decisions = (
            self._recent_decisions.newest_first() if self._recent_decisions is not None else []
        )
        return {
            "cluster": self._name,
            "opened": self._began.timestamp(),
            "least": to_plain(self._least(totals)),
            "notes": [self._notes[topic] for topic in sorted(self._notes) if self._notes[topic]],
            "decisions": [summary(decision) for decision in without_repeats(decisions)],
        }

    def _least(self, totals: Totals) -> ClusterBound | None:
        """Return the bound; none where no node is Dovetail's, as it counts no others."""
        return self._bound if totals.owned or totals.coming else None

    # --- called by the watches' threads

    def _node(self, old: Node | None, new: Node | None) -> None:
        with self._lock:
            self._board.put_node(self._selected(old), self._selected(new))

    def _selected(self, node: Node | None) -> Node | None:
        if node is None or self._selector is None or self._selector.selects(node.labels):
            return node
        return None

    def _pod(self, old: WatchedPod | None, new: WatchedPod | None) -> None:
        with self._lock:
            self._board.put_pod(
                old.pod if old is not None else None,
                new.pod if new is not None else None,
                new.scheduler_message if new is not None else "",
            )

    def _owners(self) -> None:
        with contextlib.suppress(AutoscalerError):
            # Read again before each proof; a cluster may define neither kind.
            found = self._cluster.provisioners()
            with self._lock:
                self._board.put_owners(found)

    # --- threads of its own

    def _repeat(self, every: timedelta, action: Callable[[], float]) -> None:
        while not self._stopped.is_set():
            try:
                rest = action()
            except Exception as error:  # noqa: BLE001 -- the outermost loop: the rest is still shown
                if self._stopped.is_set():
                    return
                _LOG.exception("%s ended", threading.current_thread().name)
                self._set_note(
                    threading.current_thread().name, f"A defect: {error!r}; see the log."
                )
                rest = 30.0
            if rest == FOREVER:
                return
            self._stopped.wait(max(every.total_seconds(), rest))

    def _read_records(self) -> float:
        """Read ledger and decisions; return the least seconds until the next time."""
        now = self._now()
        with self._lock:
            if self._board.is_idle and now < self._next_records:
                return 0.0
        self._next_records = now + IDLE_RECORDS_EVERY
        try:
            if self._recent_decisions is None:
                self._recent_decisions = self._connected()
            records = self._recent_decisions.read(now)
        except (AutoscalerError, SettingsError) as error:
            self._set_note("records", f"Decisions and launches are not shown: {error}")
            return 30.0
        self._set_note("records", "")
        if self._selector is not None:
            # What has no Node yet has no labels to be selected by.
            slots = tuple(slot for slot in records.slots if slot.node_name)
            records = replace(records, slots=slots, launching={})
        with self._lock:
            self._board.put_records(records)
        return 0.0

    def _connected(self) -> RecentDecisions:
        self._reader = reader = self._connect()
        types = reader.instance_types()
        with self._lock:
            self._name = reader.cluster
            if types:
                self._types = types
                self._board.put_prices(OfferingPrices.of(types))
        return RecentDecisions(reader, self._worker)

    def _read_day_before(self) -> float:
        """Read what was recorded in the day before; return the seconds to pause."""
        if self._reader is None:
            return 0.0
        try:
            points = day_before(self._reader, self._worker, self._began)
        except AutoscalerError as error:
            self._set_note("day", f"The day before is not shown: {error}")
            return 30.0
        self._set_note("day", "")
        with self._lock:
            self._history.precede(points)
            self._day_is_told = False
        return FOREVER

    def _prove_bound(self) -> float:
        """Prove the lower bound for the current pods; return the seconds to pause."""
        if not self.is_synced:
            return 0.0
        began = self._now()
        try:
            owners = self._cluster.provisioners()
            daemonsets = self._cluster.daemonsets()
        except NotInstalledError:
            owners, daemonsets = (), ()
        except AutoscalerError as error:
            self._set_note("bound", f"No bound is proved: {error}")
            return 30.0
        with self._lock:
            nodes, pods = [*self._board.nodes.values()], [*self._board.pods.values()]
            types = self._types
        if not owners or not types:
            self._set_note("bound", f"No bound is proved: {NO_TYPES if owners else NO_OWNER}.")
            self._bound = None
            return 10.0
        snapshot = rebuilt_snapshot(nodes, pods, owners, daemonsets, types, self._began)
        if snapshot == self._proved_snapshot:
            return 0.0
        self._bound = self._worker.submit(cluster_bound, snapshot).result()
        self._proved_snapshot = snapshot
        self._set_note("bound", "")
        return _REST * (self._now() - began).total_seconds()

    def _set_note(self, topic: str, text: str) -> None:
        with self._lock:
            self._notes[topic] = text
