"""Instances and processes are seen as they were."""

import os
from typing import Any

from infra.local.cluster_simulator.client import Server
from tests.whole.observing import Observer

RUNNING = {"InstanceId": "i-0", "State": {"Name": "running"}, "PrivateDnsName": "node-0"}
ENDED = {"InstanceId": "i-0", "State": {"Name": "shutting-down"}, "PrivateDnsName": ""}


class OneByOne:
    """An EC2 that shows other instances each time it is asked."""

    def __init__(self, *shown: list[dict[str, Any]]) -> None:
        self._shown = list(shown)

    def get_paginator(self, _: str) -> Any:
        return self

    def paginate(self) -> Any:
        return [{"Reservations": [{"Instances": self._shown.pop(0)}]}]


def seen_after(*shown: list[dict[str, Any]]) -> Observer:
    pids = {"mine": [os.getpid(), 2**22]}
    observer = Observer(Server(url=""), OneByOne(*shown), lambda: pids)
    for _ in shown:
        observer.look()
    return observer


def test_an_instance_keeps_its_name_when_it_ends_and_ends_once() -> None:
    assert seen_after([RUNNING]).alive == ["i-0"]
    for shown in ([ENDED], []):
        observer = seen_after([RUNNING], shown)
        assert observer.alive == []
        assert observer.instances["i-0"]["PrivateDnsName"] == "node-0"
        first = observer.ended["i-0"]
        observer._ec2 = OneByOne([ENDED])
        observer.look()
        assert observer.ended["i-0"] == first


def test_an_instance_that_ended_before_is_not_counted() -> None:
    assert seen_after([ENDED]).instances == {}


def test_time_and_memory_of_processes_are_added_up() -> None:
    observer = seen_after([], [])
    assert observer.cpu_seconds()["mine"] > 0
    assert len(observer.memory["mine"]) == 2
    assert min(observer.memory["mine"]) > 1
