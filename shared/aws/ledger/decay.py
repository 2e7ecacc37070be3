"""How long a refused offering is remembered, and how a bucket of request tokens fills: pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

# EC2 names no time after which capacity returns: short at first, so that a passing shortage costs
# little, and what is refused again and again is probed less often.
FIRST_SPAN: Final = timedelta(minutes=3)
LONGEST_SPAN: Final = timedelta(minutes=30)
# What EC2 did not name, though it gave none of it, is only suspected: out for a part of the span.
_SUSPECTED_PART: Final = 2
_WHOLE: Final = 1000
_FARTHEST_SECONDS: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """How often an offering was refused, and until when it is not to be tried.

    Attributes:
        strikes: From 1; each doubles the span.
    """

    strikes: int
    until: datetime

    @property
    def span(self) -> timedelta:
        """How long a refusal with so many strikes lasts."""
        return min(FIRST_SPAN * (1 << min(self.strikes - 1, 10)), LONGEST_SPAN)

    @property
    def forgotten_at(self) -> datetime:
        """When a new refusal counts as the first again: after twice its span of quiet."""
        return self.until + 2 * self.span


def refused(before: Refusal | None, now: datetime, *, certain: bool = True) -> Refusal:
    """Return what is known after a refusal at `now`.

    A refusal while the last one is still in force is the same shortage seen twice, by another
    cluster perhaps: it lasts longer for it, but does not count as a strike.

    Args:
        certain: False for an offering that EC2 did not name: it is out for a shorter time.
    """
    part = 1 if certain else _SUSPECTED_PART
    if before is None or now >= before.forgotten_at:
        return Refusal(strikes=1, until=now + FIRST_SPAN / part)
    if now < before.until:
        return Refusal(strikes=before.strikes, until=max(before.until, now + before.span / part))
    again = Refusal(strikes=before.strikes + 1, until=now)
    return Refusal(strikes=again.strikes, until=now + again.span / part)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBucket:
    """Request tokens of one API.

    Attributes:
        tokens_milli: Thousandths of a token left at `at`; fewer than none are promised.
    """

    tokens_milli: int
    at: datetime

    @classmethod
    def full(cls, burst: int, at: datetime) -> "TokenBucket":
        """Return a bucket that was not used for long."""
        return cls(tokens_milli=burst * _WHOLE, at=at)

    def refilled(self, burst: int, per_second: float, now: datetime) -> "TokenBucket":
        """Return the bucket as it is at `now`; a clock that goes back fills nothing."""
        if now <= self.at:
            return self
        # per_second tokens a second are as many thousandths of a token a millisecond.
        gained = int((now - self.at) / timedelta(milliseconds=1) * per_second)
        if gained == 0:
            return self
        return TokenBucket(tokens_milli=min(burst * _WHOLE, self.tokens_milli + gained), at=now)

    def taken(self, per_second: float) -> "TokenBucket":
        """Return the bucket after a token is taken; below zero they are promised ahead of time.

        No promise is for later than a minute: those beyond it are for the same time, and EC2
        may refuse some.
        """
        least = -int(_FARTHEST_SECONDS * per_second * _WHOLE)
        return TokenBucket(tokens_milli=max(self.tokens_milli - _WHOLE, least), at=self.at)

    def wait(self, per_second: float) -> timedelta:
        """Return how long it takes until the token that was taken last is there."""
        missing = max(-self.tokens_milli, 0)
        return timedelta(milliseconds=-(-missing // per_second))
