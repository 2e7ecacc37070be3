"""The record of a shadow fleet: one SQLite file, changed in one transaction for each observation.

SQLite writes each transaction to a log with checksums (WAL) before it touches the file, and waits
until the disk has it. So after a crash at any write, or with a torn end of that log, the file holds
each observation that was recorded before, whole, and none in part.

Source: https://www.sqlite.org/wal.html and https://www.sqlite.org/atomiccommit.html (2026-11-30).
"""

import fcntl
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, Final, Self, TypeVar

from msgspec import Struct

from functions.cli.input_error import InputError
from functions.cli.shadow.fleet import (
    ComparedPurchase,
    Decision,
    Fleet,
    NodeRun,
    RealNode,
    RecordProgress,
    ShadowNode,
    Step,
)
from shared.model.codec import CodecError, from_json, to_json
from shared.model.kubernetes.nodes import Node

T = TypeVar("T", bound=Struct)

_VERSION: Final = 1
_BUSY_SECONDS: Final = 30.0
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS rows (
    kind TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (kind, key)
) WITHOUT ROWID
"""


class RowKind(StrEnum):
    """What a row holds; its value is JSON, that of a place the name of a node."""

    ABOUT = "about"
    PROGRESS = "progress"
    SPAN = "span"  # key: when it began
    SHADOW_NODE = "shadow node"  # key: its name; until it has ended
    SHADOW_RUN = "shadow run"  # key: name of its node
    PLACE = "place"  # key: uid of the pod
    REAL_NODE = "real node"  # key: its uid; also after it has ended
    SHOWN = "shown"  # key: what the node shows of its pool
    DECISION = "decision"  # key: when, and its number
    PURCHASE = "purchase"  # key: when, and its number
    NOTE = "note"  # key: its text


class About(Struct, frozen=True, kw_only=True):
    """What a record is about.

    Attributes:
        cluster: Address of its API server.
        prices: Where they come from, for people.
        settings: What was changed of the defaults, for people.
    """

    cluster: str
    prices: str
    settings: tuple[str, ...] = ()
    version: int = _VERSION


class Span(Struct, frozen=True, kw_only=True):
    """A time over which the cluster was observed without a gap."""

    began_at: datetime
    ended_at: datetime


class Recorded(Struct, frozen=True, kw_only=True):
    """All that a report needs; notes in the order of their texts, the rest in that of time."""

    about: About
    progress: RecordProgress
    spans: tuple[Span, ...]
    real: tuple[NodeRun, ...]
    shadow: tuple[NodeRun, ...]
    decisions: tuple[Decision, ...]
    purchases: tuple[ComparedPurchase, ...]
    notes: tuple[str, ...] = ()


class ShadowRecord:
    """A record, open to be read and continued; a context that closes it.

    Args:
        path: Of its file.
        make: Whether the file is made where there is none.

    Raises:
        InputError: If there is no such file, or it is no record.
    """

    def __init__(self, path: Path, *, make: bool) -> None:
        if not make and not path.is_file():
            raise InputError(f"{path}: there is no such file: name a record of dovetail shadow")
        self._path = path
        with ExitStack() as stack, self._refusing():
            if make:
                stack.enter_context(self._locked())
            self._connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
            stack.callback(self._connection.close)
            for pragma in ("journal_mode = WAL", "synchronous = FULL"):
                self._connection.execute(f"PRAGMA {pragma}")
            self._connection.execute(_TABLE)
            self._open = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def begin(self, about: About) -> None:
        """Say what is recorded.

        Raises:
            InputError: If the record is of another cluster.
        """
        known = self._one(RowKind.ABOUT, About)
        if known is not None and known.cluster != about.cluster:
            raise InputError(
                f"{self._path}: is the record of {known.cluster}, not of {about.cluster}: "
                "name another file with --state"
            )
        with self._transaction():
            self._put(RowKind.ABOUT, "", to_json(about))

    def began_at(self) -> datetime | None:
        """Return the time of the first observation, None before it."""
        with self._refusing():
            spans = self._all(RowKind.SPAN, Span).values()
        return next((span.began_at for span in spans), None)

    def note(self, notes: Iterable[str]) -> None:
        """Record what is left out or assumed, in a line each."""
        with self._transaction():
            for text in notes:
                self._put(RowKind.NOTE, text, b"")

    def fleet(self) -> Fleet:
        """Return the fleet after the last observation; an empty one before the first."""
        with self._refusing():
            real = self._all(RowKind.REAL_NODE, RealNode)
            return Fleet(
                progress=self._one(RowKind.PROGRESS, RecordProgress),
                nodes=self._all(RowKind.SHADOW_NODE, ShadowNode),
                places={key: value.decode() for key, value in self._rows(RowKind.PLACE)},
                real={uid: node for uid, node in real.items() if node.run.ended_at is None},
                shown=self._all(RowKind.SHOWN, Node),
            )

    def add(self, before: Fleet, step: Step) -> None:
        """Record a step, whole or not at all.

        Args:
            before: The fleet that the step began with: only what differs is written.
        """
        after, progress = step.fleet, step.fleet.progress
        if progress is None or progress == before.progress:
            return
        at = progress.last_at
        with self._transaction():
            span = Span(began_at=progress.span_began_at, ended_at=at)
            self._put(RowKind.SPAN, span.began_at.isoformat(), to_json(span))
            self._put(RowKind.PROGRESS, "", to_json(progress))
            self._put_changed(RowKind.SHADOW_NODE, before.nodes, after.nodes, drop=True)
            runs = (
                {name: node.run for name, node in fleet.nodes.items()} for fleet in (before, after)
            )
            self._put_changed(RowKind.SHADOW_RUN, *runs, drop=False)
            self._put_changed(RowKind.REAL_NODE, before.real, after.real, drop=False)
            self._put_changed(RowKind.SHOWN, before.shown, after.shown, drop=False)
            self._put_changed(RowKind.PLACE, before.places, after.places, drop=True)
            for kind, entries in (
                (RowKind.DECISION, step.decisions),
                (RowKind.PURCHASE, step.purchases),
            ):
                for number, entry in enumerate(entries):
                    self._put(kind, f"{at.isoformat()} {number:06}", to_json(entry))

    def recorded(self) -> Recorded:
        """Return what was recorded so far; another process may go on recording.

        Raises:
            InputError: If nothing was recorded yet.
        """
        with self._refusing(), self._reading():
            about = self._one(RowKind.ABOUT, About)
            progress = self._one(RowKind.PROGRESS, RecordProgress)
            if about is None or progress is None:
                raise InputError(f"{self._path}: nothing is recorded in it yet")
            real = [node.run for node in self._all(RowKind.REAL_NODE, RealNode).values()]
            shadow = self._all(RowKind.SHADOW_RUN, NodeRun).values()
            return Recorded(
                about=about,
                progress=progress,
                spans=tuple(self._all(RowKind.SPAN, Span).values()),
                real=tuple(sorted(real, key=_order)),
                shadow=tuple(sorted(shadow, key=_order)),
                decisions=tuple(self._all(RowKind.DECISION, Decision).values()),
                purchases=tuple(self._all(RowKind.PURCHASE, ComparedPurchase).values()),
                notes=tuple(text for text, _ in self._rows(RowKind.NOTE)),
            )

    def _locked(self) -> BinaryIO:
        """Return the file, locked against another process that records in it.

        It is closed after the connection: closing it sooner would end SQLite's own locks.
        """
        try:
            file = self._path.open("ab")
        except OSError as error:
            raise InputError(
                f"{self._path}: {error.strerror}: name a file in a folder that exists"
            ) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.close()
            raise InputError(
                f"{self._path}: another dovetail shadow records in it: end that, or name another "
                "file with --state"
            ) from error
        return file

    # --- rows

    def _rows(self, kind: RowKind) -> Iterator[tuple[str, bytes]]:
        query = "SELECT key, value FROM rows WHERE kind = ? ORDER BY key"
        yield from self._connection.execute(query, (kind,))

    def _all(self, kind: RowKind, of: type[T]) -> dict[str, T]:
        return {key: from_json(of, value.decode()) for key, value in self._rows(kind)}

    def _one(self, kind: RowKind, of: type[T]) -> T | None:
        return self._all(kind, of).get("")

    def _put(self, kind: RowKind, key: str, value: bytes) -> None:
        self._connection.execute("REPLACE INTO rows VALUES (?, ?, ?)", (kind, key, value))

    def _put_changed(
        self, kind: RowKind, before: Mapping[str, Any], after: Mapping[str, Any], *, drop: bool
    ) -> None:
        """Write the rows that differ; rows that there are no more are deleted if `drop`."""
        for key, value in after.items():
            known = before.get(key)
            if known is not value and known != value:
                self._put(kind, key, value.encode() if isinstance(value, str) else to_json(value))
        if drop:
            gone = [(kind, key) for key in before if key not in after]
            self._connection.executemany("DELETE FROM rows WHERE kind = ? AND key = ?", gone)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._refusing():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """See one state of the file in several reads."""
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            self._connection.execute("ROLLBACK")

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Report in one line what SQLite cannot do, or that the rows are of another form."""
        try:
            yield
        except (sqlite3.Error, CodecError) as error:
            raise InputError(
                f"{self._path}: {error}; name a file of dovetail shadow with --state, or one that "
                "is not there yet"
            ) from error


def _order(run: NodeRun) -> tuple[object, ...]:
    ended = run.ended_at.isoformat() if run.ended_at is not None else ""
    return (run.began_at, ended, run.pool, run.instance_type, run.zone, run.capacity_type)
