"""Few lists of options, each of which is one call to EC2."""

from typing import Any

from shared.model import labels as keys
from shared.model.plan import Plan
from shared.model.resources import Resources
from shared.model.values import replace
from shared.planning.decide import decide
from tests import builders as make
from tests.builders import needs, pod, provisioner, snapshot
from tests.unit.planning.asking import QUICK, A, B, agent

MUCH = 10_000


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
    few = decide(world, replace(QUICK, max_launch_groups=1, fewer_groups_permille=MUCH))
    assert lists(free) == 3
    assert lists(few) == 1
    assert len(few.order) == 6
    assert few.cost_micros_per_hour > free.cost_micros_per_hour


def test_lists_are_joined_only_as_far_as_that_costs_little() -> None:
    world = snapshot(*sizes())
    free = decide(world, replace(QUICK, max_launch_groups=0))
    for permille, expected in ((5, 3), (400, 2)):
        few = replace(QUICK, max_launch_groups=1, fewer_groups_permille=permille)
        plan = decide(world, few)
        assert lists(plan) == expected
        assert 1000 * plan.cost_micros_per_hour <= (1000 + permille) * free.cost_micros_per_hour


def test_the_cheapest_change_comes_first() -> None:
    world = snapshot(*sizes())
    few = decide(world, replace(QUICK, max_launch_groups=2, fewer_groups_permille=MUCH))
    assert lists(few) == 2
    assert len({node.options[0].offering.instance_type for node in few.nodes}) == 2


def test_zones_that_pods_ask_for_stay_apart() -> None:
    tied = [pod(f"p{n}", node_selector=needs(keys.ZONE, "In", z)) for n, z in enumerate((A, B))]
    plan = decide(snapshot(*tied), replace(QUICK, max_launch_groups=1, fewer_groups_permille=MUCH))
    assert lists(plan) == 2
    assert len(plan.order) == 2


def test_a_limit_leaves_no_room_for_larger_machines() -> None:
    limited = provisioner(limits=Resources((("cpu", 14_000),)))
    plan = decide(
        snapshot(*sizes(), provisioners=(limited,)),
        replace(QUICK, max_launch_groups=1, fewer_groups_permille=MUCH),
    )
    assert lists(plan) > 1
    assert sum(node.options[-1].capacity["cpu"] for node in plan.nodes) <= 14_000


def test_a_list_whose_neighbour_was_joined_with_one_it_may_not_have_stays() -> None:
    def apart(name: str, count: int, cpu: int, *types: str) -> list[Any]:
        where = needs(keys.INSTANCE_TYPE, "In", *types)
        rules = {"anti_affinity": (make.affinity(selector=make.selector(app=name)),)}
        labels = {"app": name}
        return [
            pod(f"{name}{n}", cpu=cpu, labels=labels, node_selector=where, **rules)
            for n in range(count)
        ]

    types = (
        make.instance_type("m5.large", cpu=2000, price=96_000),
        make.instance_type("m5.xlarge", cpu=4000, price=192_000),
        make.instance_type("m5.2xlarge", cpu=8000, price=384_000),
    )
    small = apart("s", 3, 1500, "m5.large", "m5.xlarge")
    middle = apart("m", 1, 3500, "m5.xlarge", "m5.2xlarge")
    large = apart("l", 1, 7500, "m5.2xlarge")
    # The four nodes cannot be shared: each pod fills more than half of the next larger machine.
    world = snapshot(*small, *middle, *large, instance_types=types)
    plan = decide(world, replace(QUICK, max_launch_groups=1, fewer_groups_permille=MUCH))
    assert lists(plan) == 2
    assert len(plan.order) == 5


def test_joined_nodes_take_the_daemons_of_their_new_options_along() -> None:
    chosen = make.spread(keys.HOSTNAME, selector=make.selector(app="agent"), max_skew=2)
    waiting = [replace(siz, labels={**siz.labels, "of": "all"}) for siz in sizes()]
    counting = pod("c", cpu=100, spreads=(chosen,))
    world = snapshot(*waiting, counting, daemonsets=(agent(),))
    plan = decide(world, replace(QUICK, max_launch_groups=1, fewer_groups_permille=MUCH))
    assert lists(plan) == 1
    assert len(plan.order) == 7
