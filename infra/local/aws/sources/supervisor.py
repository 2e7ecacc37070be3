"""Keeps a poller running for every event source mapping there is."""

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
    """Follows the list of mappings; each gets a poller (AWS runs five or more)."""

    def __init__(self, invoker: Invoker) -> None:
        self._invoker = invoker
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._running: dict[str, Poller] = {}

    def start(self) -> None:
        repeat(self._follow, name="mappings", every_seconds=_LOOK_SECONDS, stopped=self._stopped)

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
