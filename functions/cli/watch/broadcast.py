"""Sends each change of one live cluster to all connected readers."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from functions.cli.watch.live import LiveCluster

# Changes within this time are sent together: four times a second looks immediate.
SEND_EVERY_SECONDS: Final = 0.25
# A reader that is this many messages behind is sent the whole instead.
MOST_BEHIND: Final = 40
# Pause after a failure, so that a lasting defect does not fill the log.
_REST_SECONDS: Final = 5.0
_LOG: Final = logging.getLogger(__name__)

Message = Mapping[str, Any]


class Broadcast:
    """A source for the page server.

    Args:
        live: What is broadcast.
        record: Called with each message, to record it.
    """

    def __init__(
        self, live: "LiveCluster", record: Callable[[Message], None] | None = None
    ) -> None:
        self._live = live
        self._record = record
        self._readers: set[asyncio.Queue[Message]] = set()
        self._sending = asyncio.Lock()

    async def run(self) -> None:
        """Send the changes until it is cancelled."""
        if self._record is not None:
            self._record(await asyncio.to_thread(self._live.whole))
        next_message = self._live.next_change
        while True:
            await asyncio.sleep(SEND_EVERY_SECONDS)
            try:
                async with self._sending:
                    await self._send(await asyncio.to_thread(next_message))
            except Exception:  # noqa: BLE001 -- the outermost loop: readers would wait for ever
                _LOG.exception("what changed could not be sent; all is sent in a moment")
                next_message = self._live.whole
                await asyncio.sleep(_REST_SECONDS)
            else:
                next_message = self._live.next_change

    async def _send(self, message: Message | None) -> None:
        if message is None:
            return
        if self._record is not None:
            self._record(message)
        # Readers come and go while another one is sent the whole.
        for reader in tuple(self._readers):
            await self._enqueue(reader, message)

    async def _enqueue(self, reader: asyncio.Queue[Message], message: Message) -> None:
        if reader.qsize() < MOST_BEHIND:
            reader.put_nowait(message)
            return
        while not reader.empty():
            reader.get_nowait()
        reader.put_nowait(await asyncio.to_thread(self._live.whole))

    async def messages(self, start: object = None) -> AsyncIterator[Message]:
        """Yield the whole, then each change of it: a live cluster has no other start."""
        del start
        reader: asyncio.Queue[Message] = asyncio.Queue()
        async with self._sending:
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
async def broadcasting(broadcast: Broadcast) -> AsyncIterator[None]:
    """Run the broadcast for as long as the block lasts."""
    task = asyncio.create_task(broadcast.run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
