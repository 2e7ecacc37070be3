"""What Dovetail has written about a cluster: launches and decisions."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from functions.cli.watch.board import Records
from functions.cli.watch.decision import read_decision
from shared.decisions.documents import base_of, whole
from shared.model.ec2.launches import LaunchIntent, PlannedNode, Slot
from shared.model.errors import InvalidManifestError, PermanentError
from shared.model.resources import Resources
from shared.snapshot.launch_body import LaunchBody

MOST_DECISIONS: Final = 20
# How far back the first list goes, and how long after its own day a decision may be written.
_FIRST_LOOK: Final = timedelta(days=1)
_LATE: Final = timedelta(minutes=5)
# What the list of decisions shows of each; the rest is sent when one is opened.
_SUMMARY: Final = (
    *("id", "at", "cause", "cost", "bound", "gap_percent", "bound_is_close", "pods", "remove"),
    *("nodes", "placed", "unplaced"),
)


class Reading(Protocol):
    """Reads what was written about one cluster: `shared.runtime.watching.ClusterRecords`."""

    cluster: str
    bucket: str

    def slots(self) -> tuple[Slot, ...]:
        """Return the launched nodes of the ledger."""
        ...

    def open_intents(self) -> tuple[LaunchIntent, ...]:
        """Return the unfinished launches."""
        ...

    def decisions(self, day: str, after: str) -> tuple[str, ...]:
        """Return the keys of a day's decisions that sort after a key, oldest first."""
        ...

    def document(self, key: str) -> bytes:
        """Return a document."""
        ...


class Archive:
    """The last decisions, read once each, and the launches under way.

    Args:
        reading: Where they are.
        worker: Runs what takes long: proofs and comparisons.
    """

    def __init__(self, reading: Reading, worker: Executor) -> None:
        self._reading = reading
        self._worker = worker
        # Replaced, never changed: other threads read it.
        self._read: Mapping[str, dict[str, Any]] = {}
        self._unreadable: set[str] = set()
        self._keys: tuple[str, ...] = ()
        self._listed_at: datetime | None = None
        self._last_base = ("", b"")

    def read(self, now: datetime) -> Records:
        """Read what is new.

        Raises:
            AutoscalerError: If AWS cannot be asked.
        """
        slots = self._reading.slots()
        launching = dict(_launching(self._reading, slots))
        for key in self._newest_keys(now):
            if key not in self._read and key not in self._unreadable:
                self._open(key)
        last = sorted(self._read, key=_by_plan)[-MOST_DECISIONS:]
        self._read = {key: self._read[key] for key in last}
        newest = self.newest_first()
        refused = newest[0]["refused"] if newest else {}
        return Records(slots=slots, launching=launching, refused=refused)

    def _newest_keys(self, now: datetime) -> tuple[str, ...]:
        """Return the keys of the last decisions, oldest first.

        S3 charges for each list of up to 1,000 keys, so only what may be new is listed: after the
        oldest of the last ones, as a decision may be written after a later one.
        """
        began = now - _FIRST_LOOK if self._listed_at is None else self._listed_at - _LATE
        days = sorted({f"{day:%Y-%m-%d}" for day in (max(began, now - _FIRST_LOOK), now)})
        after = self._keys[0] if len(self._keys) == MOST_DECISIONS else ""
        found = {key for day in days for key in self._reading.decisions(day, after)}
        self._keys = tuple(sorted(found.union(self._keys))[-MOST_DECISIONS:])
        self._listed_at = now
        return self._keys

    def newest_first(self) -> list[dict[str, Any]]:
        """Return the decisions that were read, whole."""
        read = self._read
        return [read[key] for key in sorted(read, key=_by_plan, reverse=True)]

    def document(self, plan_id: str) -> bytes | None:
        """Return a decision as it was recorded, with its base, None when it is none of the last."""
        found = next((key for key, read in self._read.items() if read["id"] == plan_id), None)
        return None if found is None else whole(self._reading.document(found), self._base)

    def _base(self, key: str) -> bytes:
        """Return a base, which many decisions in a row share."""
        if self._last_base[0] != key:
            self._last_base = key, self._reading.document(key)
        return self._last_base[1]

    def _open(self, key: str) -> None:
        try:
            content = self._reading.document(key)
            named = base_of(content)
            base = self._base(named) if named else b""
            read = self._worker.submit(read_decision, key, content, base).result()
        except (InvalidManifestError, PermanentError):
            # Not readable, or deleted in between: what can be read is shown.
            self._unreadable.add(key)
            return
        self._read = {**self._read, key: {**read, "bucket": self._reading.bucket}}


def summary(decision: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the list of decisions shows of one."""
    found = {name: decision[name] for name in _SUMMARY}
    found["nodes"] = [
        [row["count"], row["options"][0][0], row["options"][0][2]] for row in decision["nodes"]
    ]
    found["placed"] = sum(row["count"] for row in decision["placed"])
    found["unplaced"] = sum(row["count"] for row in decision["unplaced"])
    return found


def telling(decisions: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the decisions, newest first, without those that only repeat the one before them.

    While a pod fits nothing, the same is decided each minute.
    """
    nothing: Mapping[str, Any] = {}
    return [
        decision
        for decision, before in zip(decisions, (*decisions[1:], nothing), strict=bool(decisions))
        if any(decision[what] for what in ("nodes", "placed", "remove"))
        or decision["refused"] != before.get("refused")
    ]


def _by_plan(key: str) -> str:
    """Return the plan's id, which sorts by time."""
    return key.rpartition("/")[2]


def _launching(reading: Reading, slots: Iterable[Slot]) -> Iterable[tuple[str, PlannedNode]]:
    """Yield the nodes of unfinished launches that have no instance yet, by name of their slot."""
    filled = {slot.name for slot in slots}
    for intent in reading.open_intents():
        try:
            attempt = LaunchBody.from_bytes(reading.document(intent.body_key)).attempt
        except PermanentError:
            continue
        for slot in attempt.slots:
            name = f"{attempt.plan_id}/{attempt.group}/{slot.number}"
            if name not in filled:
                yield (
                    name,
                    PlannedNode(
                        provisioner=attempt.provisioner,
                        labels=attempt.labels,
                        options=attempt.options,
                        fallback=attempt.later,
                        pods=slot.pods,
                        requests=Resources(),
                        daemon_requests=slot.daemon_requests,
                    ),
                )
