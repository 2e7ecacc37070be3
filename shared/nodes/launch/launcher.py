"""Launches one group: the intent, then the EC2 request, then the pairs of slot and instance."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from shared.disruption.drift import launch_stamp, stamp_of
from shared.model.ec2.instance_types import OfferingKey
from shared.model.ec2.launches import (
    FleetAnswer,
    FleetError,
    LaunchIntent,
    LaunchOption,
    PlannedNode,
    highest_price,
    largest_capacity_of,
)
from shared.model.errors import (
    NotFoundError,
    PermanentError,
    ThrottledError,
    UnavailableError,
)
from shared.model.policy import LaunchPolicy
from shared.model.provisioner import Provisioner
from shared.model.values import replace
from shared.nodes.launch.ami_canary import ImageCanary
from shared.nodes.launch.body_archive import body_of, write_body
from shared.nodes.launch.held_lease import HeldLease
from shared.nodes.launch.intents import IntentBook, LaunchOutcome
from shared.nodes.launch.launch_request import LaunchContext, launch_body
from shared.nodes.launch.launch_results import LaunchResults
from shared.nodes.launch.refusals.offering_facts import save_skipped_spot_pools
from shared.nodes.launch.refusals.refusal_log import (
    RefusalLog,
    is_transient,
    without_offerings,
)
from shared.nodes.launch.slots import Pairing, slot_owner
from shared.planning.rules.min_values import offers_enough
from shared.ports import ClusterPorts
from shared.snapshot.launch_body import LaunchAttempt, LaunchBody, PromisedSlot

# The prefix of the EC2 error codes for an AMI that is gone or not ready.
_NO_IMAGE: Final = "InvalidAMIID."
# A ClientToken that was used with other bytes: tells nothing about what was requested.
_MISMATCH: Final = "IdempotentParameterMismatch"
# How often a transient error is retried, after 2, 4, 8 ... seconds: two minutes in all.
_MOST_RETRIES: Final = 6


class Launcher:
    """Launches groups of planned nodes for one cluster, under its lease.

    Attributes:
        refusals: What EC2 refused in this invocation.
        calls: CreateFleet calls made.
        intents: The open intents that it changes.
    """

    def __init__(self, ports: ClusterPorts, held_lease: HeldLease, policy: LaunchPolicy) -> None:
        self._ports = ports
        self._policy = policy
        self._results = LaunchResults(ports)
        self._pairing = Pairing(ports, held_lease, self._results)
        self.refusals = RefusalLog(ports, policy.max_empty_launches)
        self.calls = 0
        self.intents = IntentBook(ports, held_lease, policy, self._results)

    def launch(
        self,
        context: LaunchContext,
        plan_id: str,
        group: int,
        nodes: Sequence[PlannedNode],
        *,
        replaces: str = "",
    ) -> LaunchOutcome:
        """Save the intent of a group and launch the group.

        What EC2 refused for an earlier group of this invocation is not requested again.

        Args:
            replaces: Names of the nodes that these will replace, separated by commas.

        Raises:
            PermanentError: If nothing of the group can be requested.
            ConflictError: If the lease was lost.
        """
        options, fallback = self.refusals.remaining_options(
            context.provisioner.name,
            self._with_subnet(context, nodes[0].options),
            self._with_subnet(context, nodes[0].fallback),
        )
        options, fallback = _flexible(context, nodes[0].labels, options, fallback)
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
            fallback=fallback,
            replaces=replaces,
            stamp=launch_stamp(context.provisioner),
            owner=slot_owner(context.provisioner),
        )
        body = launch_body(self._without_refused_subnets(context), attempt)
        context.addresses.reserve(body)
        intent = LaunchIntent(
            cluster=context.cluster,
            plan_id=plan_id,
            group=group,
            attempt=0,
            provisioner=context.provisioner.name,
            count=len(nodes),
            body_key=attempt.key,
            body_hash=body.sha256(),
            reserved=largest_capacity_of((*options, *fallback)).times(len(nodes)),
            reserved_price_micros_per_hour=highest_price((*options, *fallback)) * len(nodes),
            created_at=self._ports.clock.now(),
        )
        # The body first: an intent without its body could not be resumed.
        self._ports.decisions.put(attempt.key, body.to_bytes())
        stored = self.intents.open(intent)
        if stored is None:
            return LaunchOutcome.LATER
        return self._request(context, intent, stored, body, first_request=True)

    def resume(self, context: LaunchContext, intent: LaunchIntent) -> LaunchOutcome:
        """Resume an intent that an earlier invocation left open.

        First, instances with its tags are paired with its slots. The exact bytes are sent again
        only within the replay window and only if no slot is filled; otherwise a new attempt is
        made.

        Raises:
            PermanentError: If it cannot continue; the intent may still be open: `abandon` closes
                it.
            ConflictError: If the lease was lost.
        """
        now = self._ports.clock.now()
        self.intents.expect_token(intent)
        earliest = self.intents.earliest(intent)
        if earliest is not None and now < earliest:
            return self.intents.wait_until(earliest)
        body = body_of(self._ports.decisions, intent)
        missing = self._pairing.pair_tagged(body.attempt)
        if not missing:
            return self.intents.finish(intent, LaunchOutcome.DONE)
        in_doubt_until = self.intents.in_doubt_until(intent)
        recent = now < intent.created_at + self._policy.replay_window
        if recent and len(missing) == len(body.attempt.slots):
            return self._request_with_token(context, intent, body, in_doubt_until)
        if in_doubt_until is not None:
            return self.intents.postpone_until(intent, in_doubt_until)
        return self._next_attempt(context, intent, body, missing, frozenset())

    def abandon(self, intent: LaunchIntent) -> LaunchOutcome:
        """Pair what EC2 shows of an intent that cannot continue, and close it to free its pods."""
        earliest = self.intents.earliest(intent)
        if earliest is not None and self._ports.clock.now() < earliest:
            # EC2 may not yet show all that it has launched for this intent.
            return self.intents.wait_until(earliest)
        try:
            attempt = body_of(self._ports.decisions, intent).attempt
        except PermanentError:
            # Its request is no longer known; sweep finds instances without a slot.
            attempt = None
        if attempt is not None and not self._pairing.pair_tagged(attempt):
            return self.intents.finish(intent, LaunchOutcome.DONE)
        in_doubt_until = self.intents.in_doubt_until(intent)
        if in_doubt_until is not None:
            return self.intents.wait_until(in_doubt_until)
        return self.intents.finish(intent, LaunchOutcome.SHORT)

    def _request_with_token(
        self,
        context: LaunchContext,
        intent: LaunchIntent,
        body: LaunchBody,
        in_doubt_until: datetime | None = None,
        *,
        first_request: bool = False,
    ) -> LaunchOutcome:
        """Request an attempt from EC2 once there is a request token for it."""
        ready = self.intents.acquire_token(intent)
        if ready is None:
            return LaunchOutcome.LATER
        return self._request(
            context, ready, ready, body, in_doubt_until, first_request=first_request
        )

    def _request(
        self,
        context: LaunchContext,
        intent: LaunchIntent,
        stored: LaunchIntent,
        body: LaunchBody,
        in_doubt_until: datetime | None = None,
        *,
        first_request: bool,
    ) -> LaunchOutcome:
        """Request an attempt from EC2; retry for the instances that it does not launch.

        Args:
            intent: The intent as it is if this call launches nothing.
            stored: The intent as it is stored now.
            first_request: Whether this attempt cannot have been requested before.
            in_doubt_until: Until when an earlier holder of the lease may still request this
                attempt: before then, a refusal does not prove that nothing is launched for it.
        """
        try:
            self._make_templates(body)
            stored = self.intents.mark_asked(stored)
            answer = self._create_fleet(body)
        except ThrottledError as error:
            # Nothing was launched by this call, so only the throttle delays the next one.
            return self.intents.postpone(intent, error.delay or self._policy.throttle_delay)
        except UnavailableError:
            # The outcome is unknown: instances are searched by tag once EC2 can show them.
            return self.intents.postpone(stored, self._policy.consistency_delay)
        except PermanentError as error:
            if in_doubt_until is not None:
                return self.intents.postpone_until(stored, in_doubt_until)
            refusal = FleetError(code=error.code, message=error.detail)
            if error.code in ("", _MISMATCH):
                # Nothing was launched, and another request would not change that: its pods are
                # planned again.
                self._results.add_errors(intent.plan_id, intent.group, (refusal,))
                self.intents.finish(intent, LaunchOutcome.SHORT)
                raise
            answer = FleetAnswer(fleet_id="", instances=(), errors=(refusal,))
        self._results.add_errors(intent.plan_id, intent.group, answer.errors)
        missing = self._pairing.pair(
            body.attempt, body.attempt.slots, answer.instances, launched_now=first_request
        )
        save_skipped_spot_pools(self._ports, body.attempt.options, answer)
        if not missing:
            self.refusals.add(body, answer)
            return self.intents.finish(stored, LaunchOutcome.DONE)
        if in_doubt_until is not None:
            return self.intents.postpone_until(stored, in_doubt_until)
        return self._retry_missing(
            context, stored, body, answer, missing, first_request=first_request
        )

    def _retry_missing(
        self,
        context: LaunchContext,
        stored: LaunchIntent,
        body: LaunchBody,
        answer: FleetAnswer,
        missing: Sequence[PromisedSlot],
        *,
        first_request: bool,
    ) -> LaunchOutcome:
        """Retry for the instances that an answer lacks, as far as its errors allow."""
        if any(error.code.startswith(_NO_IMAGE) for error in answer.errors):
            # EC2 has capacity: planned again, the pods get nodes with another image.
            self.refusals.add_missing_image(body, answer)
            images = {str(template.get("ImageId", "")) for template in body.templates.values()}
            ImageCanary(self._ports).save_missing_images(context.provisioner.name, images)
            return self.intents.finish(stored, LaunchOutcome.SHORT)
        new_template = bool(body.templates) and body.attempt.number < _MOST_RETRIES
        if is_transient(answer, new_template=new_template):
            wait = timedelta(seconds=2 ** min(body.attempt.number + 1, _MOST_RETRIES))
            return self._next_attempt(context, stored, body, missing, frozenset(), wait)
        dropped = self.refusals.add_refusals(body, answer, first_request=first_request)
        return self._next_attempt(context, stored, body, missing, dropped)

    def _make_templates(self, body: LaunchBody) -> None:
        for name, data in sorted(body.templates.items()):
            self._ports.cloud.ensure_launch_template(name, data)

    def _create_fleet(self, body: LaunchBody) -> FleetAnswer:
        self.calls += 1
        try:
            return self._ports.cloud.create_fleet(body.request)
        except NotFoundError:
            # The launch template was deleted between the two calls: create it again, once.
            self._make_templates(body)
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
        """Request instances for the slots that are still empty, with the options that are left.

        Args:
            dropped: Offerings that are not requested again; empty if that is not known.
            wait: How long to wait before the request; None for no wait.
        """
        attempt = body.attempt
        # Instances that an earlier attempt left behind are paired before more are requested.
        unpaired = self._pairing.unpaired(attempt)
        if unpaired:
            missing = self._pairing.pair(attempt, missing, unpaired)
            if not missing:
                return self.intents.finish(intent, LaunchOutcome.DONE)
        options = self._with_subnet(context, without_offerings(attempt.options, dropped))
        fallback = self._with_subnet(context, without_offerings(attempt.fallback, dropped))
        options, fallback = _flexible(context, attempt.labels, options, fallback)
        if not options or _has_changed(context.provisioner, attempt):
            # Its pods are planned again, for the Provisioner as it is now.
            return self.intents.finish(intent, LaunchOutcome.SHORT)
        next_attempt = replace(
            attempt,
            number=attempt.number + 1,
            slots=tuple(missing),
            options=options,
            fallback=fallback,
        )
        try:
            next_body = write_body(
                self._ports.decisions, self._without_refused_subnets(context), next_attempt
            )
        except PermanentError:
            self.intents.finish(intent, LaunchOutcome.SHORT)
            raise
        if next_body is None:
            # Its pods are planned again, in a new plan whose attempt numbers are all free.
            return self.intents.finish(intent, LaunchOutcome.SHORT)
        context.addresses.reserve(next_body)
        next_attempt = next_body.attempt
        next_intent = replace(
            intent,
            attempt=next_attempt.number,
            count=len(missing),
            body_key=next_attempt.key,
            body_hash=next_body.sha256(),
            reserved=largest_capacity_of((*options, *fallback)).times(len(missing)),
            reserved_price_micros_per_hour=highest_price((*options, *fallback)) * len(missing),
            not_before=None,
            asked_at=None,
            created_at=self._ports.clock.now(),
        )
        if wait is not None:
            return self.intents.postpone(next_intent, wait)
        self.intents.change(next_intent)
        return self._request_with_token(context, next_intent, next_body, first_request=True)

    def _without_refused_subnets(self, context: LaunchContext) -> LaunchContext:
        """Return the context without the subnets that EC2 refused."""
        return replace(context, site=context.site.without_subnets(self.refusals.subnets))

    def _with_subnet(
        self, context: LaunchContext, options: Sequence[LaunchOption]
    ) -> tuple[LaunchOption, ...]:
        """Return the options in zones that still have a subnet."""
        zones = {
            subnet.zone for subnet in context.site.without_subnets(self.refusals.subnets).subnets
        }
        return tuple(option for option in options if option.offering.zone in zones)


def _has_changed(owner: Provisioner, attempt: LaunchAttempt) -> bool:
    """Return whether the Provisioner has changed since an attempt was planned."""
    return any(attempt.stamp.get(key) != now for key, now in stamp_of(owner).items())


def _flexible(
    context: LaunchContext,
    labels: Mapping[str, str],
    options: tuple[LaunchOption, ...],
    fallback: tuple[LaunchOption, ...],
) -> tuple[tuple[LaunchOption, ...], tuple[LaunchOption, ...]]:
    """Return the options and the fallback; none of either if they offer too few values of a label.

    If the options offer too few, the fallback is requested at once.
    """
    least = context.provisioner.least_values
    enough = [
        some
        if offers_enough(least, _bootable(context, some), labels, context.instance_types)
        else ()
        for some in (options, fallback)
    ]
    return (enough[0], enough[1]) if enough[0] else (enough[1], ())


def _bootable(context: LaunchContext, options: Iterable[LaunchOption]) -> Iterator[LaunchOption]:
    """Yield the options for which there is an image, or a launch template of the user's."""
    own = context.provisioner.template.launch_template
    for option in options:
        if own or context.images.of(option.offering.instance_type):
            yield option
