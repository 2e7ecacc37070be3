"""What to ask for next when EC2 refuses: few calls, and far from what was refused.

EC2 mostly names one offering in its refusal, however many were asked for
(https://github.com/kubernetes-sigs/karpenter/issues/3198, 2026-08: 88 % of 1,381 failures). Asking
again without that one alone means a call for each offering that is out.

`shared.model.ec2.fleet_errors` decides what a refusal means, and `shared.launching.offering_facts`
which clusters it is true for; what depends on the request is kept here by Provisioner.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from shared.launching.offering_facts import Fact, note, note_quotas, quotas_for_all
from shared.model.ec2.fleet_errors import (
    UNFULFILLABLE,
    ErrorKind,
    is_shared_shortage,
    is_young_template,
    kind_among,
    kind_of,
)
from shared.model.ec2.instance_types import OfferingKey
from shared.model.ec2.launches import FleetAnswer, FleetError, LaunchOption
from shared.model.ec2.quotas import beyond, reached
from shared.ports import ClusterPorts
from shared.snapshot.launch_body import LaunchAttempt, LaunchBody


@dataclass
class Verdict:
    """What EC2 said in one invocation to the launches of one Provisioner.

    Attributes:
        bought: Whether it gave anything.
        unsupported: Offerings that are not to be had as this Provisioner asks for them.
        errors: Every refusal that was named, each once.
        options: Offerings that were refused.
        whole: The refusal of a launch that bought nothing and was refused as a whole.
    """

    bought: bool = False
    unsupported: set[OfferingKey] = field(default_factory=set)
    errors: dict[FleetError, None] = field(default_factory=dict)
    options: set[OfferingKey] = field(default_factory=set)
    whole: FleetError | None = None


@dataclass
class _Launch:
    """How one launch has gone so far: its attempts together."""

    empty: int = 0
    bought: bool = False
    asked: frozenset[OfferingKey] = frozenset()
    kinds: set[ErrorKind] = field(default_factory=set)
    own: bool = False
    refusal: FleetError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Findings:
    """The errors of one answer, sorted by what they mean.

    Attributes:
        shared: EC2 has no capacity for them, and names them.
        as_asked: The same for a launch template or context of the user's.
        unnamed: EC2 has no capacity, and does not say for which of them.
        unsupported: Not to be had as this cluster asks.
        over_quota: Named together with a quota.
        named_quota: Those of them that EC2 names one by one.
        refused: Refused for what the request says.
        subnets: Without addresses, or gone.
        transient: Whether some may go by themselves.
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
    def short(self) -> frozenset[OfferingKey]:
        """All that EC2 has no capacity for."""
        return self.shared | self.as_asked | self.unnamed

    @property
    def kinds(self) -> set[ErrorKind]:
        """The kinds of errors there are, but for transient ones."""
        found = {
            ErrorKind.SHORTAGE: self.short or self.unsupported,
            ErrorKind.QUOTA: self.over_quota,
            ErrorKind.SUBNET: self.subnets,
            ErrorKind.REFUSAL: self.refusals,
        }
        return {kind for kind, some in found.items() if some}


class Shortage:
    """What EC2 refused in one invocation, and how often in a row it gave nothing.

    Attributes:
        failed_attempts: Calls that launched nothing, for want of capacity, quota or addresses.
        refused_attempts: Calls that launched nothing because EC2 refused the request.
        refused: Offerings that are out, named or suspected, for all Provisioners.
        subnets: Left out.
        verdicts: By name of the Provisioner.
    """

    def __init__(self, ports: ClusterPorts, max_empty: int) -> None:
        """Start with nothing known.

        Args:
            max_empty: So many calls in a row of one launch may come to nothing.
        """
        self._ports = ports
        self._max_empty = max_empty
        self._launches: dict[tuple[str, int], _Launch] = {}
        self.failed_attempts = 0
        self.refused_attempts = 0
        self.refused: frozenset[OfferingKey] = frozenset()
        self.subnets: frozenset[str] = frozenset()
        self.verdicts: dict[str, Verdict] = {}
        self._out: dict[str, frozenset[OfferingKey]] = {}

    def settle(self, body: LaunchBody, answer: FleetAnswer) -> None:
        """Remember what EC2 refused in an answer that gave all there was to give."""
        self._note(body.attempt, _sorted(body, answer), bought=bool(answer.instances))

    def without_image(self, body: LaunchBody, answer: FleetAnswer) -> None:
        """Count a call of which something came to nothing for want of a machine image."""
        self.failed_attempts += 1
        self._remember(_sorted(body, answer))

    def is_transient(self, answer: FleetAnswer, *, young: bool) -> bool:
        """Return whether all that an answer lacks may come by itself.

        Args:
            young: Whether a launch template it misses was made just now.
        """
        return bool(answer.errors) and all(
            _transient(error, young=young) for error in answer.errors
        )

    def learn(self, body: LaunchBody, answer: FleetAnswer, *, anew: bool) -> frozenset[OfferingKey]:
        """Record what EC2 refused; return the offerings that this launch no longer requests.

        Args:
            anew: Whether this attempt cannot have been requested before: EC2 may answer a request
                that it knows with a part of the instances that it launched then.
        """
        attempt, found = body.attempt, _sorted(body, answer)
        launch = self._note(attempt, found, bought=bool(answer.instances))
        named = found.short | found.unsupported | found.over_quota | found.refused
        named |= attempt.asked & self.refused
        if answer.instances:
            # Fewer than asked for and no reason: none of these is asked for again at once.
            suspects = attempt.asked if anew and not answer.errors else frozenset()
            self._suspect(suspects)
            return named | suspects
        everything = attempt.asked | {launch_option.offering for launch_option in attempt.later}
        launch.asked |= everything
        launch.empty += 1
        if found.kinds == {ErrorKind.REFUSAL}:
            self.refused_attempts += 1
        else:
            self.failed_attempts += 1
        dropped = self._after_nothing(launch, attempt, named, found)
        if everything <= dropped:
            self._over(launch, attempt)
        return dropped

    def left_of(
        self, provisioner: str, options: Sequence[LaunchOption], later: Sequence[LaunchOption]
    ) -> tuple[tuple[LaunchOption, ...], tuple[LaunchOption, ...]]:
        """Return the options, and the later ones, of which nothing is known to be out."""
        verdict = self.verdicts.get(provisioner, Verdict())
        out = self.refused | self._out.get(provisioner, frozenset())
        out |= verdict.options | verdict.unsupported
        now, then = without(options, out), without(later, out)
        return (now, then) if now else (then, ())

    def judged(self) -> None:
        """Clear the verdicts once they were acted on; the options they refuse stay excluded."""
        for name, verdict in self.verdicts.items():
            known = self._out.get(name, frozenset())
            self._out[name] = known | verdict.options | verdict.unsupported
        self.verdicts = {}

    def _note(self, attempt: LaunchAttempt, found: _Findings, *, bought: bool) -> _Launch:
        """Remember what was found; return how the launch has gone so far."""
        self._remember(found)
        verdict = self.verdicts.setdefault(attempt.provisioner, Verdict())
        verdict.bought |= bought
        verdict.unsupported |= found.unsupported
        verdict.options |= found.refused
        verdict.errors |= dict.fromkeys(found.refusals)
        launch = self._launches.setdefault((attempt.plan_id, attempt.group), _Launch())
        launch.bought |= bought
        launch.kinds |= found.kinds
        launch.own |= bool(found.unsupported)
        launch.refusal = next(iter(found.refusals), launch.refusal)
        return launch

    def _remember(self, found: _Findings) -> None:
        """Note what EC2 has no capacity for and what a quota leaves no room for."""
        types = self._ports.catalog.instance_types()
        self.refused |= found.short | beyond(reached(found.over_quota, types), types)
        self.subnets |= found.subnets
        note(self._ports, Fact.NO_CAPACITY, found.shared)
        note(self._ports, Fact.NO_CAPACITY_AS_ASKED, found.as_asked)
        marks = quotas_for_all(found.over_quota, found.named_quota, types)
        note_quotas(self._ports, marks)
        vague = found.over_quota - beyond(marks, types)
        note(self._ports, Fact.NOTHING_LAUNCHED, found.unnamed | vague)

    def _suspect(self, suspects: frozenset[OfferingKey]) -> None:
        """Note offerings that EC2 gave nothing of, though it did not name them."""
        self.refused |= suspects
        note(self._ports, Fact.NOTHING_LAUNCHED, suspects)

    def _over(self, launch: _Launch, attempt: LaunchAttempt) -> None:
        """Judge a launch of which nothing is asked for any more.

        What was not named is suspected of the only reason there was; with several reasons, or one
        that depends on the request, nothing is suspected for other clusters.
        """
        if launch.refusal is None:
            if launch.kinds <= {ErrorKind.SHORTAGE} and not launch.own:
                self._suspect(launch.asked - self.refused)
            return
        verdict = self.verdicts[attempt.provisioner]
        verdict.options |= launch.asked - self.refused
        if not launch.bought and launch.kinds == {ErrorKind.REFUSAL}:
            verdict.whole = launch.refusal

    def _after_nothing(
        self,
        launch: _Launch,
        attempt: LaunchAttempt,
        named: frozenset[OfferingKey],
        found: _Findings,
    ) -> frozenset[OfferingKey]:
        """Return what an attempt that came to nothing is not to ask for again.

        First the types that were named, in every zone. Then, if there is another capacity type,
        all of this one, else the zones that were named, too. Then everything: it is over for now.
        A subnet that was refused takes no offering with it while its zone has another.
        """
        asked = attempt.asked
        if launch.empty >= self._max_empty:
            return asked | {launch_option.offering for launch_option in attempt.later}
        if not named and (found.subnets or found.transient):
            return frozenset()
        if not named or named >= asked:
            return asked
        types = {offering_key.instance_type for offering_key in named}
        zones = {offering_key.zone for offering_key in named}
        alike = frozenset(
            offering_key for offering_key in asked if offering_key.instance_type in types
        )
        if launch.empty == 1:
            return alike if asked - alike else named
        if attempt.later:
            return asked
        near = alike | {offering_key for offering_key in asked if offering_key.zone in zones}
        return next(entry for entry in (near, alike, named) if asked - entry)


def _sorted(body: LaunchBody, answer: FleetAnswer) -> _Findings:
    """Return what the errors of an answer mean.

    An error that names no offering is about all that was asked for and not launched.
    """
    attempt = body.attempt
    launched = {machine.offering for machine in answer.instances}
    of_kind: dict[ErrorKind, set[OfferingKey]] = {}
    unsupported: set[OfferingKey] = set()
    named_one_by_one: set[OfferingKey] = set()
    refusals: dict[FleetError, None] = {}
    subnets = set()
    codes = {error.code for error in answer.errors}
    for error in answer.errors:
        named = attempt.asked - launched if error.offering is None else {error.offering}
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


def _transient(error: FleetError, *, young: bool) -> bool:
    return kind_of(error.code) == ErrorKind.TRANSIENT or (young and is_young_template(error))


def without(
    options: Sequence[LaunchOption], offerings: frozenset[OfferingKey]
) -> tuple[LaunchOption, ...]:
    """Return the options of other offerings."""
    return tuple(option for option in options if option.offering not in offerings)
