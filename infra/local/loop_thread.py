"""An asynchronous server in a thread with a loop of its own, for `with` blocks and fixtures."""

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Self

_STOP_SECONDS: Final = 60.0


class LoopThread(ABC):
    """Enters what `serve` returns, and leaves it at the end of the block."""

    def __init__(self, name: str) -> None:
        self._ready = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event

    @abstractmethod
    def serve(self) -> AbstractAsyncContextManager[Any]:
        """Return what is entered; called in the thread."""

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_STOP_SECONDS)
        if self._failure is not None:
            raise self._failure

    def do(self, action: Callable[[], object]) -> None:
        """Do something in the loop; return when it is done."""

        async def run() -> None:
            action()

        asyncio.run_coroutine_threadsafe(run(), self._loop).result()

    def _main(self) -> None:
        try:
            asyncio.run(self._play())
        except Exception as error:  # noqa: BLE001 - a thread's outermost loop: its owner raises it
            self._failure = error
        finally:
            self._ready.set()

    async def _play(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with self.serve():
            self._ready.set()
            await self._stop.wait()
