"""What EC2 refused in one invocation, and what to request next: few calls, far from that.

EC2 mostly names one offering in its refusal, however many were requested
(https://github.com/kubernetes-sigs/karpenter/issues/3198, 2026-08: 88 % of 1,381 failures). A retry
without that one alone would cost a call for each offering that is unavailable.

`shared.model.ec2.fleet_errors` decides what a refusal means, and `offering_facts` which clusters it
is true for; what depends on the request is recorded here by Provisioner.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

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
from shared.nodes.launch.refusals.offering_facts import (
    OfferingFact,
    certain_quotas,
    mark_quotas,
    mark_unavailable,
)
from shared.ports import ClusterPorts
from shared.snapshot.launch_body import LaunchAttempt, LaunchBody


@dataclass
class OwnerRefusals:
    """What EC2 answered in one invocation to the launches of one Provisioner.

    Attributes:
        launched: Whether EC2 launched anything.
        unsupported: Offerings that EC2 does not offer as this Provisioner requests them.
        errors: Every refusal, each once.
        refused_offerings: Offerings that were refused.
        launch_refusal: The refusal of a launch that was refused as a whole and launched nothing.
    """

    launched: bool = False
    unsupported: set[OfferingKey] = field(default_factory=set)
    errors: dict[FleetError, None] = field(default_factory=dict)
    refused_offerings: set[OfferingKey] = field(default_factory=set)
    launch_refusal: FleetError | None = None


@dataclass
class _Launch:
    """The result of one launch so far: all of its attempts."""

    empty_attempts: int = 0
    bought: bool = False
    offerings: frozenset[OfferingKey] = frozenset()
    kinds: set[ErrorKind] = field(default_factory=set)
    unsupported: bool = False
    refusal: FleetError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Findings:
    """The errors of one answer, sorted by what they mean.

    Attributes:
        shared: EC2 has no capacity for these, and names them.
        as_asked: The same if the request has a launch template or context of the user's.
        unnamed: EC2 has no capacity, and does not name the offerings one by one.
        unsupported: EC2 does not offer these as this cluster requests them.
        over_quota: Offerings of errors about a quota.
        named_quota: The ones among those that EC2 names one by one.
        refused: Refused because of what the request contains.
        subnets: Subnets without addresses, or gone.
        transient: Whether some errors may pass by themselves.
    """

    shared: frozenset[OfferingKey] = frozenset()
    as_asked: frozenset[OfferingKey] = frozenset()
    unnamed: frozenset[OfferingKey] = frozenset()
    unsupported: frozenset[OfferingKey] = frozenset()
    over_quota: frozenset[OfferingKey] = frozenset()
    named_quota: frozenset[OfferingKey] = frozenset()
    refused: frozenset[OfferingKey] = frozenset()
    refusals: tuple[FleetError, ...] = ()
    subnets: frozenset[str] = frozenset()
    transient: bool = False

    @property
    def no_capacity(self) -> frozenset[OfferingKey]:
        """All that EC2 has no capacity for."""
        return self.shared | self.as_asked | self.unnamed

    @property
    def kinds(self) -> set[ErrorKind]:
        """The kinds of the errors, except transient ones."""
        found = {
            ErrorKind.SHORTAGE: self.no_capacity or self.unsupported,
            ErrorKind.QUOTA: self.over_quota,
            ErrorKind.SUBNET: self.subnets,
            ErrorKind.REFUSAL: self.refusals,
        }
        return {kind for kind, some in found.items() if some}


class RefusalLog:
    """What EC2 refused in one invocation, and how often in a row it launched nothing.

    Attributes:
        failed_attempts: Calls that launched nothing for lack of capacity, quota, addresses or an
            AMI.
        refused_attempts: Calls that launched nothing because EC2 refused the request.
        refused: Offerings that are unavailable, named or suspected, for all Provisioners.
        subnets: Subnets that are not used.
        by_provisioner: What EC2 answered, by name of the Provisioner.
    """

    def __init__(self, ports: ClusterPorts, max_empty: int) -> None:
        """Start with nothing known.

        Args:
            max_empty: How many calls in a row of one launch may launch nothing.
        """
        self._ports = ports
        self._max_empty = max_empty
        self._launches: dict[tuple[str, int], _Launch] = {}
        self.failed_attempts = 0
        self.refused_attempts = 0
        self.refused: frozenset[OfferingKey] = frozenset()
        self.subnets: frozenset[str] = frozenset()
        self.by_provisioner: dict[str, OwnerRefusals] = {}
        self._excluded: dict[str, frozenset[OfferingKey]] = {}

    def add_filled(self, body: LaunchBody, answer: FleetAnswer) -> None:
        """Record the refusals of an answer that filled every slot."""
        self._add(body.attempt, _findings(body, answer), bought=bool(answer.instances))

    def add_missing_image(self, body: LaunchBody, answer: FleetAnswer) -> None:
        """Count a call that did not launch everything for lack of an AMI."""
        self.failed_attempts += 1
        self._mark(_findings(body, answer))

    def is_transient(self, answer: FleetAnswer, *, new_template: bool) -> bool:
        """Return whether a retry may launch all that an answer lacks.

        Args:
            new_template: Whether a launch template that EC2 does not find was made just now.
        """
        return bool(answer.errors) and all(
            _transient(error, new_template=new_template) for error in answer.errors
        )

    def add_refusals(
        self, body: LaunchBody, answer: FleetAnswer, *, first_request: bool
    ) -> frozenset[OfferingKey]:
        """Record what EC2 refused; return the offerings that this launch no longer requests.

        Args:
            first_request: Whether this attempt cannot have been requested before: EC2 may answer a
                request that it knows with a part of the instances that it launched then.
        """
        attempt, found = body.attempt, _findings(body, answer)
        launch = self._add(attempt, found, bought=bool(answer.instances))
        named = found.no_capacity | found.unsupported | found.over_quota | found.refused
        named |= attempt.offerings & self.refused
        if answer.instances:
            # Fewer than requested and no reason given: none of these is requested again at once.
            suspects = attempt.offerings if first_request and not answer.errors else frozenset()
            self._suspect(suspects)
            return named | suspects
        everything = attempt.offerings | {
            launch_option.offering for launch_option in attempt.fallback
        }
        launch.offerings |= everything
        launch.empty_attempts += 1
        if found.kinds == {ErrorKind.REFUSAL}:
            self.refused_attempts += 1
        else:
            self.failed_attempts += 1
        dropped = self._excluded_after_empty(launch, attempt, named, found)
        if everything <= dropped:
            self._finish_launch(launch, attempt)
        return dropped

    def remaining_options(
        self, provisioner: str, options: Sequence[LaunchOption], fallback: Sequence[LaunchOption]
    ) -> tuple[tuple[LaunchOption, ...], tuple[LaunchOption, ...]]:
        """Return the options and the fallback without the offerings known to be unavailable."""
        refusals = self.by_provisioner.get(provisioner, OwnerRefusals())
        excluded = self.refused | self._excluded.get(provisioner, frozenset())
        excluded |= refusals.refused_offerings | refusals.unsupported
        now, then = without_offerings(options, excluded), without_offerings(fallback, excluded)
        return (now, then) if now else (then, ())

    def clear(self) -> None:
        """Clear the refusals once they were acted on; their offerings stay excluded."""
        for name, refusals in self.by_provisioner.items():
            known = self._excluded.get(name, frozenset())
            self._excluded[name] = known | refusals.refused_offerings | refusals.unsupported
        self.by_provisioner = {}

    def _add(self, attempt: LaunchAttempt, found: _Findings, *, bought: bool) -> _Launch:
        """Record the findings; return the result of the launch so far."""
        self._mark(found)
        refusals = self.by_provisioner.setdefault(attempt.provisioner, OwnerRefusals())
        refusals.launched |= bought
        refusals.unsupported |= found.unsupported
        refusals.refused_offerings |= found.refused
        refusals.errors |= dict.fromkeys(found.refusals)
        launch = self._launches.setdefault((attempt.plan_id, attempt.group), _Launch())
        launch.bought |= bought
        launch.kinds |= found.kinds
        launch.unsupported |= bool(found.unsupported)
        launch.refusal = next(iter(found.refusals), launch.refusal)
        return launch

    def _mark(self, found: _Findings) -> None:
        """Mark what EC2 has no capacity for, and what a reached quota excludes."""
        types = self._ports.catalog.instance_types()
        self.refused |= found.no_capacity | offerings_beyond_quotas(
            reached_quotas(found.over_quota, types), types
        )
        self.subnets |= found.subnets
        mark_unavailable(self._ports, OfferingFact.NO_CAPACITY, found.shared)
        mark_unavailable(self._ports, OfferingFact.NO_CAPACITY_AS_ASKED, found.as_asked)
        marks = certain_quotas(found.over_quota, found.named_quota, types)
        mark_quotas(self._ports, marks)
        vague = found.over_quota - offerings_beyond_quotas(marks, types)
        mark_unavailable(self._ports, OfferingFact.NOTHING_LAUNCHED, found.unnamed | vague)

    def _suspect(self, suspects: frozenset[OfferingKey]) -> None:
        """Mark offerings of which EC2 launched nothing although it did not name them."""
        self.refused |= suspects
        mark_unavailable(self._ports, OfferingFact.NOTHING_LAUNCHED, suspects)

    def _finish_launch(self, launch: _Launch, attempt: LaunchAttempt) -> None:
        """Record the result of a launch that requests nothing more.

        Offerings that EC2 did not name are suspected only if there was a single reason, and not one
        that depends on the request.
        """
        if launch.refusal is None:
            if launch.kinds <= {ErrorKind.SHORTAGE} and not launch.unsupported:
                self._suspect(launch.offerings - self.refused)
            return
        refusals = self.by_provisioner[attempt.provisioner]
        refusals.refused_offerings |= launch.offerings - self.refused
        if not launch.bought and launch.kinds == {ErrorKind.REFUSAL}:
            refusals.launch_refusal = launch.refusal

    def _excluded_after_empty(
        self,
        launch: _Launch,
        attempt: LaunchAttempt,
        named: frozenset[OfferingKey],
        found: _Findings,
    ) -> frozenset[OfferingKey]:
        """Return the offerings that a launch no longer requests after an empty attempt.

        First the named types in every zone. Then the whole capacity type if there is another, else
        the named zones, too. Then everything: the launch is over for now. A refused subnet excludes
        no offering as long as its zone has another.
        """
        offerings = attempt.offerings
        if launch.empty_attempts >= self._max_empty:
            return offerings | {launch_option.offering for launch_option in attempt.fallback}
        if not named and (found.subnets or found.transient):
            return frozenset()
        if not named or named >= offerings:
            return offerings
        types = {offering_key.instance_type for offering_key in named}
        zones = {offering_key.zone for offering_key in named}
        alike = frozenset(
            offering_key for offering_key in offerings if offering_key.instance_type in types
        )
        if launch.empty_attempts == 1:
            return alike if offerings - alike else named
        if attempt.fallback:
            return offerings
        near = alike | {offering_key for offering_key in offerings if offering_key.zone in zones}
        return next(entry for entry in (near, alike, named) if offerings - entry)


def _findings(body: LaunchBody, answer: FleetAnswer) -> _Findings:
    """Return what the errors of an answer mean.

    An error that names no offering concerns all offerings that were requested and not launched.
    """
    attempt = body.attempt
    launched = {instance.offering for instance in answer.instances}
    of_kind: dict[ErrorKind, set[OfferingKey]] = {}
    unsupported: set[OfferingKey] = set()
    named_one_by_one: set[OfferingKey] = set()
    refusals: dict[FleetError, None] = {}
    subnets = set()
    codes = {error.code for error in answer.errors}
    for error in answer.errors:
        named = attempt.offerings - launched if error.offering is None else {error.offering}
        kind = kind_among(error.code, codes)
        if len(named) == 1:
            named_one_by_one |= named
        if kind == ErrorKind.SHORTAGE and not is_shared_shortage(error.code):
            unsupported |= named
        elif kind == ErrorKind.SUBNET and error.subnet_id:
            subnets.add(error.subnet_id)
        elif kind in (ErrorKind.SUBNET, ErrorKind.REFUSAL):
            of_kind.setdefault(ErrorKind.REFUSAL, set()).update(named)
            if error.code != UNFULFILLABLE:
                refusals[FleetError(code=error.code, message=error.message)] = None
        else:
            of_kind.setdefault(kind, set()).update(named)
    short = frozenset(of_kind.get(ErrorKind.SHORTAGE, ()))
    clear = short & named_one_by_one
    over_quota = frozenset(of_kind.get(ErrorKind.QUOTA, ()))
    return _Findings(
        shared=clear if body.is_plain else frozenset(),
        as_asked=frozenset() if body.is_plain else clear,
        unnamed=short - clear,
        unsupported=frozenset(unsupported),
        over_quota=over_quota,
        named_quota=over_quota & named_one_by_one,
        refused=frozenset(of_kind.get(ErrorKind.REFUSAL, ())),
        refusals=tuple(refusals),
        subnets=frozenset(subnets),
        transient=ErrorKind.TRANSIENT in of_kind,
    )


def _transient(error: FleetError, *, new_template: bool) -> bool:
    return kind_of(error.code) == ErrorKind.TRANSIENT or (
        new_template and is_template_not_yet_visible(error)
    )


def without_offerings(
    options: Sequence[LaunchOption], offerings: frozenset[OfferingKey]
) -> tuple[LaunchOption, ...]:
    """Return the options of all other offerings."""
    return tuple(option for option in options if option.offering not in offerings)
