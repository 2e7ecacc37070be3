"""What to ask for next when EC2 has none: few calls, and far from what was refused.

EC2 mostly names one offering in its refusal, however many were asked for
(https://github.com/kubernetes-sigs/karpenter/issues/3198, 2026-08: 88 % of 1,381 failures). Asking
again without that one alone means a call for each offering that is out.
"""

from collections.abc import Iterable, Sequence

from shared.model.fleet_errors import refused_offerings
from shared.model.instance_types import OfferingKey
from shared.model.launch import FleetAnswer, LaunchOption
from shared.ports import ClusterPorts
from shared.services.launch_body import LaunchAttempt


class Shortage:
    """What EC2 had none of in one invocation, and how often in a row it gave nothing.

    Attributes:
        failed_attempts: Calls that launched nothing.
        refused: Offerings named or suspected.
    """

    def __init__(self, ports: ClusterPorts, max_empty: int) -> None:
        """Start with nothing known.

        Args:
            max_empty: So many calls in a row of one launch may come to nothing.
        """
        self._ports = ports
        self._max_empty = max_empty
        self._empty: dict[tuple[str, int], int] = {}
        self._asked: dict[tuple[str, int], frozenset[OfferingKey]] = {}
        self.failed_attempts = 0
        self.refused: frozenset[OfferingKey] = frozenset()

    def remember(
        self, refused: Iterable[OfferingKey], suspects: Iterable[OfferingKey] = ()
    ) -> None:
        """Remember offerings that are out, here and in the ledger, for all clusters."""
        now, named, suspected = self._ports.clock.now(), set(refused), set(suspects)
        self.refused |= named | suspected
        self._ports.ledger.mark_unavailable(sorted(named), now)
        self._ports.ledger.mark_unavailable(sorted(suspected), now, certain=False)

    def without_image(self, attempt: LaunchAttempt, answer: FleetAnswer) -> None:
        """Count a call of which something came to nothing for want of a machine image."""
        self.failed_attempts += 1
        self.remember(refused_offerings(answer, attempt.asked))

    def learn(self, attempt: LaunchAttempt, answer: FleetAnswer) -> frozenset[OfferingKey]:
        """Remember what EC2 had none of; return what this launch does not ask for any more."""
        asked = attempt.asked
        refused = refused_offerings(answer, asked)
        if answer.instances:
            # Fewer than asked for and no reason: none of these is asked for again at once.
            suspects = frozenset() if refused else asked
            self.remember(refused, suspects)
            return refused | suspects
        key = (attempt.plan_id, attempt.group)
        everything = asked | {one.offering for one in attempt.later}
        self._asked[key] = self._asked.get(key, frozenset()) | everything
        dropped = self._after_nothing(attempt, refused)
        over = everything <= dropped
        self.remember(refused, self._asked[key] - refused - self.refused if over else ())
        return dropped

    def left_of(
        self, options: Sequence[LaunchOption], later: Sequence[LaunchOption]
    ) -> tuple[tuple[LaunchOption, ...], tuple[LaunchOption, ...]]:
        """Return the options, and the later ones, of which nothing is known to be out."""
        now, then = without(options, self.refused), without(later, self.refused)
        return (now, then) if now else (then, ())

    def _after_nothing(
        self, attempt: LaunchAttempt, refused: frozenset[OfferingKey]
    ) -> frozenset[OfferingKey]:
        """Return what an attempt that came to nothing is not to ask for again.

        First the types that were named, in every zone. Then, if there is another capacity type,
        all of this one, else the zones that were named, too. Then everything: it is over for now.
        """
        self.failed_attempts += 1
        key = (attempt.plan_id, attempt.group)
        self._empty[key] = self._empty.get(key, 0) + 1
        asked = attempt.asked
        if self._empty[key] >= self._max_empty:
            return asked | {one.offering for one in attempt.later}
        if not refused or refused >= asked:
            return asked
        types = {one.instance_type for one in refused}
        zones = {one.zone for one in refused}
        alike = frozenset(one for one in asked if one.instance_type in types)
        if self._empty[key] == 1:
            return alike if asked - alike else refused
        if attempt.later:
            return asked
        near = alike | {one for one in asked if one.zone in zones}
        return next(one for one in (near, alike, refused) if asked - one)


def without(
    options: Sequence[LaunchOption], offerings: frozenset[OfferingKey]
) -> tuple[LaunchOption, ...]:
    """Return the options of other offerings."""
    return tuple(one for one in options if one.offering not in offerings)
