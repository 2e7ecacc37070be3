"""Streams and consolidations: what arrives is placed, and what leaves costs nothing."""

import random
from dataclasses import replace

import pytest

from shared.model.plan import Plan
from tests.peers.answers import Change, Consolidated
from tests.peers.cases import FAMILIES
from tests.peers.judge import judge
from tests.peers.leaving import half, without_leaving
from tests.peers.sides import ask_dovetail, consolidate_dovetail, stream_dovetail
from tests.peers.standing import Standing

SMALL = FAMILIES["kmix"](60, 1)


def test_all_pods_of_a_stream_are_placed_and_what_is_launched_stays() -> None:
    arrivals = [pod for workload in SMALL.workloads for pod in workload.pods]
    random.Random(1).shuffle(arrivals)
    (at_once,) = ask_dovetail(SMALL)
    streamed = stream_dovetail(SMALL, arrivals, 20)
    assert judge(SMALL, streamed) == {}
    assert streamed.price_micros_per_hour >= at_once.price_micros_per_hour


def test_half_of_the_pods_leave_and_fewer_machines_are_paid_for() -> None:
    (plan,) = ask_dovetail(SMALL)
    smaller, names = half(SMALL, 1)
    assert smaller.pods == SMALL.pods // 2
    standing = without_leaving(plan, names)
    before = replace(plan, machines=standing)
    assert judge(smaller, before) == {}
    done = consolidate_dovetail(smaller, standing)
    assert judge(smaller, done.answer) == {}
    assert done.answer.price_micros_per_hour < before.price_micros_per_hour
    assert done.changes[-1].price_micros_per_hour == done.answer.price_micros_per_hour


def test_no_node_is_terminated_with_a_pod_on_it() -> None:
    standing = Standing(SMALL)
    (plan,) = ask_dovetail(SMALL)
    standing.start(plan.machines[0])
    (node,) = standing.snapshot().nodes
    with pytest.raises(AssertionError, match="on terminated nodes"):
        standing.carry_out(Plan(), (node.name,))


def test_moves_are_counted_until_a_price_is_reached() -> None:
    steps = ((5, 90), (3, 80), (9, 70))
    changes = tuple(Change(moved=moved, price_micros_per_hour=price) for moved, price in steps)
    done = Consolidated(answer=ask_dovetail(SMALL)[0], changes=changes)
    assert done.moved == 17
    assert [done.moved_until(price) for price in (95, 80, 79, 69)] == [5, 8, 17, None]
