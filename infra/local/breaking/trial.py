"""One trial: break something, then watch until every pod runs again."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import urllib3
from botocore.exceptions import BotoCoreError, ClientError

from infra.local.aws.clients import instances_of
from infra.local.breaking.condition import Condition, condition_of
from infra.local.breaking.faults import Injection, refused, told_in_the_end
from infra.local.breaking.running_world import RunningWorld
from infra.local.breaking.scoreboard import Score, Verdict
from infra.local.demo.cluster_client import Refused
from infra.local.demo.problem import Problem
from infra.local.harm import Harm, read_harm, since

_LOOK_SECONDS = 1.0
_PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hands:
    """What a trial needs besides the world."""

    say: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What is seen at one moment."""

    at: float
    condition: Condition
    harm: Harm


class Trial:
    """Breaks one thing in a running world and watches what comes of it."""

    def __init__(self, world: RunningWorld, fault: str, hands: Hands) -> None:
        self._world = world
        self._fault = fault
        self._hands = hands
        self._began = hands.clock()
        self._struck: float | None = None
        self._most = 0
        self._said = ""

    def run(self, begin: Callable[[], Injection], within_seconds: float) -> Score:
        """Begin the fault and watch until it is over and every pod runs, or the time is."""
        before = self._look()
        self._hands.say(f"before: {before.condition.told()}")
        self._began = self._hands.clock()
        injection = begin()
        if injection.announced:
            self._hands.say(injection.announced)
        if not injection.kind:
            self._struck = self._began
        while True:
            seen = self._look()
            harm = since(before.harm, seen.harm)
            self._note(seen, felt=bool(refused(harm, injection.kind)))
            if self._is_over(seen, injection):
                return self._score(seen, injection, harm, Verdict.SURVIVED)
            if self._is_hopeless(seen, injection, within_seconds):
                return self._score(seen, injection, harm, Verdict.NOT_YET)
            self._hands.sleep(_LOOK_SECONDS)

    def _note(self, seen: Look, *, felt: bool) -> None:
        if self._struck is None and felt:
            self._struck = seen.at
            self._tell(seen, "it struck")
        self._most = max(self._most, seen.condition.waiting)
        told = seen.condition.told()
        if told != self._said:
            self._said = told
            self._tell(seen, told)

    def _tell(self, seen: Look, what: str) -> None:
        self._hands.say(f"{seen.at - self._began:4.0f} s: {what}")

    def _is_over(self, seen: Look, injection: Injection) -> bool:
        """Return whether it struck and has ended, and the world is whole again."""
        return (
            self._struck is not None
            and seen.at - self._began >= injection.lasts_seconds
            and injection.over(seen.condition)
            and seen.condition.settled
        )

    def _is_hopeless(self, seen: Look, injection: Injection, within_seconds: float) -> bool:
        passed = seen.at - self._began
        missed = self._struck is None and 0 < injection.lasts_seconds <= passed
        return missed or passed > within_seconds

    def _score(self, seen: Look, injection: Injection, harm: Harm, verdict: Verdict) -> Score:
        if self._struck is None:
            verdict = Verdict.UNTESTED
            self._hands.say(f"not tested: {injection.untested}")
        return Score(
            fault=self._fault,
            told=told_in_the_end(injection, harm),
            verdict=verdict,
            seconds=round(seen.at - (self._struck or self._began), 1),
            most_waiting=self._most,
            waiting=seen.condition.waiting,
        )

    def _look(self) -> Look:
        ends = self._hands.clock() + _PATIENCE_SECONDS
        while True:
            try:
                return self._look_once()
            except (Refused, urllib3.exceptions.HTTPError, ClientError, BotoCoreError, OSError):
                if self._hands.clock() > ends:
                    raise Problem("the world does not answer: has `dovetail up` ended?") from None
                self._hands.sleep(_LOOK_SECONDS)

    def _look_once(self) -> Look:
        world = self._world
        instances = instances_of(world.client("ec2"))
        nodes, pods = world.cluster.items("api/v1/nodes"), world.cluster.items("api/v1/pods")
        return Look(
            at=self._hands.clock(),
            condition=condition_of(pods, nodes, instances),
            harm=read_harm(world.control),
        )
