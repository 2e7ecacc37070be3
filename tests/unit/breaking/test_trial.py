"""A trial breaks one thing, watches until the world is whole again, and gives the score."""

from collections.abc import Callable
from typing import Any

import pytest
import urllib3

from infra.local.breaking.faults import Injection
from infra.local.breaking.running_world import RunningWorld
from infra.local.breaking.scoreboard import Score, Verdict
from infra.local.breaking.trial import Hands, Trial
from infra.local.demo.problem import Problem
from tests.unit.breaking.worlds import running
from tests.unit.demo.readings import instance, node, pod

Moment = tuple[list[Any], list[Any], list[Any], int]
"""Pods, nodes, instances, and how often something was refused so far."""

WHOLE: Moment = ([pod("a", node="n", phase="Running")], [node("n")], [instance("n")], 0)
SHORT: Moment = ([pod("a"), pod("b")], [], [], 1)
REPAIRED: Moment = (*WHOLE[:3], 1)


class Played:
    """A world of which each look shows the next moment, the last one for ever; a second a look."""

    def __init__(self, *moments: Moment) -> None:
        self._moments = list(moments)
        self.at = 0.0
        self.said: list[str] = []
        self.silent = False

    @property
    def world(self) -> RunningWorld:
        return running(self)

    @property
    def hands(self) -> Hands:
        return Hands(say=self.said.append, clock=lambda: self.at, sleep=self.sleep)

    def sleep(self, seconds: float) -> None:
        self.at += seconds
        if len(self._moments) > 1:
            self._moments.pop(0)

    def control(self, verb: str) -> Any:
        assert verb == "harm"
        count = self._moments[0][3]
        return {"harm": [{"kind": "refusal", "struck": "x", "count": count}] if count else []}

    def get_paginator(self, _: str) -> Any:
        return self

    def paginate(self) -> Any:
        if self.silent:
            raise urllib3.exceptions.HTTPError
        return [{"Reservations": [{"Instances": self._moments[0][2]}]}]

    def items(self, path: str) -> list[Any]:
        pods, nodes, *_ = self._moments[0]
        return pods if path.endswith("pods") else nodes


def score(played: Played, injection: Injection, within_seconds: float = 100.0) -> Score:
    return Trial(played.world, "fault", played.hands).run(lambda: injection, within_seconds)


def test_what_struck_and_was_repaired_is_survived_with_the_time_since_the_blow() -> None:
    played = Played(WHOLE, SHORT, SHORT, SHORT, REPAIRED)
    given = score(played, Injection(told="done", kind="refusal"))
    assert given == Score(
        fault="fault",
        told="done",
        verdict=Verdict.SURVIVED,
        seconds=3.0,
        most_waiting=2,
        waiting=0,
    )
    assert played.said == [
        "before: 0 pods wait, 1 instance",
        "   0 s: 0 pods wait, 1 instance",
        "   1 s: it struck",
        "   1 s: 2 pods wait, 0 instances",
        "   4 s: 0 pods wait, 1 instance",
    ]


def test_what_lasts_is_not_over_before() -> None:
    given = score(Played(WHOLE, REPAIRED), Injection(told="done", kind="refusal", lasts_seconds=30))
    assert (given.verdict, given.seconds) == (Verdict.SURVIVED, 29.0)
    assert given.told == "done, refused once"


def test_a_fault_that_needs_no_sign_struck_when_it_began() -> None:
    gone = frozenset({"i-m"})
    moments: list[Moment] = [([], [node("m")], [instance("m")], 0)] * 3 + [([], [], [], 0)]
    given = score(
        Played(*moments), Injection(told="", over=lambda seen: not gone & seen.instance_ids)
    )
    assert (given.verdict, given.seconds) == (Verdict.SURVIVED, 3.0)


def test_pods_that_wait_for_too_long_are_not_survived() -> None:
    given = score(Played(WHOLE, SHORT), Injection(told="done", kind="refusal"), 20)
    assert (given.verdict, given.waiting, given.seconds) == (Verdict.NOT_YET, 2, 20.0)


@pytest.mark.parametrize(("lasts", "passed"), [(0.0, 101.0), (40.0, 40.0)])
def test_what_never_struck_is_not_tested(lasts: float, passed: float) -> None:
    played = Played(WHOLE)
    injection = Injection(told="done", kind="refusal", lasts_seconds=lasts, untested="scale up")
    given = score(played, injection)
    assert (given.verdict, given.seconds) == (Verdict.UNTESTED, passed)
    assert played.said[-1] == "not tested: scale up"


def test_a_world_that_is_silent_for_a_minute_has_ended() -> None:
    played = Played(WHOLE)
    played.silent = True
    with pytest.raises(Problem, match=r"does not answer: has `dovetail up` ended\?"):
        score(played, Injection(told=""))
    assert played.at == 61.0


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda: (WHOLE[0], [node("n", ready=False)], WHOLE[2], 0), "1 node not Ready"),
        (lambda: (WHOLE[0], [], WHOLE[2], 0), "1 not matched between nodes and instances"),
        (lambda: (WHOLE[0], WHOLE[1], [instance("n", "terminated")], 0), "1 not matched"),
        (lambda: ([pod("a")], WHOLE[1], WHOLE[2], 0), "1 pod waits"),
    ],
)
def test_a_world_is_whole_when_pods_run_on_ready_nodes_and_each_machine_is_one(
    change: Callable[[], Moment], told: str
) -> None:
    played = Played(change())
    assert score(played, Injection(told=""), 2).verdict is Verdict.NOT_YET
    assert told in played.said[0]


def test_pods_that_ended_or_are_being_deleted_do_not_wait() -> None:
    going = pod("b")
    going["metadata"]["deletionTimestamp"] = "2026-11-25T12:00:00Z"
    played = Played(([pod("a", phase="Succeeded"), going], *WHOLE[1:]))
    assert score(played, Injection(told="")).verdict is Verdict.SURVIVED
