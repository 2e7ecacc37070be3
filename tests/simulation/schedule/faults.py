"""What can go wrong with a call to the outside, and which calls of a schedule are hit."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from tests.simulation.schedule.seeded_random import chosen, draw, whole


class Action(StrEnum):
    """What happens to one call."""

    CRASH_BEFORE = "crash before"
    CRASH_AFTER = "crash after"
    TIMEOUT_BEFORE = "time-out, not carried out"
    TIMEOUT_AFTER = "time-out, carried out"
    THROTTLE = "throttled"
    THROTTLE_AFTER = "throttled although carried out"
    ERROR = "error, not carried out"
    ERROR_AFTER = "error, carried out"
    CONFLICT = "conflict, not carried out"
    ZOMBIE_BEFORE = "sleeps past its lease, then calls"
    ZOMBIE_AFTER = "calls, then sleeps past its lease"
    SLOW = "answers only just before its time-out"
    # What the world does by itself:
    LOST = "lost"
    DOUBLED = "delivered twice"
    DELAYED = "late"
    DIES = "ends by itself"
    NEVER = "never comes"
    LATE = "comes too late"
    FIRST = "comes before its Node"
    REJECTS = "rejects a pod"
    SMALLER = "has less room than was said"
    PARTIAL = "fewer than asked for, without a reason"
    SHORT = "no capacity for some minutes"
    REFUSED = "is refused launches for a reason of its own"
    INTERRUPTED = "is interrupted"
    DELETED = "its Node is deleted by a user"
    STOPPED = "is stopped by a user"
    DEAD = "its kubelet stops, for ever"
    MUTE = "its kubelet stops for a while"
    UNKNOWN = "is not known to the cloud controller for some seconds"
    OUTAGE = "does not answer for a while"
    MINUTES = "does not answer for minutes"
    SLOW_MINUTES = "takes seconds for each call, for minutes"
    SKEWED = "has a clock that is minutes wrong"
    HUNDREDFOLD = "delivered a hundred times"
    GROWS = "gets another pod at this moment"
    RELEASED = "loses its Node to a user who removes the finalizer"
    STRANGER = "is of somebody else, behind a Node that looks like Dovetail's"
    TAINTED = "gets a taint of an agent that stays"
    SILENT = "does not name every image"
    DEREGISTERED = "is deregistered, and another takes its place"
    TORN = "is torn"
    OTHER_VERSION = "is of another version"
    FOREIGN = "is of another cluster"
    DRIFTED = "has drifted"
    LIES = "writes on its Node what is not so"
    THROTTLED_BY_OTHERS = "is throttled: others spend the account's tokens"


CRASHES: Final = {Action.CRASH_BEFORE: "before", Action.CRASH_AFTER: "after"}
# The sweep over crash points: kind of failure, then not carried out or carried out.
SWEPT: Final = (
    ("crash", Action.CRASH_BEFORE, Action.CRASH_AFTER),
    ("time-out", Action.TIMEOUT_BEFORE, Action.TIMEOUT_AFTER),
    ("throttle", Action.THROTTLE, Action.THROTTLE_AFTER),
    ("error", Action.ERROR, Action.ERROR_AFTER),
)
_RANDOM: Final = (
    *(Action.CRASH_BEFORE,) * 3,
    *(Action.CRASH_AFTER,) * 3,
    Action.TIMEOUT_BEFORE,
    *(Action.TIMEOUT_AFTER,) * 2,
    Action.THROTTLE,
    Action.ERROR,
    Action.ERROR_AFTER,
    Action.CONFLICT,
    *(Action.ZOMBIE_BEFORE,) * 2,
    Action.ZOMBIE_AFTER,
    *(Action.SLOW,) * 2,
)


class Site(NamedTuple):
    """A place where the outside is called: kind of function, port and method."""

    function: str
    port: str
    method: str

    def __str__(self) -> str:
        return f"{self.function}: {self.port}.{self.method}"


class CallFault(NamedTuple):
    """One call that is hit: the n-th of its site in a schedule, from 1."""

    site: Site
    occurrence: int
    action: Action

    def __str__(self) -> str:
        return f"{self.site} (call {self.occurrence}): {self.action}"


@dataclass
class CallFaults:
    """Which calls are hit: some of each schedule's sites, or exactly those given.

    Attributes:
        share: Part of the sites a random schedule hits.
        fired: Those that came to pass, in order.
        counts: Calls so far by site.
        until: Microsecond from which no call is hit any more.
        also: One more than the seed would choose.
        elsewhere: What the world may do wrong by itself, by the first word of its sites; None
            for everything.
    """

    seed: int
    share: float = 1 / 12
    exact: frozenset[CallFault] | None = None
    until: int = 0
    also: CallFault | None = None
    elsewhere: frozenset[str] | None = None
    fired: list[CallFault] = field(default_factory=list)
    counts: dict[Site, int] = field(default_factory=dict)
    _plans: dict[Site, dict[int, Action]] = field(default_factory=dict)
    _names: dict[Site, str] = field(default_factory=dict)

    @classmethod
    def only(cls, faults: Iterable[CallFault], until: int) -> "CallFaults":
        """Return a plan that hits these calls and no other."""
        return cls(seed=0, exact=frozenset(faults), until=until)

    def of(self, site: Site, time: int) -> Action | None:
        """Count a call of a site; return what happens to it."""
        if time >= self.until:
            return None
        number = self.counts.get(site, 0) + 1
        self.counts[site] = number
        plan = self._plans.get(site)
        if plan is None:
            plan = self._plans[site] = self._plan(site)
        action = plan.get(number) if plan else None
        if action is None:
            return None
        self.fired.append(CallFault(site, number, action))
        return action

    def event(self, site: Site, time: int, *chances: tuple[Action, float]) -> Action | None:
        """Count something the world does; return what goes wrong with it.

        Args:
            chances: What can, and how often; together at most 1.
        """
        number = self.counts.get(site, 0) + 1
        self.counts[site] = number
        if time >= self.until:
            return None
        action = self._event(site, number, chances)
        if action is not None:
            self.fired.append(CallFault(site, number, action))
        return action

    def _event(
        self, site: Site, number: int, chances: tuple[tuple[Action, float], ...]
    ) -> Action | None:
        if self.exact is not None:
            plan = self._plans.get(site)
            if plan is None:
                plan = self._plans[site] = self._plan(site)
            return plan.get(number)
        if self.elsewhere is not None and site.function not in self.elsewhere:
            return None
        name = self._names.get(site)
        if name is None:
            name = self._names[site] = f"event/{site}"
        left = draw(self.seed, name, number)
        for action, chance in chances:
            left -= chance
            if left < 0:
                return action
        return None

    def _plan(self, site: Site) -> dict[int, Action]:
        if self.exact is not None:
            return {entry.occurrence: entry.action for entry in self.exact if entry.site == site}
        if self.also is not None and self.also.site == site:
            return {self.also.occurrence: self.also.action}
        if draw(self.seed, "hit", site) >= self.share:
            return {}
        first = whole(1, chosen((1, 2, 4, 12), self.seed, "span", site), self.seed, "first", site)
        action = chosen(_RANDOM, self.seed, "action", site)
        plan = {first: action}
        if draw(self.seed, "twice", site) < 0.3:
            plan[first + 1] = chosen(_RANDOM, self.seed, "second", site)
        return plan
