"""What goes wrong on purpose, and what must not come of it."""

import os
import signal
import time
from typing import Any

import pytest

from infra.local.demo.fault_injection import FaultInjection
from infra.local.demo.problem import Problem


class Ec2:
    """Shows other machines at each look."""

    def __init__(self, *looks: tuple[str, ...]) -> None:
        self._looks = list(looks)
        self.terminated: list[str] = []

    def terminate_instances(self, InstanceIds: list[str]) -> None:  # noqa: N803 - EC2's own name
        self.terminated += InstanceIds

    def get_paginator(self, _: str) -> Any:
        return self

    def paginate(self, **_: Any) -> list[dict[str, Any]]:
        found = [{"InstanceId": value} for value in self._looks.pop(0)]
        return [{"Reservations": [{"Instances": found}]}]


def away(ec2: Ec2, sent: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    monkeypatch.setattr(time, "sleep", lambda _: None)
    FaultInjection(lambda *_: None, lambda _: ec2, lambda: 7).api_server_away(25)


def test_api_server_stops_and_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[int, int]] = []
    away(Ec2(("i-1",), ("i-1",)), sent, monkeypatch)
    assert sent == [(7, signal.SIGSTOP), (7, signal.SIGCONT)]


def test_a_machine_that_ends_meanwhile_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[int, int]] = []
    with pytest.raises(Problem, match="touched while the API server was away: i-2"):
        away(Ec2(("i-1", "i-2"), ("i-1",)), sent, monkeypatch)
    assert sent[-1] == (7, signal.SIGCONT)


def test_an_api_server_that_is_not_ours_is_not_frozen() -> None:
    with pytest.raises(Problem, match="cannot be frozen"):
        FaultInjection(lambda *_: None, lambda _: None).api_server_away(1)


def test_machine_is_terminated_without_an_event() -> None:
    ec2 = Ec2()
    FaultInjection(lambda *_: pytest.fail("told"), lambda _: ec2).terminate("i-1")
    assert ec2.terminated == ["i-1"]
