"""What Dovetail has recorded about a cluster: launches and decisions."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from functions.cli.plan.decision_documents import base_of, whole_document
from functions.cli.watch.board import Records
from functions.cli.watch.decision import read_decision
from functions.cli.watch.outcome import outcome
from shared.model.ec2.launches import LaunchIntent, PlannedNode, Slot
from shared.model.errors import InvalidManifestError, PermanentError
from shared.model.resources import Resources
from shared.nodes.launch.launch_results import LaunchResult
from shared.snapshot.launch_body import LaunchBody

if TYPE_CHECKING:
    from functions.cli.watch.cluster_watch import ClusterRecords

MOST_DECISIONS: Final = 20
# How far back the first list goes, and how long after its own day a decision may be written.
_FIRST_SPAN: Final = timedelta(days=1)
_LATE: Final = timedelta(minutes=5)
# The groups of a plan are requested one after the other: between two none is under way.
_UNDER_WAY: Final = timedelta(minutes=1)
_PLAN_ID: Final = re.compile(r"\d{8}t\d{6}-[0-9a-f]+", re.ASCII)
# What the list of decisions shows of each; the rest is sent when one is opened.
_SUMMARY: Final = (
    *("id", "at", "cause", "cost", "bound", "gap_percent", "bound_is_close", "pods", "remove"),
    *("nodes", "placed", "unplaced", "outcome"),
)


class RecentDecisions:
    """The last decisions, read once each, and the launches under way.

    Args:
        reader: Reads them.
        worker: Runs what takes long: proofs and comparisons.

    Attributes:
        is_current: Whether all that are known to be there were read.
    """

    def __init__(self, reader: "ClusterRecords", worker: Executor) -> None:
        self.is_current = False
        self._reader = reader
        self._worker = worker
        # Replaced, never changed: other threads read it.
        self._read: Mapping[str, dict[str, Any]] = {}
        self._unreadable: set[str] = set()
        self._keys: tuple[str, ...] = ()
        self._listed_at: datetime | None = None
        self._last_base = ("", b"")
        self._results: Mapping[str, tuple[LaunchResult, ...]] = {}
        self._ended: frozenset[str] = frozenset()

    def read(self, now: datetime) -> Records:
        """Read what is new; return the records.

        Raises:
            AutoscalerError: If AWS cannot be reached.
        """
        slots, intents = self._reader.slots(), self._reader.open_intents()
        launching = dict(_launching(self._reader, slots, intents))
        keys = self._newest_keys(now)
        unread = [key for key in keys if key not in self._read and key not in self._unreadable]
        self.is_current = not unread
        # Each takes a while: the newest is shown first.
        for key in reversed(unread):
            self._open(key)
        last = sorted(self._read, key=_by_plan)[-MOST_DECISIONS:]
        self._read = {key: self._read[key] for key in last}
        self._read_results({intent.plan_id for intent in intents}, now)
        self.is_current = True
        newest = self.newest_first()
        refused = newest[0]["refused"] if newest else {}
        return Records(slots=slots, launching=launching, refused=refused)

    def _read_results(self, open_plans: Collection[str], now: datetime) -> None:
        """Read what came of the decisions whose launches were not over at the last look."""
        results, ended = {}, set()
        for read in self._read.values():
            plan, planned = read["id"], _planned(read)
            known = self._results.get(plan)
            if plan in self._ended and known is not None:
                results[plan] = known
                ended.add(plan)
            elif planned:
                results[plan] = self._reader.launch_results(plan)
                over = now - datetime.fromisoformat(read["at"]) > _UNDER_WAY
                covered = sum(result.planned for result in results[plan]) >= planned
                if covered or (over and plan not in open_plans):
                    ended.add(plan)
        self._results, self._ended = results, frozenset(ended)

    def _newest_keys(self, now: datetime) -> tuple[str, ...]:
        """Return the keys of the last decisions, oldest first.

        S3 charges for each list of up to 1,000 keys, so only what may be new is listed: after the
        oldest of the last ones, as a decision may be written after a later one.
        """
        began = now - _FIRST_SPAN if self._listed_at is None else self._listed_at - _LATE
        days = sorted({f"{day:%Y-%m-%d}" for day in (max(began, now - _FIRST_SPAN), now)})
        after = self._keys[0] if len(self._keys) == MOST_DECISIONS else ""
        found = {key for day in days for key in self._reader.decisions(day, after)}
        self._keys = tuple(sorted(found.union(self._keys))[-MOST_DECISIONS:])
        self._listed_at = now
        return self._keys

    def newest_first(self) -> list[dict[str, Any]]:
        """Return the decisions that were read, in full, newest first."""
        read = self._read
        return [self._with_outcome(read[key]) for key in sorted(read, key=_by_plan, reverse=True)]

    def _with_outcome(self, read: dict[str, Any]) -> dict[str, Any]:
        results = self._results.get(read["id"])
        if not results:
            return {**read, "outcome": None}
        ended = read["id"] in self._ended
        return {**read, "outcome": outcome(results, planned=_planned(read), ended=ended)}

    def decision(self, plan_id: str) -> dict[str, Any] | None:
        """Return a decision in full, also one from before the last; None if it is not there.

        Raises:
            AutoscalerError: If AWS cannot be reached.
        """
        found = next((read for read in self.newest_first() if read["id"] == plan_id), None)
        if found is not None or not _PLAN_ID.fullmatch(plan_id):
            return found
        read = self._opened(self._key(plan_id))
        if read is None:
            return None
        results = self._reader.launch_results(plan_id)
        came = outcome(results, planned=_planned(read), ended=True) if results else None
        return {**read, "outcome": came}

    def document(self, plan_id: str) -> bytes | None:
        """Return a decision as it was recorded, with its base; None if it is not there.

        Raises:
            AutoscalerError: If AWS cannot be reached.
        """
        found = next((key for key, read in self._read.items() if read["id"] == plan_id), None)
        if found is None and not _PLAN_ID.fullmatch(plan_id):
            return None
        try:
            return whole_document(self._reader.document(found or self._key(plan_id)), self._base)
        except (InvalidManifestError, PermanentError):
            return None

    def _key(self, plan_id: str) -> str:
        """Return the key of a decision: its id begins with its day."""
        day = f"{plan_id[:4]}-{plan_id[4:6]}-{plan_id[6:8]}"
        return f"decisions/{self._reader.cluster}/{day}/{plan_id}.json.gz"

    def _base(self, key: str) -> bytes:
        """Return a base, cached because many decisions in a row share it."""
        known, content = self._last_base
        if known != key:
            content = self._reader.document(key)
            self._last_base = key, content
        return content

    def _open(self, key: str) -> None:
        read = self._opened(key)
        if read is None:
            self._unreadable.add(key)
        else:
            self._read = {**self._read, key: read}

    def _opened(self, key: str) -> dict[str, Any] | None:
        """Return a decision in full; None if it is not readable, or deleted in between."""
        try:
            content = self._reader.document(key)
            named = base_of(content)
            base = self._base(named) if named else b""
            read = self._worker.submit(read_decision, key, content, base).result()
        except (InvalidManifestError, PermanentError):
            return None
        return {**read, "bucket": self._reader.bucket}


def summary(decision: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the list of decisions shows of one."""
    found = {name: decision[name] for name in _SUMMARY}
    found["nodes"] = [
        [row["count"], row["options"][0][0], row["options"][0][2]] for row in decision["nodes"]
    ]
    found["placed"] = sum(row["count"] for row in decision["placed"])
    found["unplaced"] = sum(row["count"] for row in decision["unplaced"])
    return found


def without_repeats(decisions: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the decisions, newest first, without those that repeat the one before.

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


def _planned(decision: Mapping[str, Any]) -> int:
    return sum(node["count"] for node in decision["nodes"])


def _launching(
    reader: "ClusterRecords", slots: Iterable[Slot], intents: Iterable[LaunchIntent]
) -> Iterable[tuple[str, PlannedNode]]:
    """Yield the nodes of unfinished launches that have no instance yet, by name of their slot."""
    filled = {slot.name for slot in slots}
    for intent in intents:
        try:
            attempt = LaunchBody.from_bytes(reader.document(intent.body_key)).attempt
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
                        fallback=attempt.fallback,
                        pods=slot.pods,
                        requests=Resources(),
                        daemon_requests=slot.daemon_requests,
                    ),
                )
