"""The limit of EC2 on the calls of an account."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class TokenBucket:
    """Tokens that calls take and time brings back, full at the start."""

    burst: float
    per_second: float
    monotonic: Callable[[], float]
    tokens: float
    at: float = 0.0

    def take(self) -> bool:
        """Count a call; False is RequestLimitExceeded."""
        now = self.monotonic()
        self.tokens = min(self.burst, self.tokens + (now - self.at) * self.per_second)
        self.at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True
