"""Things that will happen later: instances start, stop and are interrupted."""

import heapq
import logging
import threading
import time
from collections.abc import Callable
from typing import Final

_LOG: Final = logging.getLogger(__name__)
_IDLE_SECONDS: Final = 60.0

Action = Callable[[], None]


class Agenda:
    """Runs actions at their time, ordered by (time, order of asking).

    With `threaded` (the default) one daemon thread serves them; it starts with the first action.
    Without, nothing happens until `run_due` is called, which is how tests own the time.
    """

    def __init__(
        self, *, monotonic: Callable[[], float] = time.monotonic, threaded: bool = True
    ) -> None:
        self.monotonic = monotonic
        self.threaded = threaded
        self._entries: list[tuple[float, int, Action]] = []
        self._order = 0
        self._closed = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def after(self, seconds: float, action: Action) -> None:
        """Do `action` in `seconds`; at once, in this very call, when that is zero."""
        if seconds <= 0:
            action()
        else:
            self._push(self.monotonic() + seconds, action)

    def _push(self, due: float, action: Action) -> None:
        with self._changed:
            self._order += 1
            heapq.heappush(self._entries, (due, self._order, action))
            if self.threaded and self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._serve, name="ec2-agenda", daemon=True)
                self._thread.start()
            self._changed.notify()

    def soon(self, action: Action) -> None:
        """Do `action` as soon as the agenda gets to it, never inside this call."""
        self._push(self.monotonic(), action)

    def run_due(self) -> int:
        """Run what is due now; return how many actions ran."""
        count = 0
        while True:
            with self._changed:
                if not self._entries or self._entries[0][0] > self.monotonic():
                    return count
                action = heapq.heappop(self._entries)[2]
            action()
            count += 1

    def clear(self) -> None:
        """Forget everything that has not happened yet."""
        with self._changed:
            self._entries.clear()

    def close(self) -> None:
        """Forget everything and let the thread end."""
        with self._changed:
            self._closed = True
            self._entries.clear()
            self._changed.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=5)

    def _serve(self) -> None:
        while not self._closed:
            try:
                self.run_due()
            except Exception:  # noqa: BLE001
                # The outermost loop of this thread: one failed action (say, an event bus that
                # refused an event) must not stop the clocks of all other instances.
                _LOG.exception("an action of the EC2 agenda failed")
            with self._changed:
                if self._closed:
                    return
                now = self.monotonic()
                due = self._entries[0][0] if self._entries else now + _IDLE_SECONDS
                if due > now:
                    self._changed.wait(min(due - now, _IDLE_SECONDS))
