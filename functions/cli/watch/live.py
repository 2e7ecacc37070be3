"""A running cluster as messages: watches and records feed the board, a turn tells what changed."""

import contextlib
import dataclasses
import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

from functions.cli.watch.archive import Archive, Reading, summary, telling
from functions.cli.watch.board import Board, Change
from functions.cli.watch.history import History, Point
from functions.cli.watch.rebuilt import NO_OWNER, NO_TYPES, Least, least, rebuilt
from functions.cli.watch.view import Prices
from shared.model.ec2.instance_types import InstanceType
from shared.model.errors import AutoscalerError, NotInstalledError
from shared.model.kubernetes.daemonsets import DaemonSet
from shared.model.kubernetes.nodes import Node
from shared.model.provisioner import Provisioner
from shared.model.snapshot import ClusterSnapshot
from shared.runtime.watching import Reflecting, SeenPod
from shared.settings import SettingsError

RECORDS_EVERY: Final = timedelta(seconds=3)
# While no pod waits: what is read of S3 and DynamoDB costs money.
IDLE_RECORDS_EVERY: Final = timedelta(seconds=10)
BOUND_EVERY: Final = timedelta(seconds=2)
# A bound that took long is proved less often: the machine has other work.
_REST: Final = 4
_BOUND: Final = "bound"
_POINT_EVERY: Final = timedelta(seconds=1)

_LOG: Final = logging.getLogger(__name__)

Message = dict[str, Any]


class Watching(Protocol):
    """Where a cluster is read: `shared.runtime.watching.ClusterWatch`."""

    def nodes(self, changed: Callable[[Node | None, Node | None], None]) -> Reflecting:
        """Return a watch of all Nodes, not yet started."""
        ...

    def pods(self, changed: Callable[[SeenPod | None, SeenPod | None], None]) -> Reflecting:
        """Return a watch of all pods, not yet started."""
        ...

    def owners(self, changed: Callable[[], None]) -> tuple[Reflecting, ...]:
        """Return watches that tell that a Provisioner or NodePool has changed."""
        ...

    def provisioners(self) -> tuple[Provisioner, ...]:
        """Return the Provisioners and NodePools that can be used."""
        ...

    def daemonsets(self) -> tuple[DaemonSet, ...]:
        """Return all DaemonSets."""
        ...


class Recorded(Reading, Protocol):
    """What was written, with the prices of the Region."""

    def instance_types(self) -> tuple[InstanceType, ...]:
        """Return what can be bought in the Region."""
        ...


def utc_now() -> datetime:
    """Return the current time."""
    return datetime.now(UTC)  # noqa: TID251 -- the entry point's own clock


class Live:
    """One cluster, watched until `stop`.

    Args:
        cluster: Where it is read.
        name: What it is called until the records say so.
        connect: Connects to AWS; its error is told and tried again later.
        instance_types: What prices and bound are taken from where AWS has no catalogue.
        worker: Runs what takes long.
        now: The current time, UTC.
    """

    def __init__(
        self,
        cluster: Watching,
        name: str,
        connect: Callable[[], Recorded],
        instance_types: Sequence[InstanceType],
        worker: Executor,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._cluster = cluster
        self._name = name
        self._connect = connect
        self._types = tuple(instance_types)
        self._worker = worker
        self._now = now
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._board = Board(Prices.of(self._types))
        self._history = History()
        self._began = now()
        self._proved: ClusterSnapshot | None = None
        self._least: Least | None = None
        self._notes: dict[str, str] = {}
        self._archive: Archive | None = None
        self._told: dict[str, Any] = {}
        self._next_point = self._next_records = now()
        self._watches: tuple[Reflecting, ...] = (
            cluster.nodes(self._node),
            cluster.pods(self._pod),
            *cluster.owners(self._owners),
        )
        self._threads = [
            threading.Thread(target=self._repeat, args=(every, action), daemon=True, name=name)
            for name, every, action in (
                ("records", RECORDS_EVERY, self._read_records),
                (_BOUND, BOUND_EVERY, self._prove),
            )
        ]

    def start(self, *, proves: bool = True) -> None:
        """Begin to read, and to prove the bound for the pods that there are."""
        for watch in self._watches:
            watch.start()
        for thread in self._threads:
            if proves or thread.name != _BOUND:
                thread.start()

    def stop(self) -> None:
        """Read no more."""
        self._stopped.set()
        for watch in self._watches:
            watch.stop(timedelta())

    @property
    def is_synced(self) -> bool:
        """Whether nodes and pods have been read once."""
        return all(watch.has_synced for watch in self._watches[:2])

    @property
    def is_complete(self) -> bool:
        """Whether records and bound have been read once, or are told to be missing."""
        with self._lock:
            known = self._least is not None or bool(self._notes.get("bound"))
            return known and "records" in self._notes

    # --- what is told

    def turn(self) -> Message | None:
        """Return what is different since the last turn, None for nothing."""
        with self._lock:
            if not self.is_synced:
                return None
            change = self._board.change()
            message = {} if change is None else change.to_plain()
            message |= self._beside(self._board.whole() if change is None else change)
            return {"kind": "change", **message} if message else None

    def whole(self) -> Message:
        """Return all that there is to show."""
        with self._lock:
            whole = self._board.whole()
            return {
                "kind": "whole",
                "synced": self.is_synced,
                **whole.to_plain(),
                **self._rest(),
                "history": self._history.points,
            }

    def decision(self, plan_id: str) -> Message | None:
        """Return all about one of the last decisions, None when it is none of them."""
        archive = self._archive
        listed = archive.newest_first() if archive is not None else []
        return next((found for found in listed if found["id"] == plan_id), None)

    def document(self, plan_id: str) -> bytes | None:
        """Return a decision as it was recorded, for `dovetail replay`."""
        return self._archive.document(plan_id) if self._archive is not None else None

    def _beside(self, change: Change) -> Message:
        """Return what is new besides nodes and pods."""
        rest = self._rest()
        new = {name: value for name, value in rest.items() if self._told.get(name) != value}
        self._told = rest
        now = self._now()
        bound = self._least.bound if self._least is not None else None
        totals = change.totals
        point = Point(now.timestamp(), totals.price, totals.owned_price, bound)
        if now >= self._next_point:
            self._next_point = now + _POINT_EVERY
            if self._history.add(point):
                new["point"] = point
        return new

    def _rest(self) -> Message:
        decisions = self._archive.newest_first() if self._archive is not None else []
        return {
            "cluster": self._name,
            "least": dataclasses.asdict(self._least) if self._least is not None else None,
            "notes": [self._notes[topic] for topic in sorted(self._notes) if self._notes[topic]],
            "decisions": [summary(decision) for decision in telling(decisions)],
        }

    # --- called by the watches' threads

    def _node(self, old: Node | None, new: Node | None) -> None:
        with self._lock:
            self._board.put_node(old, new)

    def _pod(self, old: SeenPod | None, new: SeenPod | None) -> None:
        with self._lock:
            self._board.put_pod(
                old.pod if old is not None else None,
                new.pod if new is not None else None,
                new.said if new is not None else "",
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
                self._note(threading.current_thread().name, f"A defect: {error!r}; see the log.")
                rest = 30.0
            self._stopped.wait(max(every.total_seconds(), rest))

    def _read_records(self) -> float:
        """Read ledger and decisions; return the least seconds until the next time."""
        now = self._now()
        with self._lock:
            if self._board.is_idle and now < self._next_records:
                return 0.0
        self._next_records = now + IDLE_RECORDS_EVERY
        try:
            if self._archive is None:
                self._archive = self._connected()
            records = self._archive.read(now)
        except (AutoscalerError, SettingsError) as error:
            self._note("records", f"Decisions and launches are not shown: {error}")
            return 30.0
        self._note("records", "")
        with self._lock:
            self._board.put_records(records)
        return 0.0

    def _connected(self) -> Archive:
        reading = self._connect()
        types = reading.instance_types()
        with self._lock:
            self._name = reading.cluster
            if types:
                self._types = types
                self._board.put_prices(Prices.of(types))
        return Archive(reading, self._worker)

    def _prove(self) -> float:
        """Prove the bound for the pods that there are; return the seconds to rest."""
        if not self.is_synced:
            return 0.0
        began = self._now()
        try:
            owners = self._cluster.provisioners()
            daemonsets = self._cluster.daemonsets()
        except NotInstalledError:
            owners, daemonsets = (), ()
        except AutoscalerError as error:
            self._note("bound", f"No bound is proved: {error}")
            return 30.0
        with self._lock:
            nodes, pods = [*self._board.nodes.values()], [*self._board.pods.values()]
            types = self._types
        if not owners or not types:
            self._note("bound", f"No bound is proved: {NO_TYPES if owners else NO_OWNER}.")
            self._least = None
            return 10.0
        snapshot = rebuilt(nodes, pods, owners, daemonsets, types, self._began)
        if snapshot == self._proved:
            return 0.0
        self._least = self._worker.submit(least, snapshot).result()
        self._proved = snapshot
        self._note("bound", "")
        return _REST * (self._now() - began).total_seconds()

    def _note(self, topic: str, said: str) -> None:
        with self._lock:
            self._notes[topic] = said
