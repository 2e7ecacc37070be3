"""Polling one queue for one mapping: collect a batch, invoke, delete what succeeded."""

import threading
import time
from typing import Any

from infra.local.aws.backends import backend
from infra.local.aws.background import repeat, shielded
from infra.local.aws.execution.function import FunctionNotFoundError
from infra.local.aws.execution.invoker import Invoker, ThrottledError
from infra.local.aws.execution.recursion import RecursiveLoopError
from infra.local.aws.queues import QueueMissingError, backend_of, find_queue
from infra.local.aws.sources.batch import (
    MAX_BATCH_BYTES,
    InvalidAnswerError,
    event_of,
    failed_items,
    size_of,
    trace_of,
)

_LOOK_SECONDS = 0.1
_MAX_BACKOFF_SECONDS = 8.0
_MOST_PER_RECEIVE = 1_000


class Poller:
    """One poller of one mapping, as AWS runs five or more; batches run beside each other."""

    def __init__(self, mapping: Any, invoker: Invoker, *, turns: threading.Semaphore) -> None:
        self._mapping = mapping
        self._invoker = invoker
        self._turns = turns
        self._stopped = threading.Event()
        self._failures = 0
        self._thread = threading.Thread(target=self._run, daemon=True, name="poller")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop after the batch in hand."""
        self._stopped.set()

    def _run(self) -> None:
        step = shielded(self._step)
        while not self._stopped.is_set():
            step()

    def _step(self) -> None:
        try:
            queue = find_queue(self._mapping.event_source_arn)
        except QueueMissingError:
            self._stopped.wait(1.0)
            return
        self._turns.acquire()
        batch: list[Any] = []
        try:
            batch = self._collect(queue)
        finally:
            if not batch:
                self._turns.release()
        if batch:
            process = shielded(self._process)
            threading.Thread(target=process, args=(queue, batch), daemon=True).start()
        if self._failures:
            self._stopped.wait(min(0.2 * 2.0**self._failures, _MAX_BACKOFF_SECONDS))

    def _collect(self, queue: Any) -> list[Any]:
        """Gather until the batch is full, or the window that its first message opened ends."""
        window = float(self._mapping.max_batch_window or 0)
        batch: list[Any] = []
        weight, ends = 0, None
        while not self._stopped.is_set():
            room = min(self._mapping.batch_size - len(batch), _MOST_PER_RECEIVE)
            for message in self._receive(queue, room):
                batch.append(message)
                weight += size_of(message)
            now = time.monotonic()
            if batch and ends is None:
                ends = now + window
            full = len(batch) >= self._mapping.batch_size or weight > MAX_BATCH_BYTES
            if batch and (full or ends is None or now >= ends):
                return self._cut(queue, batch)
            if not batch and not self._mapping.enabled:
                self._stopped.wait(1.0)
                return []
            pause = _LOOK_SECONDS if ends is None else min(_LOOK_SECONDS, ends - now)
            self._wait(queue, pause)
        for message in batch:
            _show_again(queue, message)
        return []

    def _receive(self, queue: Any, room: int) -> list[Any]:
        if not self._mapping.enabled or not queue._messages:
            return []
        try:
            found: list[Any] = backend_of(queue.account_id, queue.region).receive_message(
                queue.name, room, 0, queue.visibility_timeout, ["All"]
            )
        except KeyError:
            return []  # the queue was deleted between two looks
        return found

    def _wait(self, queue: Any, seconds: float) -> None:
        with queue._messages_lock:
            queue._messages_lock.wait(seconds)

    def _cut(self, queue: Any, batch: list[Any]) -> list[Any]:
        kept: list[Any] = []
        weight = 0
        for index, message in enumerate(batch):
            weight += size_of(message)
            if weight > MAX_BATCH_BYTES and kept:
                for late in batch[index:]:
                    _show_again(queue, late)
                break
            kept.append(message)
        return kept

    def _process(self, queue: Any, batch: list[Any]) -> None:
        try:
            succeeded = self._invoke(queue, batch)
        finally:
            self._turns.release()
        if succeeded is None:
            self._failures = min(self._failures + 1, 8)
            return
        self._failures = 0
        delete_messages(queue, succeeded)

    def _invoke(self, queue: Any, batch: list[Any]) -> frozenset[str] | None:
        """Return receipt handles to delete; None when the whole batch failed."""
        event = event_of(batch, queue_arn=queue.queue_arn, region=queue.region)
        handles = {message.id: message.receipt_handle for message in batch}
        try:
            traces = [header for message in batch if (header := trace_of(message))]
            result = self._invoker.invoke(self._mapping.function_arn, event, traces=traces)
            if result.failed:
                return None
            failed: frozenset[str] = frozenset()
            if "ReportBatchItemFailures" in (self._mapping.function_response_types or ()):
                failed = failed_items(result.outcome.payload, frozenset(handles))
        except (FunctionNotFoundError, ThrottledError, RecursiveLoopError, InvalidAnswerError):
            return None
        return frozenset(handle for key, handle in handles.items() if key not in failed)


def delete_messages(queue: Any, handles: frozenset[str]) -> None:
    """Delete many messages in one pass; moto's own takes one pass for each."""
    from infra.local.aws.repairs.queues import LOCK

    with LOCK:
        gone = [row for row in queue._messages if row.receipt_handle in handles]
        doomed = set(gone)
        for row in gone:
            queue.pending_messages.discard(row)
            queue.deleted_messages.update(row.all_receipt_handles)
        queue._messages = [row for row in queue._messages if row not in doomed]


def _show_again(queue: Any, message: Any) -> None:
    backend_of(queue.account_id, queue.region).change_message_visibility(
        queue.name, message.receipt_handle, 0
    )


_FOLLOW_SECONDS = 0.25
DEFAULT_CONCURRENCY = 5
"""Batches of one mapping that may run at the same time when it sets no maximum."""


class MappingSupervisor:
    """Follows the list of mappings; each gets a poller (AWS runs five or more)."""

    def __init__(self, invoker: Invoker) -> None:
        self._invoker = invoker
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._running: dict[str, Poller] = {}

    def start(self) -> None:
        repeat(self._follow, name="mappings", every_seconds=_FOLLOW_SECONDS, stopped=self._stopped)

    def stop(self) -> None:
        self._stopped.set()
        self.clear()

    def clear(self) -> None:
        """Stop all pollers; those of mappings that still exist start again."""
        with self._lock:
            for poller in self._running.values():
                poller.stop()
            self._running.clear()

    def _follow(self) -> None:
        functions = backend("lambda", self._invoker.account_id, self._invoker.region)
        mappings = {row.uuid: row for row in functions.list_event_source_mappings("", "")}
        with self._lock:
            for uuid in sorted(set(self._running) - set(mappings)):
                self._running.pop(uuid).stop()
            for uuid, mapping in sorted(mappings.items()):
                if uuid not in self._running and ":sqs:" in mapping.event_source_arn:
                    self._running[uuid] = self._start(mapping)

    def _start(self, mapping: Any) -> Poller:
        scaling = mapping.scaling_config or {}
        turns = threading.Semaphore(int(scaling.get("MaximumConcurrency") or DEFAULT_CONCURRENCY))
        poller = Poller(mapping, self._invoker, turns=turns)
        poller.start()
        return poller
