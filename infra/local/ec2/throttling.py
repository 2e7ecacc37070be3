"""Request limits, off until a control verb sets them."""

import threading
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class _Bucket:
    burst: float
    per_second: float
    tokens: float
    at: float

    def take(self, now: float) -> bool:
        self.tokens = min(self.burst, self.tokens + (now - self.at) * self.per_second)
        self.at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class Throttles:
    """Token buckets and every-nth refusals by API name.

    One bucket may serve several APIs: EC2 counts CreateFleet and RunInstances together.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._buckets: dict[str, _Bucket] = {}
        self._every: dict[str, int] = {}
        self._calls: dict[str, int] = {}
        self._lock = threading.Lock()

    def set_bucket(self, apis: tuple[str, ...], *, burst: float, per_second: float) -> None:
        """Give the APIs one bucket in common, full."""
        bucket = _Bucket(burst=burst, per_second=per_second, tokens=burst, at=self._monotonic())
        with self._lock:
            for api in apis:
                self._buckets[api] = bucket

    def set_every(self, apis: tuple[str, ...], every: int) -> None:
        """Refuse each nth call of the APIs; 0 stops that."""
        with self._lock:
            for api in apis:
                self._every[api] = every
                self._calls[api] = 0

    def reset(self) -> None:
        """Take all limits away."""
        with self._lock:
            self._buckets.clear()
            self._every.clear()
            self._calls.clear()

    def allow(self, api: str) -> bool:
        """Count a call; False is RequestLimitExceeded."""
        with self._lock:
            every = self._every.get(api, 0)
            if every:
                self._calls[api] += 1
                if self._calls[api] % every == 0:
                    return False
            bucket = self._buckets.get(api)
            return bucket is None or bucket.take(self._monotonic())
