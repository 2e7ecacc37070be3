"""Instances in time: their states, their addresses, and whether DescribeInstances shows them."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from infra.local.ec2.pools import PoolKey
from infra.local.ec2.refusals import Reason

ENDING: Final = ("shutting-down", "terminated")
FORGET: Final = timedelta(hours=1)
COOLING: Final = timedelta(minutes=1)
"""How long a released address is given to no other instance."""

USER_REASON: Final = Reason(
    "Client.UserInitiatedShutdown", "Client.UserInitiatedShutdown: User initiated shutdown"
)
SPOT_REASON: Final = Reason(
    "Server.SpotInstanceTermination", "Server.SpotInstanceTermination: Instance terminated by Spot"
)

Span = tuple[timedelta, timedelta]
"""From and to, as ages of an instance."""


class Step(NamedTuple):
    """A state that an instance enters at a time."""

    at: datetime
    state: str


@dataclass(slots=True, kw_only=True)
class Settings:
    """How long things take.

    Attributes:
        running: From pending to running, or to the end of an instance that cannot start.
        terminated: From shutting-down to terminated.
        stopped: From stopping to stopped.
        named: Age below which an instance has no private DNS name.
        hidden: Ages in which DescribeInstances does not know an instance; the first usually begins
            at zero, later ones make one that was shown unknown again.
    """

    running: timedelta = timedelta(0)
    terminated: timedelta = timedelta(0)
    stopped: timedelta = timedelta(0)
    named: timedelta = timedelta(0)
    hidden: tuple[Span, ...] = ()


@dataclass(slots=True, kw_only=True, eq=False)
class Instance:
    """One instance.

    Attributes:
        steps: States it entered or will enter, in order of time.
        hidden: As in `Settings`, for this instance alone.
        reason: Why it ends, when it does.
    """

    instance_id: str
    pool: PoolKey
    subnet_id: str
    launched_at: datetime
    private_dns_name: str = ""
    address: str = ""
    vcpus: int = 2
    image_id: str = ""
    tags: dict[str, str] = field(default_factory=dict)
    hidden: tuple[Span, ...] = ()
    steps: list[Step] = field(default_factory=list)
    reason: Reason | None = None

    def state(self, now: datetime) -> str:
        for at, state in reversed(self.steps):
            if at <= now:
                return state
        return "pending"

    def enter(self, now: datetime, *steps: tuple[timedelta, str]) -> list[Step]:
        """Forget the states to come; enter these instead, each so long from now; return them."""
        added = [Step(now + span, state) for span, state in steps]
        self.steps = [*(step for step in self.steps if step.at <= now), *added]
        return added

    def entered(self, state: str) -> datetime | None:
        """Return when it entered, or will enter, a state."""
        return next((step.at for step in self.steps if step.state == state), None)


class Addresses:
    """The addresses of subnets: how many are taken, and which may be given again when."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}
        self._released: dict[str, deque[tuple[datetime, str]]] = {}

    def take(self, subnet_id: str, fresh: Iterator[str], now: datetime) -> str | None:
        """Return a fresh address, else the one that was released first, a minute ago or more."""
        address = next(fresh, None)
        released = self._released.get(subnet_id)
        if address is None and released and released[0][0] + COOLING <= now:
            address = released.popleft()[1]
        if address is not None:
            self._taken[subnet_id] = self._taken.get(subnet_id, 0) + 1
        return address

    def release(self, subnet_id: str, address: str, at: datetime) -> None:
        """Take an address back from an instance that is terminated at a time."""
        self._taken[subnet_id] -= 1
        self._released.setdefault(subnet_id, deque()).append((at, address))

    def cooling(self, subnet_id: str, now: datetime) -> int:
        return sum(at + COOLING > now for at, _ in self._released.get(subnet_id, ()))

    def taken(self, subnet_id: str, now: datetime) -> int:
        return self._taken.get(subnet_id, 0) + self.cooling(subnet_id, now)


def shown(instance: Instance, hidden: Sequence[Span], now: datetime) -> bool:
    """Return whether DescribeInstances shows an instance."""
    age = now - instance.launched_at
    if any(begin <= age < end for begin, end in (*hidden, *instance.hidden)):
        return False
    ended = instance.steps[-1]
    return ended.state != "terminated" or now < ended.at + FORGET
