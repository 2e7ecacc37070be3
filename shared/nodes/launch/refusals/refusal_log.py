"""What EC2 refused in one invocation, and what to request next: few calls, far from that.

EC2 mostly names one offering in its refusal, however many were requested
(https://github.com/kubernetes-sigs/karpenter/issues/3198, 2026-08: 88 % of 1,381 failures). A retry
without that one alone would cost a call for each offering that is unavailable.

`shared.model.ec2.fleet_errors` decides what a refusal means, and `offering_facts` which clusters it
is true for; what depends on the request is recorded here by Provisioner.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence

from msgspec import Struct, field

from shared.model.ec2.fleet_errors import (
    UNFULFILLABLE,
    ErrorKind,
    is_shared_shortage,
    is_template_not_yet_visible,
    kind_among,
    kind_of,
)
from shared.model.ec2.instance_types import OfferingKey
from shared.model.ec2.launches import FleetAnswer, FleetError, LaunchOption
from shared.model.ec2.quotas import offerings_beyond_quotas, reached_quotas
from shared.nodes.launch.refusals.offering_facts import OfferingFact, mark_quotas, mark_unavailable
from shared.ports import ClusterPorts
from shared.snapshot.launch_body import LaunchAttempt, LaunchBody
from shared.snapshot.refusals import exclude_subnets


class Findings(Struct):
    """What EC2's errors mean: of one answer, of a launch so far, or of a Provisioner's launches.

    Attributes:
        launched: Whether EC2 launched anything.
        short: EC2 has no capacity for these offerings.
        over_quota: Offerings of errors about a quota.
        unsupported: EC2 does not offer these as this Provisioner requests them.
        refused: Offerings that were refused because of what the request contains.
        named: Offerings that EC2 names one by one, for whatever reason.
        errors: The errors because of what the request contains, each once.
        refusal: Of a launch, the first of these of the last answer that has any; of a Provisioner,
            that of a launch that was refused as a whole and launched nothing.
        subnets: Subnets without addresses, or gone.
        transient: Whether some errors may pass by themselves.
    """

    launched: bool = False
    short: set[OfferingKey] = field(default_factory=set)
    over_quota: set[OfferingKey] = field(default_factory=set)
    unsupported: set[OfferingKey] = field(default_factory=set)
    refused: set[OfferingKey] = field(default_factory=set)
    named: set[OfferingKey] = field(default_factory=set)
    errors: dict[FleetError, None] = field(default_factory=dict)
    refusal: FleetError | None = None
    subnets: set[str] = field(default_factory=set)
    transient: bool = False

    @property
    def has_other_reasons(self) -> bool:
        """Whether EC2 gives any reason but missing capacity and what the request contains."""
        return bool(self.over_quota or self.unsupported or self.subnets)

    @property
    def is_refusal(self) -> bool:
        """Whether EC2 gives no other reason than what the request contains."""
        return bool(self.errors) and not (self.short or self.has_other_reasons)

    def add(self, answer: "Findings") -> None:
        """Add what the errors of another answer mean."""
        self.launched |= answer.launched
        self.short |= answer.short
        self.over_quota |= answer.over_quota
        self.unsupported |= answer.unsupported
        self.refused |= answer.refused
        self.errors |= answer.errors
        self.subnets |= answer.subnets


class _Launch(Findings):
    """All attempts of one launch so far, and what those that launched nothing requested."""

    empty_attempts: int = 0
    offerings: frozenset[OfferingKey] = frozenset()


class RefusalLog:
    """What EC2 refused in one invocation, and how often in a row it launched nothing.

    Attributes:
        failed_attempts: Calls that launched nothing for lack of capacity, quota, addresses or an
            AMI.
        refused_attempts: Calls that launched nothing because EC2 refused the request.
        refused: Offerings that are unavailable, named or suspected, for all Provisioners.
        subnets: Subnets that are not used.
    """

    def __init__(self, ports: ClusterPorts, max_empty: int) -> None:
        """Start with nothing known.

        Args:
            max_empty: How many calls in a row of one launch may launch nothing.
        """
        self._ports = ports
        self._max_empty = max_empty
        self._launches: dict[tuple[str, int], _Launch] = defaultdict(_Launch)
        self._owners: dict[str, Findings] = defaultdict(Findings)
        self._excluded: dict[str, set[OfferingKey]] = defaultdict(set)
        self.failed_attempts = 0
        self.refused_attempts = 0
        self.refused: frozenset[OfferingKey] = frozenset()
        self.subnets: frozenset[str] = frozenset()

    def add(self, body: LaunchBody, answer: FleetAnswer) -> tuple[_Launch, Findings]:
        """Record an answer; return the findings of its launch so far, and its own."""
        attempt, found = body.attempt, _findings(body.attempt, answer)
        self._mark(body, found)
        self._owners[attempt.provisioner].add(found)
        self._excluded[attempt.provisioner] |= found.unsupported | found.refused
        launch = self._launches[attempt.plan_id, attempt.group]
        launch.add(found)
        launch.refusal = next(iter(found.errors), launch.refusal)
        return launch, found

    def add_missing_image(self, body: LaunchBody, answer: FleetAnswer) -> None:
        """Count a call that did not launch everything for lack of an AMI."""
        self.failed_attempts += 1
        self._mark(body, _findings(body.attempt, answer))

    def add_refusals(
        self, body: LaunchBody, answer: FleetAnswer, *, first_request: bool
    ) -> frozenset[OfferingKey]:
        """Record what EC2 refused; return the offerings that this launch no longer requests.

        Args:
            first_request: Whether this attempt cannot have been requested before: EC2 may answer a
                request that it knows with a part of the instances that it launched then.
        """
        attempt = body.attempt
        launch, found = self.add(body, answer)
        named = (attempt.offerings & self.refused).union(
            found.short, found.unsupported, found.over_quota, found.refused
        )
        if answer.instances:
            # Fewer than requested and no reason given: none of these is requested again at once.
            suspects = attempt.offerings if first_request and not answer.errors else frozenset()
            self._suspect(suspects)
            return named | suspects
        everything = attempt.offerings.union(option.offering for option in attempt.fallback)
        launch.offerings |= everything
        launch.empty_attempts += 1
        if found.is_refusal:
            self.refused_attempts += 1
        else:
            self.failed_attempts += 1
        dropped = self._excluded_after_empty(launch, attempt, named, found)
        if everything <= dropped:
            self._finish_launch(launch, attempt.provisioner)
        return dropped

    def remaining_options(
        self, provisioner: str, options: Sequence[LaunchOption], fallback: Sequence[LaunchOption]
    ) -> tuple[tuple[LaunchOption, ...], tuple[LaunchOption, ...]]:
        """Return the options and the fallback without the offerings known to be unavailable."""
        excluded = self.refused | self._excluded[provisioner]
        now, then = without_offerings(options, excluded), without_offerings(fallback, excluded)
        return (now, then) if now else (then, ())

    def take(self) -> dict[str, Findings]:
        """Return the answers since the last call, by Provisioner; their offerings stay excluded."""
        taken, self._owners = self._owners, defaultdict(Findings)
        return taken

    def _mark(self, body: LaunchBody, found: Findings) -> None:
        """Mark what EC2 has no capacity for, what a reached quota excludes, and refused subnets."""
        ports, types = self._ports, self._ports.catalog.instance_types()
        self.refused |= found.short | offerings_beyond_quotas(
            reached_quotas(found.over_quota, types), types
        )
        if fresh := found.subnets - self.subnets:
            self.subnets |= fresh
            exclude_subnets(ports, sorted(fresh))
        fact = OfferingFact.NO_CAPACITY if body.is_plain else OfferingFact.NO_CAPACITY_AS_ASKED
        mark_unavailable(ports, fact, found.short & found.named)
        vague = mark_quotas(ports, found.over_quota, found.over_quota & found.named, types)
        vague |= found.short - found.named
        mark_unavailable(ports, OfferingFact.NOTHING_LAUNCHED, vague)

    def _suspect(self, suspects: frozenset[OfferingKey]) -> None:
        """Mark offerings of which EC2 launched nothing although it did not name them."""
        self.refused |= suspects
        mark_unavailable(self._ports, OfferingFact.NOTHING_LAUNCHED, suspects)

    def _finish_launch(self, launch: _Launch, provisioner: str) -> None:
        """Record the result of a launch that requests nothing more.

        Offerings that EC2 did not name are suspected only if there was a single reason, and not one
        that depends on the request.
        """
        unnamed = launch.offerings - self.refused
        if launch.refusal is None:
            if not launch.has_other_reasons:
                self._suspect(unnamed)
            return
        owner = self._owners[provisioner]
        owner.refused |= unnamed
        self._excluded[provisioner] |= unnamed
        if launch.is_refusal and not launch.launched:
            owner.refusal = launch.refusal

    def _excluded_after_empty(
        self,
        launch: _Launch,
        attempt: LaunchAttempt,
        named: frozenset[OfferingKey],
        found: Findings,
    ) -> frozenset[OfferingKey]:
        """Return the offerings that a launch no longer requests after an empty attempt.

        First the named types in every zone. Then the whole capacity type if there is another, else
        the named zones, too. Then everything: the launch is over for now. A refused subnet excludes
        no offering as long as its zone has another.
        """
        offerings = attempt.offerings
        if launch.empty_attempts >= self._max_empty:
            return launch.offerings
        if not named and (found.subnets or found.transient):
            return frozenset()
        if not named or named >= offerings:
            return offerings
        types = {offering.instance_type for offering in named}
        zones = {offering.zone for offering in named}
        alike = frozenset(offering for offering in offerings if offering.instance_type in types)
        if launch.empty_attempts == 1:
            return alike if offerings - alike else named
        if attempt.fallback:
            return offerings
        near = alike.union(offering for offering in offerings if offering.zone in zones)
        return next(some for some in (near, alike, named) if offerings - some)


def _findings(attempt: LaunchAttempt, answer: FleetAnswer) -> Findings:
    """Return what the errors of an answer mean.

    An error that names no offering concerns all offerings that were requested and not launched.
    """
    found = Findings(launched=bool(answer.instances))
    launched = {instance.offering for instance in answer.instances}
    codes = {error.code for error in answer.errors}
    for error in answer.errors:
        offerings = attempt.offerings - launched if error.offering is None else {error.offering}
        if len(offerings) == 1:
            found.named |= offerings
        match kind_among(error.code, codes):
            case ErrorKind.TRANSIENT:
                found.transient = True
            case ErrorKind.QUOTA:
                found.over_quota |= offerings
            case ErrorKind.SHORTAGE if is_shared_shortage(error.code):
                found.short |= offerings
            case ErrorKind.SHORTAGE:
                found.unsupported |= offerings
            case ErrorKind.SUBNET if error.subnet_id:
                found.subnets.add(error.subnet_id)
            case ErrorKind.SUBNET | ErrorKind.REFUSAL:
                found.refused |= offerings
                if error.code != UNFULFILLABLE:
                    found.errors[FleetError(code=error.code, message=error.message)] = None
    return found


def is_transient(answer: FleetAnswer, *, new_template: bool) -> bool:
    """Return whether a retry may launch all that an answer lacks.

    Args:
        new_template: Whether a launch template that EC2 does not find was made just now.
    """
    return bool(answer.errors) and all(
        kind_of(error.code) == ErrorKind.TRANSIENT
        or (new_template and is_template_not_yet_visible(error))
        for error in answer.errors
    )


def without_offerings(
    options: Sequence[LaunchOption], offerings: Collection[OfferingKey]
) -> tuple[LaunchOption, ...]:
    """Return the options of all other offerings."""
    return tuple(option for option in options if option.offering not in offerings)
