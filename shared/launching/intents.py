"""The book of open intents: when each may go on, what is held back, what is over."""

import dataclasses
from collections.abc import Callable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from shared.launching.lease import HeldLease
from shared.model.ec2.launches import LaunchIntent, Lease
from shared.model.policy import LaunchPolicy
from shared.ports import ClusterPorts

_FLEET: Final = "CreateFleet"
# A token that was not used for so long is asked for anew: many could be used at once, after a
# time in which nothing was launched.
_TOKEN_LIFE: Final = timedelta(seconds=30)
# Far less than EC2 may take to show what it launched.
_JUST_NOW: Final = timedelta(seconds=1)


class LaunchOutcome(StrEnum):
    """How a launch ended for now."""

    DONE = "done"  # every slot has its instance
    SHORT = "short"  # EC2 has no more: plan again without the refused offerings
    LATER = "later"  # throttled or unknown: the intent waits, a message wakes it


class IntentBook:
    """Changes open intents under the lease of one cluster.

    Attributes:
        throttled: How often EC2 asked to slow down, or no request token was left.
    """

    def __init__(self, ports: ClusterPorts, lease: HeldLease, policy: LaunchPolicy) -> None:
        self._ports = ports
        self._lease = lease
        self._policy = policy
        self.throttled = 0
        self._due: datetime | None = None
        self._turn: datetime | None = None

    @property
    def due(self) -> datetime | None:
        """When the first of the postponed launches may go on, None when there is none."""
        return self._due

    def earliest(self, intent: LaunchIntent) -> datetime | None:
        """Return when an intent may be taken up: after its time, and when EC2 shows all of it."""
        shown = None if intent.asked_at is None else intent.asked_at + self._policy.consistency
        times = [moment for moment in (intent.not_before, shown) if moment is not None]
        return max(times) if times else None

    def unsettled_until(self, intent: LaunchIntent) -> datetime | None:
        """Return until when an earlier invocation that was about to ask EC2 may still do so.

        No lease stops a call of one that is frozen and wakes late; only the end of its time does.
        """
        if intent.asked_at is None:
            return None
        until = intent.asked_at + self._policy.invocation + self._policy.consistency
        return until if self._ports.clock.now() < until else None

    def note_turn(self, intent: LaunchIntent) -> None:
        """Remember the token that a launch of this cluster waits for."""
        if intent.token_at is not None and intent.token_at > self._ports.clock.now():
            self._turn = intent.token_at

    def open(self, intent: LaunchIntent) -> LaunchIntent | None:
        """Write a new intent down: as one about which EC2 is asked now, or as one that waits.

        Returns:
            None when it has to wait for a request token.
        """
        ready = self._with_token(intent)
        if ready.not_before is None:
            ready = dataclasses.replace(ready, asked_at=self._ports.clock.now())
        self._write(self._ports.ledger.open_intent, ready)
        return self._unless_it_waits(ready)

    def take_up(self, intent: LaunchIntent) -> LaunchIntent | None:
        """Return an intent that may ask EC2 now; None when it has to wait for a request token."""
        ready = self._with_token(intent)
        if ready.not_before is not None:
            self.change(ready)
        return self._unless_it_waits(ready)

    def _with_token(self, intent: LaunchIntent) -> LaunchIntent:
        """Return an intent that may ask EC2 now, or with the time until which it has to wait.

        A cluster waits for one token at a time, so that clusters that wait take turns. The time
        of its token is its own: it comes back once, and need not ask again and again.
        """
        now, held = self._ports.clock.now(), intent.token_at
        ready = dataclasses.replace(intent, token_at=None, not_before=None)
        if held is not None and held <= now < held + _TOKEN_LIFE:
            return ready
        if self._turn is not None and now < self._turn:
            return dataclasses.replace(ready, not_before=self._turn)
        wait = self._ports.ledger.take_token(_FLEET, now)
        if not wait:
            return ready
        self._turn = now + wait
        return dataclasses.replace(ready, token_at=self._turn, not_before=self._turn)

    def _unless_it_waits(self, ready: LaunchIntent) -> LaunchIntent | None:
        if ready.not_before is None:
            return ready
        self.throttled += 1
        self.wait_until(ready.not_before)
        return None

    def about_to_ask(self, intent: LaunchIntent) -> LaunchIntent:
        """Record that EC2 is asked now: later invocations wait until EC2 shows the outcome.

        An intent that says so already, and said it just now, is not written again.
        """
        now = self._ports.clock.now()
        if intent.asked_at is not None and now - intent.asked_at < _JUST_NOW:
            return intent
        asked = dataclasses.replace(intent, asked_at=now)
        self.change(asked)
        return asked

    def hold(self, intent: LaunchIntent, until: datetime) -> LaunchOutcome:
        """Leave the intent as it is until no earlier holder of the lease can still request it."""
        held = dataclasses.replace(intent, asked_at=None, not_before=until)
        self.change(held)
        return self.wait_until(until)

    def postpone(self, intent: LaunchIntent, wait: timedelta) -> LaunchOutcome:
        """Give the intent a time, for a message to wake it: a throttle is no failure."""
        self.throttled += 1
        not_before = self._ports.clock.now() + wait
        later = dataclasses.replace(intent, not_before=not_before)
        self.change(later)
        return self.wait_until(not_before)

    def wait_until(self, moment: datetime) -> LaunchOutcome:
        """Remember that a launch waits until then."""
        self._due = moment if self._due is None else min(self._due, moment)
        return LaunchOutcome.LATER

    def finish(self, intent: LaunchIntent, outcome: LaunchOutcome) -> LaunchOutcome:
        """End an intent: what it reserved is free again; return the outcome given."""
        self._write(self._ports.ledger.close_intent, intent)
        return outcome

    def change(self, intent: LaunchIntent) -> None:
        """Replace an open intent."""
        self._write(self._ports.ledger.change_intent, intent)

    def _write(
        self, write: Callable[[Lease, LaunchIntent, datetime], Lease], intent: LaunchIntent
    ) -> None:
        """Write an intent, which renews the lease."""
        self._lease.note(write(self._lease.value, intent, self._ports.clock.now()))
