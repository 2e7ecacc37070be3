"""Spot pools that EC2 passes over are remembered for a while, and consolidation leaves them out."""

from typing import Any

from functions.cli.plan.recorded_decision import load_decision
from shared.disruption.settings import DisruptionSettings
from shared.model import labels as keys
from shared.model.ec2.instance_types import OfferingKey
from shared.model.ec2.launches import FleetAnswer, FleetError, FleetInstance, LaunchOption
from shared.model.values import replace
from shared.nodes.launch.refusals.offering_facts import save_skipped_spot_pools, skipped_spot_pools
from tests.builders import GIB, ZONES, affinity, needs, node_of, offering, option, pod, provisioner
from tests.unit.nodes.launch.launches import SPOT
from tests.unit.nodes.leave.replacements import HOUR
from tests.unit.worlds import MINUTE, NAME, World

CHEAP, MIDDLE, DEAR = (offering("m5.large", zone, SPOT) for zone in ZONES)
ON_DEMAND = tuple(
    replace(offering_key, capacity_type=offering().capacity_type)
    for offering_key in (CHEAP, MIDDLE)
)
_SPOT_ONLY = needs(keys.CAPACITY_TYPE, "In", "spot").merge(needs(keys.ARCH, "In", "amd64"))


def asked(*offerings: OfferingKey) -> list[LaunchOption]:
    return [option(n, offering=offering_key) for n, offering_key in enumerate(offerings, 1)]


def noted(world: World, *taken: OfferingKey, refused: tuple[OfferingKey, ...] = ()) -> Any:
    """Note an answer to what asked for all three pools; return what is known after it."""
    instances = tuple(
        FleetInstance(instance_id=f"i-{n}", offering=offering_key)
        for n, offering_key in enumerate(taken)
    )
    errors = tuple(
        FleetError(code="InsufficientInstanceCapacity", message="", offering=offering_key)
        for offering_key in refused
    )
    answer = FleetAnswer(fleet_id="f", instances=instances, errors=errors)
    save_skipped_spot_pools(world.ports, asked(CHEAP, MIDDLE, DEAR), answer)
    return skipped_spot_pools(world.ports, world.clock.now())


def version(world: World) -> int:
    return world.ledger.note(NAME, "passed-over").version


def test_cheaper_pools_that_were_offered_and_not_taken_are_remembered_for_half_an_hour() -> None:
    world = World()
    assert noted(world, DEAR) == {CHEAP, MIDDLE}
    world.advance(29 * MINUTE)
    assert skipped_spot_pools(world.ports, world.clock.now()) == {CHEAP, MIDDLE}
    world.advance(MINUTE)
    assert skipped_spot_pools(world.ports, world.clock.now()) == frozenset()


def test_the_cheapest_pool_an_empty_answer_and_machines_on_demand_teach_nothing() -> None:
    world = World()
    assert noted(world, CHEAP) == frozenset()
    assert noted(world) == frozenset()
    taken = (FleetInstance(instance_id="i-1", offering=ON_DEMAND[1]),)
    save_skipped_spot_pools(
        world.ports, asked(*ON_DEMAND), FleetAnswer(fleet_id="f", instances=taken)
    )
    assert version(world) == 0


def test_empty_pool_was_not_skipped() -> None:
    assert noted(World(), DEAR, refused=(CHEAP,)) == {MIDDLE}


def test_a_pool_that_gives_a_machine_again_is_remembered_no_longer() -> None:
    world = World()
    noted(world, DEAR)
    assert noted(world, MIDDLE) == {CHEAP}
    assert noted(world, CHEAP) == frozenset()


def test_what_was_seen_a_moment_ago_is_not_written_again() -> None:
    world = World()
    noted(world, DEAR)
    written = version(world)
    world.advance(10 * MINUTE)
    noted(world, DEAR)
    assert version(world) == written
    world.advance(10 * MINUTE)
    noted(world, DEAR)
    assert version(world) > written
    world.advance(29 * MINUTE)
    assert skipped_spot_pools(world.ports, world.clock.now()) == {CHEAP, MIDDLE}


def half_empty_spot() -> World:
    """Return a cluster whose one big spot machine holds what any smaller one could."""
    big = node_of("big", "m5.2xlarge")
    world = World(
        provisioner(requirements=_SPOT_ONLY, consolidation=True),
        replace(big, labels={**big.labels, keys.CAPACITY_TYPE: SPOT.value}),
        pod("a", node_name="big"),
        pod("b", node_name="big"),
    )
    world.disruption = DisruptionSettings(spot_types=1)
    world.advance(HOUR)
    return world


def test_consolidation_does_not_count_on_pools_that_ec2_skipped() -> None:
    larges = [offering("m5.large", zone, SPOT) for zone in ZONES]
    other = offering("m5.xlarge", ZONES[0], SPOT)
    for known, expected in ((False, "m5.large"), (True, "m5.xlarge")):
        world = half_empty_spot()
        if known:
            taken = (FleetInstance(instance_id="i-1", offering=other),)
            answer = FleetAnswer(fleet_id="f", instances=taken)
            save_skipped_spot_pools(world.ports, asked(*larges, other), answer)
        assert world.provision(look=True).nodes_disrupted == 1
        assert [instance.offering.instance_type for instance in world.alive] == [expected]
        (document,) = (
            value for key, value in world.decisions.documents.items() if key.endswith(".gz")
        )
        decision = load_decision(document)
        assert decision.is_identical(decision.replay())
        assert decision.plan.nodes[0].options[0].offering.instance_type == expected


def test_pods_that_wait_may_take_any_pool() -> None:
    world = half_empty_spot()
    larges = [offering("m5.large", zone, SPOT) for zone in ZONES]
    taken = (FleetInstance(instance_id="i-1", offering=offering("m5.xlarge", ZONES[0], SPOT)),)
    answer = FleetAnswer(fleet_id="f", instances=taken)
    save_skipped_spot_pools(world.ports, asked(*larges, taken[0].offering), answer)
    world.cluster.add(pod("new", cpu=1800, memory=6 * GIB, anti_affinity=(affinity(),)))
    world.provision()
    assert [instance.offering.instance_type for instance in world.alive] == ["m5.large"]


def test_launch_shows_which_pools_ec2_skipped() -> None:
    world = World(provisioner(requirements=_SPOT_ONLY), pod("new"))
    larges = [offering("m5.large", zone, SPOT) for zone in ZONES]
    world.cloud.prices.update(dict.fromkeys(larges[:2], 10**9))
    world.provision()
    assert [instance.offering for instance in world.alive] == larges[2:]
    assert skipped_spot_pools(world.ports, world.clock.now()) == frozenset(larges[:2])
