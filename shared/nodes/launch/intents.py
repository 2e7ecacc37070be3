"""The open launch intents: when each may continue, and when it is closed."""

from collections.abc import Callable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from shared.model.ec2.launches import LaunchIntent, Lease
from shared.model.policy import LaunchPolicy
from shared.model.values import replace
from shared.nodes.launch.held_lease import HeldLease
from shared.nodes.launch.launch_results import LaunchResults
from shared.ports import ClusterPorts

_FLEET: Final = "CreateFleet"
# A token that was not used for this long is requested again: otherwise many could be used at once
# after a time without launches.
_TOKEN_LIFE: Final = timedelta(seconds=30)
# Far less than EC2 may take to show what it has launched.
_JUST_NOW: Final = timedelta(seconds=1)


class LaunchOutcome(StrEnum):
    """The outcome of a launch for now."""

    DONE = "done"  # every slot has its instance
    SHORT = "short"  # EC2 has no more: plan again without the refused offerings
    LATER = "later"  # throttled or unknown: the intent waits, a message wakes it


class IntentBook:
    """Changes open intents under the lease of one cluster.

    Attributes:
        throttled: How often EC2 throttled a call, or no request token was left.
        due: When the first of the postponed launches may continue, None if there is none.
    """

    def __init__(
        self,
        ports: ClusterPorts,
        held_lease: HeldLease,
        policy: LaunchPolicy,
        results: LaunchResults,
    ) -> None:
        self._ports = ports
        self._lease = held_lease
        self._policy = policy
        self._results = results
        self.throttled = 0
        self.due: datetime | None = None
        self._token_at: datetime | None = None

    def earliest(self, intent: LaunchIntent) -> datetime | None:
        """Return when an intent may continue: at its own time, once EC2 shows its instances."""
        shown = (
            None if intent.asked_at is None else intent.asked_at + self._policy.consistency_delay
        )
        times = [moment for moment in (intent.not_before, shown) if moment is not None]
        return max(times) if times else None

    def in_doubt_until(self, intent: LaunchIntent) -> datetime | None:
        """Return until when an earlier invocation that was about to call EC2 may still do so.

        A lease does not stop an invocation that is frozen and resumes late; only the end of its run
        time does.
        """
        if intent.asked_at is None:
            return None
        until = intent.asked_at + self._policy.invocation_timeout + self._policy.consistency_delay
        return until if self._ports.clock.now() < until else None

    def expect_token(self, intent: LaunchIntent) -> None:
        """Remember the request token that a launch of this cluster waits for."""
        if intent.token_at is not None and intent.token_at > self._ports.clock.now():
            self._token_at = intent.token_at

    def open(self, intent: LaunchIntent) -> LaunchIntent | None:
        """Save a new intent: as one that is requested from EC2 now, or as one that waits.

        Returns:
            None if it has to wait for a request token.
        """
        ready = self._with_token(intent)
        if ready.not_before is None:
            ready = replace(ready, asked_at=self._ports.clock.now())
        self._write(self._ports.ledger.open_intent, ready)
        return self._unless_it_waits(ready)

    def acquire_token(self, intent: LaunchIntent) -> LaunchIntent | None:
        """Return an intent that may call EC2 now, None if it has to wait for a request token."""
        ready = self._with_token(intent)
        if ready.not_before is not None:
            self.change(ready)
        return self._unless_it_waits(ready)

    def _with_token(self, intent: LaunchIntent) -> LaunchIntent:
        """Return an intent that may call EC2 now, or one with the time until which it has to wait.

        A cluster waits for one request token at a time, so that waiting clusters take turns. The
        token's time is reserved for the cluster: it returns once and needs no second request.
        """
        now, token_at = self._ports.clock.now(), intent.token_at
        ready = replace(intent, token_at=None, not_before=None)
        if token_at is not None and token_at <= now < token_at + _TOKEN_LIFE:
            return ready
        if self._token_at is not None and now < self._token_at:
            return replace(ready, not_before=self._token_at)
        wait = self._ports.ledger.take_token(_FLEET, now)
        if not wait:
            return ready
        self._token_at = now + wait
        return replace(ready, token_at=self._token_at, not_before=self._token_at)

    def _unless_it_waits(self, ready: LaunchIntent) -> LaunchIntent | None:
        if ready.not_before is None:
            return ready
        self.throttled += 1
        self.wait_until(ready.not_before)
        return None

    def mark_asked(self, intent: LaunchIntent) -> LaunchIntent:
        """Record that EC2 is called now: later invocations wait until EC2 shows the outcome.

        An intent for which this was recorded within the last second is not written again.
        """
        now = self._ports.clock.now()
        if intent.asked_at is not None and now - intent.asked_at < _JUST_NOW:
            return intent
        asked = replace(intent, asked_at=now)
        self.change(asked)
        return asked

    def postpone_until(self, intent: LaunchIntent, until: datetime) -> LaunchOutcome:
        """Leave the intent as it is until no earlier holder of the lease can still request it."""
        held = replace(intent, asked_at=None, not_before=until)
        self.change(held)
        return self.wait_until(until)

    def postpone(self, intent: LaunchIntent, wait: timedelta) -> LaunchOutcome:
        """Postpone the intent; a message resumes it. A throttle is not a failure."""
        self.throttled += 1
        not_before = self._ports.clock.now() + wait
        later = replace(intent, not_before=not_before)
        self.change(later)
        return self.wait_until(not_before)

    def wait_until(self, moment: datetime) -> LaunchOutcome:
        """Remember that a launch waits until then."""
        self.due = moment if self.due is None else min(self.due, moment)
        return LaunchOutcome.LATER

    def finish(self, intent: LaunchIntent, outcome: LaunchOutcome) -> LaunchOutcome:
        """Close an intent, which frees what it reserved; return the given outcome.

        What came of it is saved before: a crash in between saves it again.
        """
        self._results.save(intent)
        self._write(self._ports.ledger.close_intent, intent)
        return outcome

    def change(self, intent: LaunchIntent) -> None:
        """Replace an open intent."""
        self._write(self._ports.ledger.change_intent, intent)

    def _write(
        self, write: Callable[[Lease, LaunchIntent, datetime], Lease], intent: LaunchIntent
    ) -> None:
        """Write an intent; the write renews the lease."""
        self._lease.replace(write(self._lease.value, intent, self._ports.clock.now()))
