"""What nodes still need: said again until it is done, whatever became of the first message.

A message can be lost or late, and a function that got it can fail. The cluster itself says whether
it was acted upon: an empty node is stamped and then deleted, a node that is used again loses its
stamp, a deleted one goes, a Ready one is initialized. A node that still needs action is reported
again after 5, 10, 18, 29 seconds and so on, at last once a minute; an empty, stamped one not
before its time is over. A node that comes and goes as it should is reported only while its pods
take their time to leave.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from shared.messages.wake import Kind

FIRST_AGAIN: Final = timedelta(seconds=5)
LONGEST_AGAIN: Final = timedelta(seconds=60)
_LONGER: Final = 1.5
# A time to live longer than this is one for ever; it also keeps sums of times within bounds.
_LONGEST_TTL: Final = timedelta(days=3650)


@dataclass(slots=True)
class Standing:
    """One of the things a node needs.

    Attributes:
        next_at: When to say so again.
        delay: How long after that to wait.
    """

    kind: Kind
    next_at: datetime
    delay: timedelta = FIRST_AGAIN


class Reminders:
    """Keeps what nodes need, by name."""

    def __init__(self) -> None:
        self._standing: dict[str, dict[Kind, Standing]] = {}

    def note(self, name: str, kinds: Collection[Kind], now: datetime) -> None:
        """Note what a node needs now; empty for nothing. What it needed before goes on."""
        known = self._standing.get(name, {})
        if kinds:
            self._standing[name] = {
                kind: known.get(kind) or Standing(kind, now + FIRST_AGAIN) for kind in kinds
            }
        elif known:
            del self._standing[name]

    def due(
        self, now: datetime, waits_until: Callable[[str, Standing], datetime | None]
    ) -> list[tuple[str, Kind]]:
        """Return the nodes to announce again, and note that they have been.

        Args:
            waits_until: Returns the earliest time to announce a node, None for not at all now.
        """
        found = []
        for name, needed in self._standing.items():
            for kind, standing in needed.items():
                if standing.next_at > now:
                    continue
                until = waits_until(name, standing)
                if until is None or until > now:
                    continue
                found.append((name, kind))
                standing.next_at = now + standing.delay
                standing.delay = min(standing.delay * _LONGER, LONGEST_AGAIN)
        return found


def ttl_of(seconds: int) -> timedelta:
    """Return a manifest's time to live as a span, cut to between zero and the longest one."""
    return timedelta(seconds=max(min(seconds, int(_LONGEST_TTL.total_seconds())), 0))
