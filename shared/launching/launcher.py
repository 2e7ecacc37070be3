"""Launching one group: intent first, then EC2, then the pairs of slot and instance."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from shared.disruption.drift import launch_stamp, stamp_of
from shared.launching.ami_canary import ImageRollout
from shared.launching.archive import body_of, write_body
from shared.launching.fleet_request import LaunchContext, launch_body
from shared.launching.insufficient_capacity import Shortage, without
from shared.launching.intents import IntentBook, LaunchOutcome
from shared.launching.lease import HeldLease
from shared.launching.shallow_spot_pools import note_passed_over
from shared.launching.slots import Pairing, slot_owner
from shared.model.ec2.instance_types import OfferingKey
from shared.model.ec2.launches import (
    FleetAnswer,
    FleetError,
    LaunchIntent,
    LaunchOption,
    PlannedNode,
    dearest,
    largest,
)
from shared.model.errors import (
    NotFoundError,
    PermanentError,
    ThrottledError,
    UnavailableError,
)
from shared.model.policy import LaunchPolicy
from shared.model.provisioner import Provisioner
from shared.ports import ClusterPorts, Site
from shared.scheduling.flexibility import may_be_asked_for
from shared.snapshot.launch_body import LaunchAttempt, LaunchBody, PromisedSlot

# How the codes begin by which EC2 says that a machine image is gone, or not ready.
_NO_IMAGE: Final = "InvalidAMIID."
# A ClientToken that was used with other bytes: says nothing about what was asked for.
_MISMATCH: Final = "IdempotentParameterMismatch"
# What may come by itself is asked for again so often, after 2, 4, 8 ... seconds: two minutes.
_MOST_RETRIES: Final = 6


class Launcher:
    """Launches groups of planned nodes for one cluster, under its lease.

    Attributes:
        shortage: What EC2 refused in this invocation.
        calls: CreateFleet calls made.
        book: The open intents it changes.
    """

    def __init__(self, ports: ClusterPorts, lease: HeldLease, policy: LaunchPolicy) -> None:
        self._ports = ports
        self._lease = lease
        self._policy = policy
        self._pairing = Pairing(ports, lease)
        self.shortage = Shortage(ports, policy.max_empty)
        self.calls = 0
        self.book = IntentBook(ports, lease, policy)

    def launch(
        self,
        context: LaunchContext,
        plan_id: str,
        group: int,
        nodes: Sequence[PlannedNode],
        *,
        replaces: str = "",
    ) -> LaunchOutcome:
        """Write the intent of a group down and carry it out.

        What EC2 refused to an earlier group of this invocation is not asked for again.

        Args:
            replaces: Names of the nodes these are to replace, separated by commas.

        Raises:
            PermanentError: If nothing of the group can be asked for.
            ConflictError: If the lease was lost.
        """
        options, later = self.shortage.left_of(
            context.provisioner.name,
            self._with_subnet(context, nodes[0].options),
            self._with_subnet(context, nodes[0].fallback),
        )
        options, later = _flexible(context, nodes[0].labels, options, later)
        if not options:
            return LaunchOutcome.SHORT
        attempt = LaunchAttempt(
            cluster=context.cluster,
            plan_id=plan_id,
            group=group,
            number=0,
            provisioner=context.provisioner.name,
            labels=nodes[0].labels,
            slots=tuple(
                PromisedSlot(number=n, pods=node.pods, daemon_requests=node.daemon_requests)
                for n, node in enumerate(nodes)
            ),
            options=options,
            later=later,
            replaces=replaces,
            stamp=launch_stamp(context.provisioner),
            owner=slot_owner(context.provisioner),
        )
        body = launch_body(self._usable(context), attempt)
        context.addresses.note(body)
        intent = LaunchIntent(
            cluster=context.cluster,
            plan_id=plan_id,
            group=group,
            attempt=0,
            provisioner=context.provisioner.name,
            count=len(nodes),
            body_key=attempt.key,
            body_hash=body.sha256(),
            reserved=largest((*options, *later)).times(len(nodes)),
            reserved_price_micros_per_hour=dearest((*options, *later)) * len(nodes),
            created_at=self._ports.clock.now(),
        )
        self._lease.keep()
        # The body first: a header without its body could not be resumed.
        self._ports.decisions.put(attempt.key, body.to_bytes())
        asked = self.book.open(intent)
        if asked is None:
            return LaunchOutcome.LATER
        return self._request(context, intent, asked, body, anew=True)

    def resume(self, context: LaunchContext, intent: LaunchIntent) -> LaunchOutcome:
        """Go on with an intent that an earlier invocation left open.

        Instances are adopted by tag first. The exact bytes are sent again only while that is
        recent; later a new attempt is made.

        Raises:
            PermanentError: If it cannot go on; the intent may still be open: `give_up` ends it.
            ConflictError: If the lease was lost.
        """
        self._lease.keep()
        now = self._ports.clock.now()
        self.book.note_turn(intent)
        earliest = self.book.earliest(intent)
        if earliest is not None and now < earliest:
            return self.book.wait_until(earliest)
        body = body_of(self._ports.decisions, intent)
        missing = self._pairing.adopt(body.attempt)
        if not missing:
            return self.book.finish(intent, LaunchOutcome.DONE)
        unsettled = self.book.unsettled_until(intent)
        recent = now < intent.created_at + self._policy.replay
        if recent and len(missing) == len(body.attempt.slots):
            return self._carry_out(context, intent, body, unsettled)
        if unsettled is not None:
            return self.book.hold(intent, unsettled)
        return self._next_attempt(context, intent, body, missing, frozenset())

    def give_up(self, intent: LaunchIntent) -> LaunchOutcome:
        """Adopt what EC2 shows of an intent that cannot go on, and end it: its pods are free."""
        earliest = self.book.earliest(intent)
        if earliest is not None and self._ports.clock.now() < earliest:
            # EC2 may not yet show what it has launched for it.
            return self.book.wait_until(earliest)
        try:
            attempt = body_of(self._ports.decisions, intent).attempt
        except PermanentError:
            # Its request is no longer known; sweep finds machines without a slot.
            attempt = None
        if attempt is not None and not self._pairing.adopt(attempt):
            return self.book.finish(intent, LaunchOutcome.DONE)
        unsettled = self.book.unsettled_until(intent)
        if unsettled is not None:
            return self.book.wait_until(unsettled)
        return self.book.finish(intent, LaunchOutcome.SHORT)

    def _carry_out(
        self,
        context: LaunchContext,
        intent: LaunchIntent,
        body: LaunchBody,
        unsettled: datetime | None = None,
        *,
        anew: bool = False,
    ) -> LaunchOutcome:
        """Request an attempt from EC2 once there is a request token for it."""
        ready = self.book.take_up(intent)
        if ready is None:
            return LaunchOutcome.LATER
        return self._request(context, ready, ready, body, unsettled, anew=anew)

    def _request(
        self,
        context: LaunchContext,
        intent: LaunchIntent,
        asked: LaunchIntent,
        body: LaunchBody,
        unsettled: datetime | None = None,
        *,
        anew: bool,
    ) -> LaunchOutcome:
        """Request an attempt from EC2; request what it does not launch in another way.

        Args:
            intent: As it is if this call launches nothing.
            asked: As it stands written.
            anew: Whether this attempt cannot have been requested before.
            unsettled: Until when an earlier holder of the lease may still request this attempt:
                before then, a refusal does not prove that nothing is launched for it.
        """
        try:
            self._make_templates(body)
            asked = self.book.about_to_ask(asked)
            answer = self._ask(body)
        except ThrottledError as error:
            # Nothing was launched by this call, so nothing has to be waited for but the throttle.
            return self.book.postpone(intent, error.delay or self._policy.throttled)
        except UnavailableError:
            # The outcome is unknown: instances are looked for by tag once EC2 can show them.
            return self.book.postpone(asked, self._policy.consistency)
        except PermanentError as error:
            if unsettled is not None:
                return self.book.hold(asked, unsettled)
            if error.code in ("", _MISMATCH):
                # Nothing was launched, and asking again changes nothing: its pods are free.
                self.book.finish(intent, LaunchOutcome.SHORT)
                raise
            refusal = FleetError(code=error.code, message=error.detail)
            answer = FleetAnswer(fleet_id="", instances=(), errors=(refusal,))
        missing = self._pairing.pair(
            body.attempt, body.attempt.slots, answer.instances, launched_now=anew
        )
        note_passed_over(self._ports, body.attempt, answer)
        if not missing:
            self.shortage.settle(body, answer)
            return self.book.finish(asked, LaunchOutcome.DONE)
        if unsettled is not None:
            return self.book.hold(asked, unsettled)
        return self._ask_otherwise(context, asked, body, answer, missing, anew=anew)

    def _ask_otherwise(
        self,
        context: LaunchContext,
        asked: LaunchIntent,
        body: LaunchBody,
        answer: FleetAnswer,
        missing: Sequence[PromisedSlot],
        *,
        anew: bool,
    ) -> LaunchOutcome:
        """Ask for what an answer lacks in the way that its errors leave."""
        if any(error.code.startswith(_NO_IMAGE) for error in answer.errors):
            # EC2 is short of nothing: planned again, the pods get nodes of another image.
            self.shortage.without_image(body, answer)
            images = {str(template.get("ImageId", "")) for template in body.templates.values()}
            ImageRollout(self._ports).vanished(context.provisioner.name, images)
            return self.book.finish(asked, LaunchOutcome.SHORT)
        young = bool(body.templates) and body.attempt.number < _MOST_RETRIES
        if self.shortage.is_transient(answer, young=young):
            wait = timedelta(seconds=2 ** min(body.attempt.number + 1, _MOST_RETRIES))
            return self._next_attempt(context, asked, body, missing, frozenset(), wait)
        dropped = self.shortage.learn(body, answer, anew=anew)
        return self._next_attempt(context, asked, body, missing, dropped)

    def _make_templates(self, body: LaunchBody) -> None:
        for name, data in sorted(body.templates.items()):
            self._lease.keep()
            self._ports.cloud.ensure_launch_template(name, data)

    def _ask(self, body: LaunchBody) -> FleetAnswer:
        self.calls += 1
        try:
            return self._ports.cloud.create_fleet(body.request)
        except NotFoundError:
            # The template was collected between the two calls: make it again, once.
            self._make_templates(body)
            self._lease.renew()
            return self._ports.cloud.create_fleet(body.request)

    def _next_attempt(
        self,
        context: LaunchContext,
        intent: LaunchIntent,
        body: LaunchBody,
        missing: Sequence[PromisedSlot],
        dropped: frozenset[OfferingKey],
        wait: timedelta | None = None,
    ) -> LaunchOutcome:
        """Ask for the slots that are still empty, with the options that are left.

        Args:
            dropped: What is not to be asked for again; empty when that is not known.
            wait: How long to wait before; None for not at all.
        """
        attempt = body.attempt
        # Whatever an earlier attempt left behind is adopted before more is asked for.
        unpaired = self._pairing.unpaired(attempt)
        if unpaired:
            missing = self._pairing.pair(attempt, missing, unpaired)
            if not missing:
                return self.book.finish(intent, LaunchOutcome.DONE)
        options = self._with_subnet(context, without(attempt.options, dropped))
        later = self._with_subnet(context, without(attempt.later, dropped))
        options, later = _flexible(context, attempt.labels, options, later)
        if not options or _has_changed(context.provisioner, attempt):
            # Its pods are free: they are planned again, for the Provisioner as it is now.
            return self.book.finish(intent, LaunchOutcome.SHORT)
        again = dataclasses.replace(
            attempt, number=attempt.number + 1, slots=tuple(missing), options=options, later=later
        )
        self._lease.keep()
        try:
            next_body = write_body(self._ports.decisions, self._usable(context), again)
        except PermanentError:
            self.book.finish(intent, LaunchOutcome.SHORT)
            raise
        if next_body is None:
            # Its pods are free: they are planned again, under a plan whose numbers are all free.
            return self.book.finish(intent, LaunchOutcome.SHORT)
        context.addresses.note(next_body)
        again = next_body.attempt
        next_intent = dataclasses.replace(
            intent,
            attempt=again.number,
            count=len(missing),
            body_key=again.key,
            body_hash=next_body.sha256(),
            reserved=largest((*options, *later)).times(len(missing)),
            reserved_price_micros_per_hour=dearest((*options, *later)) * len(missing),
            not_before=None,
            asked_at=None,
            created_at=self._ports.clock.now(),
        )
        if wait is not None:
            return self.book.postpone(next_intent, wait)
        self.book.change(next_intent)
        return self._carry_out(context, next_intent, next_body, anew=True)

    def _usable(self, context: LaunchContext) -> LaunchContext:
        """Return the ground without the subnets that EC2 refused."""
        kept = tuple(
            subnet
            for subnet in context.site.subnets
            if subnet.subnet_id not in self.shortage.subnets
        )
        site = Site(subnets=kept, security_groups=context.site.security_groups)
        return dataclasses.replace(context, site=site)

    def _with_subnet(
        self, context: LaunchContext, options: Sequence[LaunchOption]
    ) -> tuple[LaunchOption, ...]:
        """Return the options in zones that still have a subnet."""
        zones = {subnet.zone for subnet in self._usable(context).site.subnets}
        return tuple(option for option in options if option.offering.zone in zones)


def _has_changed(owner: Provisioner, attempt: LaunchAttempt) -> bool:
    """Return whether an attempt was planned for a Provisioner of another shape than it has now."""
    return any(attempt.stamp.get(key) != now for key, now in stamp_of(owner).items())


def _flexible(
    context: LaunchContext,
    labels: Mapping[str, str],
    options: tuple[LaunchOption, ...],
    later: tuple[LaunchOption, ...],
) -> tuple[tuple[LaunchOption, ...], tuple[LaunchOption, ...]]:
    """Return the options and the later ones; none where they offer too few values of a label.

    Where the former are too few, the later ones are asked for at once.
    """
    least = context.provisioner.least_values
    enough = [
        some
        if may_be_asked_for(least, _bootable(context, some), labels, context.instance_types)
        else ()
        for some in (options, later)
    ]
    return (enough[0], enough[1]) if enough[0] else (enough[1], ())


def _bootable(context: LaunchContext, options: Iterable[LaunchOption]) -> Iterator[LaunchOption]:
    """Yield the options for which there is an image, or a launch template of the user's own."""
    own = context.provisioner.template.launch_template
    for option in options:
        if own or context.images.of(option.offering.instance_type):
            yield option
