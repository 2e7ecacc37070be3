"""Services that refuse calls for a while, as they do to an account that asks too often."""

import time
from collections.abc import Callable
from threading import Lock
from typing import Final

_ROLE: Final = ":assumed-role/"


class Throttle:
    """Which services are throttled, and until when.

    It strikes calls of roles alone: the account's own key is that of the local world itself, of its
    machines and of what looks at it.

    Args:
        harmed: Called for each call that is refused.
        clock: Seconds that only grow.
    """

    def __init__(
        self, harmed: Callable[[str, str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._harmed = harmed
        self._clock = clock
        self._lock = Lock()
        self._until: dict[str, float] = {}

    def begin(self, service: str, seconds: float) -> None:
        """Refuse calls to a service, as signatures name it, from now on for some seconds."""
        with self._lock:
            self._until[service] = self._clock() + seconds

    def clear(self) -> None:
        with self._lock:
            self._until.clear()

    def strikes(self, caller_arn: str, service: str) -> bool:
        """Return whether a call is refused, and count it."""
        with self._lock:
            ends = self._until.get(service)
        if ends is None or ends <= self._clock() or _ROLE not in caller_arn:
            return False
        self._harmed("call throttled", service)
        return True
