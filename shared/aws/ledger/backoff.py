"""The backoff of refused offerings, and the token bucket of API requests; no I/O."""

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

# EC2 does not say when capacity returns. The backoff starts short, so that a passing shortage costs
# little, and doubles with each repeat.
FIRST_SPAN: Final = timedelta(minutes=3)
LONGEST_SPAN: Final = timedelta(minutes=30)
# An offering that EC2 did not name, though it launched none of it, is only suspected: it is
# unavailable for a part of the span.
_SUSPECTED_PART: Final = 2
_WHOLE: Final = 1000
_FARTHEST_SECONDS: Final = 60


class Backoff(Struct, frozen=True, kw_only=True):
    """How often an offering was refused, and until when it is unavailable.

    Attributes:
        strikes: From 1; each doubles the span.
    """

    strikes: int
    until: datetime

    @property
    def span(self) -> timedelta:
        """How long the backoff lasts after so many strikes."""
        return min(FIRST_SPAN * (1 << min(self.strikes - 1, 10)), LONGEST_SPAN)

    @property
    def resets_at(self) -> datetime:
        """When a new refusal counts as the first again: two spans after the end of the backoff."""
        return self.until + 2 * self.span


def next_backoff(before: Backoff | None, now: datetime, *, certain: bool = True) -> Backoff:
    """Return the backoff after a refusal at `now`.

    A refusal during the backoff is the same shortage, perhaps seen by another cluster: it extends
    the backoff but does not count as a strike.

    Args:
        certain: False for an offering that EC2 did not name: its backoff is shorter.
    """
    part = 1 if certain else _SUSPECTED_PART
    if before is None or now >= before.resets_at:
        return Backoff(strikes=1, until=now + FIRST_SPAN / part)
    if now < before.until:
        return Backoff(strikes=before.strikes, until=max(before.until, now + before.span / part))
    again = Backoff(strikes=before.strikes + 1, until=now)
    return Backoff(strikes=again.strikes, until=now + again.span / part)


class TokenBucket(Struct, frozen=True, kw_only=True):
    """Request tokens of one API.

    Attributes:
        tokens_milli: Thousandths of a token left at `at`; negative for tokens taken in advance.
    """

    tokens_milli: int
    at: datetime

    @classmethod
    def full(cls, burst: int, at: datetime) -> "TokenBucket":
        """Return a full bucket."""
        return cls(tokens_milli=burst * _WHOLE, at=at)

    def refilled(self, burst: int, per_second: float, now: datetime) -> "TokenBucket":
        """Return the bucket as refilled at `now`; a clock that goes back refills nothing."""
        if now <= self.at:
            return self
        # `per_second` tokens a second are as many thousandths of a token a millisecond.
        gained = int((now - self.at) / timedelta(milliseconds=1) * per_second)
        if gained == 0:
            return self
        return TokenBucket(tokens_milli=min(burst * _WHOLE, self.tokens_milli + gained), at=now)

    def taken(self, per_second: float) -> "TokenBucket":
        """Return the bucket after a token is taken; below zero tokens are taken in advance.

        At most a minute in advance: further tokens are for the same time, and EC2 may throttle
        some requests.
        """
        least = -int(_FARTHEST_SECONDS * per_second * _WHOLE)
        return TokenBucket(tokens_milli=max(self.tokens_milli - _WHOLE, least), at=self.at)

    def wait(self, per_second: float) -> timedelta:
        """Return how long it takes until the token that was taken last may be used."""
        missing = max(-self.tokens_milli, 0)
        return timedelta(milliseconds=-(-missing // per_second))
