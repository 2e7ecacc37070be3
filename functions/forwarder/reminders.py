"""Announces nodes that need action again, until the cluster shows that the action is done.

A message can be lost or late, and a function that received it can fail. The cluster shows whether
it was handled: an empty node is stamped and then deleted, a node that is used again loses its
stamp, a deleted node disappears, a Ready node is initialized. A node that still needs action is
announced again after 5, 10, 18, 29 seconds and so on, in the end once a minute; an empty, stamped
node not before its time to live is over. A node without problems is announced again only while its
pods take time to leave.
"""

from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from shared.model.messages.message import MessageKind

FIRST_AGAIN: Final = timedelta(seconds=5)
LONGEST_AGAIN: Final = timedelta(seconds=60)
_LONGER: Final = 1.5
# A longer time to live means forever; the limit also keeps sums of times in range.
_LONGEST_TTL: Final = timedelta(days=3650)


class Reminder(Struct):
    """One action that a node needs.

    Attributes:
        next_at: When to announce it again.
        delay: How long to wait after that.
    """

    kind: MessageKind
    next_at: datetime
    delay: timedelta = FIRST_AGAIN


class Reminders:
    """The actions that nodes need, by node name."""

    def __init__(self) -> None:
        self._reminders: dict[str, dict[MessageKind, Reminder]] = {}

    def set_needs(self, name: str, needed: Collection[MessageKind], now: datetime) -> None:
        """Set the actions that a node needs now; those it needed before keep their times."""
        known = self._reminders.get(name, {})
        if needed:
            self._reminders[name] = {
                kind: known.get(kind) or Reminder(kind, now + FIRST_AGAIN) for kind in needed
            }
        elif known:
            del self._reminders[name]

    def due(
        self, now: datetime, waits_until: Callable[[str, Reminder], datetime | None]
    ) -> list[tuple[str, MessageKind]]:
        """Return the nodes to announce again, and schedule their next announcements.

        Args:
            waits_until: Returns the earliest time to announce a node, None for not now.
        """
        found = []
        for name, needed in self._reminders.items():
            for kind, reminder in needed.items():
                if reminder.next_at > now:
                    continue
                until = waits_until(name, reminder)
                if until is None or until > now:
                    continue
                found.append((name, kind))
                reminder.next_at = now + reminder.delay
                reminder.delay = min(reminder.delay * _LONGER, LONGEST_AGAIN)
        return found


def ttl_of(seconds: int) -> timedelta:
    """Return a manifest's time to live, limited to between zero and the longest one."""
    return timedelta(seconds=max(min(seconds, int(_LONGEST_TTL.total_seconds())), 0))
