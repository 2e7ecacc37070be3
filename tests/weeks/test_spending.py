"""What the money of a trace goes for."""

import dataclasses

from shared.model.resources import Resources
from shared.model.values import replace
from tests.builders import node, pod
from tests.weeks.spending import Life, Spending, spending_of

_HOUR = 3_600_000_000


def test_each_hour_of_an_instance_counts_once_and_for_what_it_was() -> None:
    starting = node("n", ready=False, allocatable=Resources.of(cpu=4000, memory=8))
    ready = replace(starting, ready=True)
    half = pod("a", node_name="n", cpu=2000, memory=1)
    memory = pod("b", node_name="n", cpu=1000, memory=6)
    nodes = [(0, None, starting), (1 * _HOUR, starting, ready)]
    pods = [
        (2 * _HOUR, replace(half, node_name=""), half),
        (4 * _HOUR, None, memory),
        (5 * _HOUR, half, replace(half, phase="Succeeded")),
        (6 * _HOUR, memory, None),
    ]
    lives = [Life("n", 1_000_000, 0, 9 * _HOUR), Life("never", 1_000_000, 0, _HOUR)]
    spent = spending_of(lives, nodes, pods)
    # Half of it for two hours, 7/8 and 6/8 of the memory for one hour each.
    wanted = Spending(booting=2, waiting=1, used=2.625, unused=1.375, left=3)
    assert dataclasses.astuple(spent) == dataclasses.astuple(wanted)
