"""What one cluster learns of EC2's capacity, and which facts other clusters share."""

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from infra.local.ec2.refusals import Reason
from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType, OfferingKey
from shared.model.ec2.launches import FleetAnswer, FleetError
from shared.model.ec2.quotas import STANDARD, QuotaReached, quota_of
from shared.model.messages.notices import Notice, NoticeKind
from shared.model.values import replace
from shared.nodes.join.registration import Registration
from shared.nodes.launch.refusals.offering_facts import mark_quotas
from shared.nodes.leave.interruption import Interruption
from tests.builders import CATALOG, ZONES, instance, needs, node, offering, pod, provisioner
from tests.unit.nodes.launch.launches import ANY_WAY, SPOT
from tests.unit.nodes.launch.refusals.refusing import (
    fill,
    marked,
    refuse,
    with_profile,
    without_profile,
)
from tests.unit.worlds import MINUTE, NAME, World, instead

NOBODY: frozenset[OfferingKey] = frozenset()


def others_know(world: World) -> frozenset[OfferingKey]:
    """Return the offerings that another cluster of the account does not ask for now."""
    return world.ledger.unavailable_offerings(world.clock.now(), "another")


def answers(world: World, *errors: FleetError) -> None:
    """Let EC2 launch nothing and answer so, however often it is asked."""
    answer = FleetAnswer(fleet_id="", instances=(), errors=errors)
    instead(world.cloud, "create_fleet", lambda _request: answer)


def of_own_template() -> Any:
    """Return a Provisioner with a launch template of the user's: placement group, tenancy, …"""
    owner = provisioner(requirements=ANY_WAY)
    return replace(owner, template=replace(owner.template, launch_template="mine"))


def never_joins(world: World) -> None:
    for instance_type in CATALOG:
        world.cluster.add(
            pod(
                instance_type.name,
                cpu=100,
                node_selector=needs(keys.INSTANCE_TYPE, "In", instance_type.name),
            )
        )
    world.provision()
    world.advance(5 * MINUTE)
    for known in world.cluster.nodes():
        state = {"cluster": NAME, "node": known.name, "uid": known.uid}
        Registration(world.ports).step(state)


def dies(code: str) -> Callable[[World], None]:
    def pending(world: World) -> None:
        world.cloud.failures += [Reason(code, "as told")] * 10
        world.provision()

    return pending


def wrong_profile(world: World) -> None:
    world.cluster.add(with_profile("default", "gone"))
    without_profile(world, "gone")
    world.provision()


def refused(code: str) -> Callable[[World], None]:
    def asked(world: World) -> None:
        refuse(world, code=code)
        world.provision()

    return asked


def full_subnets(world: World) -> None:
    fill(world, *(subnet.subnet_id for subnet in world.cloud.subnets or ()))
    world.provision()


def nothing_and_no_reason(world: World) -> None:
    answers(world)
    world.provision()


def placement_group(world: World) -> None:
    world.cluster.add(of_own_template())
    answers(world, FleetError(code="InsufficientInstanceCapacity", message="", offering=offering()))
    world.provision()


def dies_in_a_placement_group(world: World) -> None:
    world.cluster.add(of_own_template())
    world.cloud.failures += [Reason("Server.InsufficientInstanceCapacity", "as told")] * 10
    world.provision()


def kubelet_relabels_its_node(world: World) -> None:
    """A kubelet may write labels of type and zone; EC2's notice is about its instance."""
    labels = {**node().labels, keys.INSTANCE_TYPE: "m5.2xlarge", keys.ZONE: ZONES[2]}
    world.cluster.add(node(labels=labels))
    for kind in (NoticeKind.REBALANCE_RECOMMENDATION, NoticeKind.SPOT_INTERRUPTION):
        Interruption(world.ports).run(Notice(kind=kind, instance_ids=("i-n1",)), "i-n1")


WALKS = [
    never_joins,
    *(dies(code) for code in ("Client.InternalError", "Server.InternalError", "")),
    wrong_profile,
    *(refused(code) for code in ("UnauthorizedOperation", "Unsupported", "NeverHeardOf")),
    full_subnets,
    nothing_and_no_reason,
    placement_group,
    dies_in_a_placement_group,
    kubelet_relabels_its_node,
]


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.__qualname__)
def test_a_hostile_cluster_that_walks_the_catalogue_changes_nothing_for_another(
    walk: Callable[[World], None],
) -> None:
    world = World(provisioner(requirements=ANY_WAY), pod())
    walk(world)
    assert others_know(world) == NOBODY
    assert world.ledger.quotas_reached(world.clock.now()) == ()


def test_what_is_no_fact_for_others_is_remembered_by_the_cluster_itself() -> None:
    for walk in (never_joins, nothing_and_no_reason, placement_group):
        world = World(provisioner(requirements=ANY_WAY), pod())
        walk(world)
        assert marked(world) != NOBODY


def test_interruption_is_recorded_for_the_offering_that_ec2_shows() -> None:
    world = World(provisioner())
    spot = offering(zone=ZONES[1], capacity_type=CapacityType.SPOT)
    world.cloud.add(instance(offering=spot))
    kubelet_relabels_its_node(world)
    assert others_know(world) == {spot}


def test_an_on_demand_machine_makes_no_spot_pool_short() -> None:
    world = World(provisioner())
    world.cloud.add(instance())
    kubelet_relabels_its_node(world)
    assert others_know(world) == NOBODY


@pytest.mark.parametrize("named", [True, False])
def test_a_quota_is_true_for_the_account_when_it_is_clear_which(*, named: bool) -> None:
    world = World(provisioner(requirements=ANY_WAY), pod())
    one = offering(capacity_type=SPOT)
    code = "MaxSpotInstanceCountExceeded"
    answers(world, FleetError(code=code, message="", offering=one if named else None))
    world.provision()
    quotas = {mark.quota for mark in world.ledger.quotas_reached(world.clock.now())}
    # All that is asked for at once is of one capacity type, and here of one family.
    assert quota_of(one) in quotas
    assert {quota.family for quota in quotas} == {STANDARD}
    assert others_know(world) == NOBODY


def test_a_quota_of_several_families_that_is_not_named_stays_with_the_cluster() -> None:
    standard, gpu = offering(), offering(name="p3.large")
    mark = QuotaReached(quota=quota_of(standard), vcpus=2)
    for over, named, vague in (
        ({standard, gpu}, set(), {standard, gpu}),
        ({standard}, set(), set()),
        ({standard, gpu}, {standard}, {gpu}),
    ):
        world = World()
        assert mark_quotas(world.ports, over, named, CATALOG) == vague
        known = world.ledger.quotas_reached(world.clock.now())
        assert known == (() if standard in vague else (mark,))


def test_one_module_records_facts() -> None:
    telling = {
        path.name
        for path in (Path(__file__).parents[5] / "shared").rglob("*.py")
        if path.parent.name not in ("ports", "ledger")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Attribute) and call.attr in ("mark_unavailable", "mark_quotas")
    }
    assert telling == {"offering_facts.py"}
