"""Launching one group: intent first, then EC2, then the pairs of slot and instance."""

import dataclasses
from collections.abc import Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Final

from shared.model.errors import (
    ConflictError,
    NotFoundError,
    PermanentError,
    ThrottledError,
    UnavailableError,
)
from shared.model.instance_types import OfferingKey
from shared.model.launch import (
    FleetAnswer,
    IntentState,
    LaunchIntent,
    LaunchOption,
    PlannedNode,
)
from shared.model.policy import LaunchPolicy
from shared.model.resources import Resources
from shared.ports import ClusterPorts
from shared.services.held_lease import HeldLease
from shared.services.launch_body import LaunchAttempt, LaunchBody, PromisedSlot
from shared.services.launch_request import LaunchGround, launch_body
from shared.services.pairing import Pairing

_FLEET: Final = "CreateFleet"
# Attempts that earlier invocations wrote down and never opened are stepped over, at most so many.
_MAX_ABANDONED: Final = 10


class LaunchOutcome(StrEnum):
    """How a launch ended for now."""

    DONE = "done"  # every slot has its instance
    SHORT = "short"  # EC2 has no more: plan again without the refused offerings
    LATER = "later"  # throttled or unknown: the intent waits, a message wakes it


class Launcher:
    """Launches groups of planned nodes for one cluster, under its lease."""

    def __init__(self, ports: ClusterPorts, lease: HeldLease, policy: LaunchPolicy) -> None:
        """Prepare to launch while the lease is held."""
        self._ports = ports
        self._lease = lease
        self._policy = policy
        self._pairing = Pairing(ports, lease)

    def launch(
        self, ground: LaunchGround, plan_id: str, group: int, nodes: Sequence[PlannedNode]
    ) -> LaunchOutcome:
        """Write the intent of a group down and carry it out.

        Raises:
            PermanentError: If nothing of the group can be asked for.
            ConflictError: If the lease was lost.
        """
        attempt = LaunchAttempt(
            cluster=ground.cluster,
            plan_id=plan_id,
            group=group,
            number=0,
            provisioner=ground.provisioner.name,
            labels=nodes[0].labels,
            slots=tuple(
                PromisedSlot(number=n, pods=node.pods, daemon_requests=node.daemon_requests)
                for n, node in enumerate(nodes)
            ),
            options=nodes[0].options,
            later=nodes[0].fallback,
        )
        body = launch_body(ground, attempt)
        intent = LaunchIntent(
            cluster=ground.cluster,
            plan_id=plan_id,
            group=group,
            attempt=0,
            provisioner=ground.provisioner.name,
            count=len(nodes),
            body_key=attempt.key,
            body_hash=body.sha256(),
            reserved=Resources.total(node.largest_capacity for node in nodes),
            created_at=self._ports.clock.now(),
        )
        # The body first: a header without its body could not be resumed.
        self._ports.decisions.put(attempt.key, body.to_bytes())
        self._ports.ledger.open_intent(self._lease.renew(), intent)
        return self._carry_out(ground, intent, body)

    def resume(self, ground: LaunchGround, intent: LaunchIntent) -> LaunchOutcome:
        """Go on with an intent that an earlier invocation left open.

        Instances are adopted by tag first. The exact bytes are sent again only while that is
        recent; later a new attempt is made.

        Raises:
            PermanentError: If it cannot go on; the intent may still be open: `give_up` ends it.
            ConflictError: If the lease was lost.
        """
        now = self._ports.clock.now()
        if intent.not_before is not None and now < intent.not_before:
            self._ports.outbox.wake(intent.cluster, intent.not_before - now)
            return LaunchOutcome.LATER
        body = LaunchBody.from_bytes(self._ports.decisions.get(intent.body_key))
        if now < intent.created_at + self._policy.consistency and intent.not_before is None:
            self._ports.outbox.wake(intent.cluster, self._policy.consistency)
            return LaunchOutcome.LATER
        missing = self._pairing.adopt(body.attempt)
        if not missing:
            return self._finish(intent, LaunchOutcome.DONE)
        recent = now < intent.created_at + self._policy.replay
        if recent and len(missing) == len(body.attempt.slots):
            return self._carry_out(ground, intent, body)
        return self._next_attempt(ground, intent, body, missing, frozenset())

    def give_up(self, intent: LaunchIntent) -> LaunchOutcome:
        """Adopt what EC2 shows of an intent that cannot go on, and end it: its pods are free."""
        try:
            body = LaunchBody.from_bytes(self._ports.decisions.get(intent.body_key))
        except NotFoundError:
            # What it asked for is not known any more; sweep finds machines nobody adopted.
            return self._finish(intent, LaunchOutcome.SHORT)
        self._pairing.adopt(body.attempt)
        return self._finish(intent, LaunchOutcome.SHORT)

    def _carry_out(
        self, ground: LaunchGround, intent: LaunchIntent, body: LaunchBody
    ) -> LaunchOutcome:
        wait = self._ports.ledger.take_token(_FLEET, self._ports.clock.now())
        if wait is not None:
            return self._postpone(intent, wait)
        try:
            answer = self._ask(body)
        except ThrottledError as error:
            return self._postpone(intent, error.delay or self._policy.throttled)
        except UnavailableError:
            # The outcome is unknown: instances are looked for by tag once EC2 can show them.
            return self._postpone(intent, self._policy.consistency)
        except PermanentError:
            # Nothing was launched, and asking again changes nothing: its pods are free.
            self._finish(intent, LaunchOutcome.SHORT)
            raise
        missing = self._pairing.pair(body.attempt, body.attempt.slots, answer.instances)
        refused = frozenset(answer.refused)
        if missing and not refused:
            # Fewer than asked for and no reason: none of these is asked for again at once.
            refused = frozenset(one.offering for one in body.attempt.options)
        self._ports.ledger.mark_unavailable(sorted(refused), self._ports.clock.now())
        if not missing:
            return self._finish(intent, LaunchOutcome.DONE)
        return self._next_attempt(ground, intent, body, missing, refused)

    def _ask(self, body: LaunchBody) -> FleetAnswer:
        self._lease.renew()
        for name, data in sorted(body.templates.items()):
            self._ports.cloud.ensure_launch_template(name, data)
        self._lease.renew()
        try:
            return self._ports.cloud.create_fleet(body.request)
        except NotFoundError:
            # The template was collected between the two calls: make it again, once.
            for name, data in sorted(body.templates.items()):
                self._ports.cloud.ensure_launch_template(name, data)
            self._lease.renew()
            return self._ports.cloud.create_fleet(body.request)

    def _next_attempt(
        self,
        ground: LaunchGround,
        intent: LaunchIntent,
        body: LaunchBody,
        missing: Sequence[PromisedSlot],
        refused: frozenset[OfferingKey],
    ) -> LaunchOutcome:
        """Ask for the slots that are still empty, with the options that were not refused.

        Args:
            refused: What EC2 has just refused; empty when that is not known.
        """
        attempt = body.attempt
        # Whatever an earlier attempt left behind is adopted before more is asked for.
        unpaired = self._pairing.unpaired(attempt)
        if unpaired:
            missing = self._pairing.pair(attempt, missing, unpaired)
            if not missing:
                return self._finish(intent, LaunchOutcome.DONE)
        options = _without(attempt.options, refused)
        later = _without(attempt.later, refused)
        if not options:
            options, later = later, ()
        if not options:
            return self._finish(intent, LaunchOutcome.SHORT)
        again = dataclasses.replace(
            attempt, number=attempt.number + 1, slots=tuple(missing), options=options, later=later
        )
        try:
            next_body = self._write_body(ground, again)
        except PermanentError:
            self._finish(intent, LaunchOutcome.SHORT)
            raise
        again = next_body.attempt
        next_intent = dataclasses.replace(
            intent,
            attempt=again.number,
            count=len(missing),
            body_key=again.key,
            body_hash=next_body.sha256(),
            reserved=_largest(options, later).times(len(missing)),
            not_before=None,
            created_at=self._ports.clock.now(),
        )
        self._ports.ledger.change_intent(self._lease.renew(), next_intent)
        return self._carry_out(ground, next_intent, next_body)

    def _write_body(self, ground: LaunchGround, attempt: LaunchAttempt) -> LaunchBody:
        """Write the body of an attempt, under the first number nobody wrote another body for.

        An invocation that ended between body and header leaves a body behind that was never sent.
        """
        for number in range(attempt.number, attempt.number + _MAX_ABANDONED):
            body = launch_body(ground, dataclasses.replace(attempt, number=number))
            try:
                self._ports.decisions.put(body.attempt.key, body.to_bytes())
            except ConflictError:
                continue
            return body
        raise ConflictError(f"{attempt.key}: bodies of {_MAX_ABANDONED} attempts stand written")

    def _postpone(self, intent: LaunchIntent, wait: timedelta) -> LaunchOutcome:
        """Give the intent a time and a message that wakes it: a throttle is no failure."""
        later = dataclasses.replace(intent, not_before=self._ports.clock.now() + wait)
        self._ports.ledger.change_intent(self._lease.renew(), later)
        self._ports.outbox.wake(intent.cluster, wait)
        return LaunchOutcome.LATER

    def _finish(self, intent: LaunchIntent, outcome: LaunchOutcome) -> LaunchOutcome:
        done = dataclasses.replace(
            intent, state=IntentState.DONE, reserved=Resources(), not_before=None
        )
        self._ports.ledger.change_intent(self._lease.renew(), done)
        return outcome


def _without(
    options: Sequence[LaunchOption], refused: frozenset[OfferingKey]
) -> tuple[LaunchOption, ...]:
    return tuple(one for one in options if one.offering not in refused)


def _largest(options: Sequence[LaunchOption], later: Sequence[LaunchOption]) -> Resources:
    most = Resources()
    for option in (*options, *later):
        most = most.largest(option.capacity)
    return most
