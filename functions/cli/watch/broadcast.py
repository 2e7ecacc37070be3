"""One live cluster for several readers: each turn is taken once and sent to all."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final, Protocol

# Changes of so long a time go out together: four times a second looks immediate.
TURN_SECONDS: Final = 0.25
# A reader that is so many messages behind is sent the whole instead.
MOST_BEHIND: Final = 40
# After a turn that failed, so that a defect that stays does not fill the log.
_REST_SECONDS: Final = 5.0
_LOG: Final = logging.getLogger(__name__)

Message = Mapping[str, Any]


class Turning(Protocol):
    """What is broadcast: `functions.cli.watch.live.Live`."""

    def turn(self) -> Message | None:
        """Return what is different since the last turn, None for nothing."""
        ...

    def whole(self) -> Message:
        """Return all that there is to show."""
        ...

    def decision(self, plan_id: str) -> Message | None:
        """Return all about one decision, None when it is not known."""
        ...

    def document(self, plan_id: str) -> bytes | None:
        """Return a decision as it was recorded, None when it is not known."""
        ...


class Broadcast:
    """A source for the page server.

    Args:
        live: What is broadcast.
        keep: Called with each message, to record it.
    """

    def __init__(self, live: Turning, keep: Callable[[Message], None] | None = None) -> None:
        self._live = live
        self._keep = keep
        self._readers: set[asyncio.Queue[Message]] = set()
        self._turns = asyncio.Lock()

    async def run(self) -> None:
        """Take turns until it is cancelled."""
        if self._keep is not None:
            self._keep(await asyncio.to_thread(self._live.whole))
        take = self._live.turn
        while True:
            await asyncio.sleep(TURN_SECONDS)
            try:
                async with self._turns:
                    await self._send(await asyncio.to_thread(take))
            except Exception:  # noqa: BLE001 -- the outermost loop: readers would wait for ever
                _LOG.exception("what changed could not be sent; all is sent in a moment")
                take = self._live.whole
                await asyncio.sleep(_REST_SECONDS)
            else:
                take = self._live.turn

    async def _send(self, message: Message | None) -> None:
        if message is None:
            return
        if self._keep is not None:
            self._keep(message)
        # Readers come and go while another one is sent the whole.
        for reader in tuple(self._readers):
            await self._hand(reader, message)

    async def _hand(self, reader: asyncio.Queue[Message], message: Message) -> None:
        if reader.qsize() < MOST_BEHIND:
            reader.put_nowait(message)
            return
        while not reader.empty():
            reader.get_nowait()
        reader.put_nowait(await asyncio.to_thread(self._live.whole))

    async def messages(self) -> AsyncIterator[Message]:
        """Yield the whole, then each change of it."""
        reader: asyncio.Queue[Message] = asyncio.Queue()
        async with self._turns:
            reader.put_nowait(await asyncio.to_thread(self._live.whole))
            self._readers.add(reader)
        try:
            while True:
                yield await reader.get()
        finally:
            self._readers.discard(reader)

    async def decision(self, plan_id: str) -> Message | None:
        """Return all about one decision, None when it is not known."""
        return await asyncio.to_thread(self._live.decision, plan_id)

    async def document(self, plan_id: str) -> bytes | None:
        """Return a decision as it was recorded, None when it is not known."""
        return await asyncio.to_thread(self._live.document, plan_id)


@contextlib.asynccontextmanager
async def running(broadcast: Broadcast) -> AsyncIterator[None]:
    """Take turns for as long as the block lasts."""
    turns = asyncio.create_task(broadcast.run())
    try:
        yield
    finally:
        turns.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await turns
