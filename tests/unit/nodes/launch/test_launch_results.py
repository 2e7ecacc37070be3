"""What came of each launch group is kept: what EC2 launched instead, and what it refused."""

from shared.model.ec2.instance_types import CapacityType
from shared.model.errors import UnauthorizedError
from shared.nodes.launch.launch_results import LaunchResult, results_of_plan
from tests.unit.nodes.launch.launches import intents, open_intent, two_nodes, without_spot
from tests.unit.worlds import NAME, World


def results(world: World) -> tuple[LaunchResult, ...]:
    """Return the results of the plan of all notes of launches."""
    (plan,) = {name.split("#")[1] for _, name in world.ledger.note_values if "launch#" in name}
    return results_of_plan(world.ledger, NAME, plan)


def test_the_launched_instances_are_kept_with_their_price() -> None:
    world = two_nodes()
    world.provision()
    (result,) = results(world)
    (kind,) = result.launched
    slots = world.ledger.slots(NAME)
    assert (result.planned, kind.count, result.refused) == (2, 2, ())
    assert {slot.offering for slot in slots} == {kind.offering}
    assert {slot.price_micros_per_hour for slot in slots} == {kind.price_micros_per_hour}


def test_what_ec2_refused_on_the_way_is_kept_beside_what_it_launched() -> None:
    world = without_spot()
    world.provision()
    (result,) = results(world)
    assert {kind.offering.capacity_type for kind in result.launched} == {CapacityType.ON_DEMAND}
    assert {refused.code for refused in result.refused} == {"InsufficientInstanceCapacity"}


def test_a_refused_launch_is_kept_though_nothing_was_launched() -> None:
    world = two_nodes()
    code, detail = "UnauthorizedOperation", "not allowed: iam:PassRole"
    world.cloud.fail_next("create_fleet", UnauthorizedError("no", code=code, detail=detail))
    world.provision()
    (result,) = results(world)
    assert result.launched == ()
    (refused,) = result.refused
    assert (refused.code, refused.message) == (code, detail)


def test_slots_that_an_earlier_invocation_filled_are_counted() -> None:
    world = two_nodes()
    open_intent(world)
    world.provision()
    assert intents(world) == (0, 1)
    (result,) = results(world)
    assert sum(kind.count for kind in result.launched) == result.planned == 2
