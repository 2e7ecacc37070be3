"""Few lists of options, each of which is one call to EC2."""

from dataclasses import replace
from typing import Any

from shared.model import labels as keys
from shared.model.plan import Plan
from shared.model.resources import Resources
from shared.planning.decide import decide
from tests import builders as make
from tests.builders import needs, pod, provisioner, snapshot
from tests.unit.planning.asking import QUICK, A, B


def lists(plan: Plan) -> int:
    return len({(node.options, node.fallback) for node in plan.nodes})


def sizes() -> Any:
    """Return pods that must share a host in pairs: placed one by one, beside the packer."""
    found = []
    for name, cpu in (("s", 600), ("m", 1500), ("l", 3500)):
        near = (make.affinity(selector=make.selector(app=name)),)
        found += [pod(f"{name}{n}", cpu=cpu, labels={"app": name}, affinity=near) for n in range(2)]
    return found


def test_lists_beyond_the_number_that_is_wanted_are_joined() -> None:
    world = snapshot(*sizes())
    free = decide(world, replace(QUICK, max_launch_groups=0))
    few = decide(world, replace(QUICK, max_launch_groups=1))
    assert lists(free) == 3
    assert lists(few) == 1
    assert len(few.order) == 6
    assert few.cost_micros_per_hour > free.cost_micros_per_hour


def test_the_cheapest_change_comes_first() -> None:
    world = snapshot(*sizes())
    few = decide(world, replace(QUICK, max_launch_groups=2))
    assert lists(few) == 2
    assert len({node.options[0].offering.instance_type for node in few.nodes}) == 2


def test_zones_that_pods_ask_for_stay_apart() -> None:
    tied = [pod(f"p{n}", node_selector=needs(keys.ZONE, "In", z)) for n, z in enumerate((A, B))]
    plan = decide(snapshot(*tied), replace(QUICK, max_launch_groups=1))
    assert lists(plan) == 2
    assert len(plan.order) == 2


def test_a_limit_leaves_no_room_for_larger_machines() -> None:
    limited = provisioner(limits=Resources((("cpu", 14_000),)))
    plan = decide(snapshot(*sizes(), provisioners=(limited,)), replace(QUICK, max_launch_groups=1))
    assert lists(plan) > 1
    assert sum(node.options[-1].capacity["cpu"] for node in plan.nodes) <= 14_000
