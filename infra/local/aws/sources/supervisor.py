"""Keeps pollers running for every event source mapping there is."""

import threading
from typing import Any

from infra.local.aws.backends import backend
from infra.local.aws.background import repeat
from infra.local.aws.execution.invoker import Invoker
from infra.local.aws.sources.poller import Poller

_LOOK_SECONDS = 0.25
DEFAULT_CONCURRENCY = 5
"""Batches of one mapping that may run at the same time when it sets no maximum."""


class MappingSupervisor:
    """Follows the list of mappings; each gets `pollers` pollers."""

    def __init__(self, invoker: Invoker, *, pollers: int) -> None:
        self._invoker = invoker
        self._count = pollers
        self._quiet_seconds = 0.0
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._running: dict[str, tuple[Poller, ...]] = {}

    def start(self) -> None:
        """Begin to follow."""
        repeat(self._follow, name="mappings", every_seconds=_LOOK_SECONDS, stopped=self._stopped)

    def stop(self) -> None:
        """Stop all pollers."""
        self._stopped.set()
        self.clear()

    def clear(self) -> None:
        """Stop all pollers; those of mappings that still exist start again."""
        with self._lock:
            for pollers in self._running.values():
                for poller in pollers:
                    poller.stop()
            self._running.clear()

    def set_pollers(self, count: int) -> None:
        """Change the number of pollers for each mapping."""
        self._count = count
        self.clear()

    def set_quiet_seconds(self, seconds: float) -> None:
        """Let a queue that was quiet that long be served so much later, as AWS may.

        Source: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html,
        on the batch window of up to 20 seconds (2026-11-21).
        """
        self._quiet_seconds = seconds
        self.clear()

    def _follow(self) -> None:
        functions = backend("lambda", self._invoker.account_id, self._invoker.region)
        mappings = {row.uuid: row for row in functions.list_event_source_mappings("", "")}
        with self._lock:
            for uuid in sorted(set(self._running) - set(mappings)):
                for poller in self._running.pop(uuid):
                    poller.stop()
            for uuid, mapping in sorted(mappings.items()):
                if uuid not in self._running and ":sqs:" in mapping.event_source_arn:
                    self._running[uuid] = self._start(mapping)

    def _start(self, mapping: Any) -> tuple[Poller, ...]:
        scaling = mapping.scaling_config or {}
        turns = threading.Semaphore(
            int(scaling.get("MaximumConcurrency") or max(DEFAULT_CONCURRENCY, self._count))
        )
        pollers = tuple(
            Poller(mapping, self._invoker, turns=turns, quiet_seconds=self._quiet_seconds)
            for _ in range(self._count)
        )
        for poller in pollers:
            poller.start()
        return pollers
