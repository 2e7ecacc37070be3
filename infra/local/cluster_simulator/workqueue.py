"""A work queue: each key is handled by one worker at a time, early or late, until it succeeds."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

import aiohttp

from infra.local.cluster_simulator.client import ApiError

_LOG = logging.getLogger(__name__)
_FIRST_DELAY_SECONDS: Final = 0.05
_LONGEST_DELAY_SECONDS: Final = 5.0

KeyT = TypeVar("KeyT", bound=Hashable)


class WorkQueue(Generic[KeyT]):
    """Keys to handle, without duplicates."""

    def __init__(
        self, handle: Callable[[KeyT], Awaitable[float | None]], *, parallel: int = 8
    ) -> None:
        self._handle = handle
        self._parallel = parallel
        self._ready: asyncio.Queue[KeyT] = asyncio.Queue()
        self._due: dict[KeyT, asyncio.TimerHandle] = {}
        self._waiting: set[KeyT] = set()
        self._running: set[KeyT] = set()
        self._again: set[KeyT] = set()
        self._failures: dict[KeyT, int] = {}

    def add(self, key: KeyT, delay_seconds: float = 0.0) -> None:
        """Ask for a key to be handled after a delay; of several requests the earliest counts."""
        loop = asyncio.get_running_loop()
        moment = loop.time() + delay_seconds
        timer = self._due.get(key)
        if timer is not None:
            if timer.when() <= moment:
                return
            timer.cancel()
        if delay_seconds > 0:
            self._due[key] = loop.call_at(moment, self._release, key)
        else:
            self._release(key)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(self._parallel):
                group.create_task(self._work())

    def _release(self, key: KeyT) -> None:
        self._due.pop(key, None)
        if key in self._running:
            self._again.add(key)
        elif key not in self._waiting:
            self._waiting.add(key)
            self._ready.put_nowait(key)

    async def _work(self) -> None:
        while True:
            key = await self._ready.get()
            self._waiting.discard(key)
            self._running.add(key)
            delay = await self._attempt(key)
            self._running.discard(key)
            if key in self._again:
                self._again.discard(key)
                self.add(key)
            if delay is not None:
                self.add(key, delay)

    async def _attempt(self, key: KeyT) -> float | None:
        try:
            delay = await self._handle(key)
        except (ApiError, aiohttp.ClientError, TimeoutError, ConnectionError) as error:
            _LOG.debug("%s: %s", key, error)
        except Exception:  # noqa: BLE001 - an actor's outermost loop: one odd object must not stop it
            _LOG.exception("%s could not be handled", key)
            return _LONGEST_DELAY_SECONDS
        else:
            self._failures.pop(key, None)
            return delay
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        return float(min(_FIRST_DELAY_SECONDS * 2 ** min(failures, 10), _LONGEST_DELAY_SECONDS))
