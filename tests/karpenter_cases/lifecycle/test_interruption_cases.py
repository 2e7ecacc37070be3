"""What AWS says of machines, and what moving a pod counts."""

from typing import Any

import pytest

from shared.disruption.candidates import PLAIN_POD_COST, eviction_cost
from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType
from shared.model.errors import InvalidMessageError
from shared.model.messages.notices import NoticeKind, decode_notice
from shared.nodes.leave.interruption import Interruption, NodeIndex
from tests.builders import instance, node, offering, pod, provisioner
from tests.unit.worlds import NAME, World

SPOT = "EC2 Spot Instance Interruption Warning"
STATE = "EC2 Instance State-change Notification"


def event(what: str, name: str = "n1", **detail: Any) -> dict[str, Any]:
    about = {"instance-id": f"i-{name}", **detail}
    return {"source": "aws.ec2", "detail-type": what, "detail": about}


def health(*names: str) -> dict[str, Any]:
    entities = [{"entityValue": f"i-{name}"} for name in names]
    detail = {"affectedEntities": entities}
    return {"source": "aws.health", "detail-type": "AWS Health Event", "detail": detail}


def told(world: World, *events: dict[str, Any]) -> list[str]:
    index = NodeIndex()
    return [
        Interruption(world.ports, index).run(notice, value).action
        for notice in map(decode_notice, events)
        for value in notice.instance_ids
    ]


def one_node() -> World:
    return World(provisioner(), node(), pod(node_name="n1"))


def test_a_spot_warning_takes_the_node_out_of_service() -> None:
    world = one_node()
    assert told(world, event(SPOT)) == ["drained"]
    assert world.node.deletion_at is not None


def test_a_scheduled_change_takes_the_node_out_of_service() -> None:
    world = one_node()
    assert told(world, health("n1")) == ["drained"]
    assert world.node.deletion_at is not None


def test_a_machine_that_stops_takes_its_node_out_of_service() -> None:
    world = one_node()
    assert told(world, event(STATE, state="stopping")) == ["drained"]


def test_many_notices_take_many_nodes_out_of_service() -> None:
    names = [f"n{number}" for number in range(20)]
    world = World(provisioner(), *map(node, names))
    events = [event(SPOT, name) for name in names[:10]]
    events += [event(STATE, name, state="stopped") for name in names[10:15]] + [health(*names[15:])]
    assert told(world, *events) == ["drained"] * 20
    assert all(other_node.deletion_at is not None for other_node in world.cluster.nodes())
    assert set(world.outbox.evaluations) == {NAME}


def test_a_notice_that_cannot_be_read_is_refused_for_good() -> None:
    with pytest.raises(InvalidMessageError, match="names no instance"):
        decode_notice(event(SPOT, **{"instance-id": "?"}))


def test_a_machine_that_starts_is_none_of_our_business() -> None:
    world = one_node()
    assert told(world, event(STATE, state="running")) == ["ignored"]
    assert decode_notice(event(STATE, state="running")).kind == NoticeKind.STATE_CHANGE
    assert world.node.deletion_at is None


def test_the_pool_of_a_warned_machine_is_avoided_for_a_while() -> None:
    world = one_node()
    spot = offering(capacity_type=CapacityType.SPOT)
    world.cloud.add(instance(offering=spot))
    told(world, event(SPOT))
    assert world.ledger.unavailable_offerings(world.clock.now()) == {spot}


# --- what moving a pod counts


def cost(deletion: int = 0, priority: int = 0) -> int:
    return eviction_cost(
        pod(annotations={keys.POD_DELETION_COST: str(deletion)}, priority=priority)
    )


def test_a_plain_pod_counts_as_one() -> None:
    assert eviction_cost(pod()) == PLAIN_POD_COST


def test_a_pod_that_costs_something_to_delete_counts_more() -> None:
    assert cost(deletion=2**26) > PLAIN_POD_COST


def test_pod_that_may_be_evicted_first_counts_less() -> None:
    assert cost(deletion=-(2**26)) < PLAIN_POD_COST


def test_a_higher_deletion_cost_counts_more() -> None:
    assert cost(deletion=2**25) < cost(deletion=2**26) < cost(deletion=2**27)


def test_a_higher_priority_counts_more() -> None:
    assert cost(priority=2**24) > PLAIN_POD_COST


def test_a_lower_priority_counts_less() -> None:
    assert cost(priority=-(2**24)) < PLAIN_POD_COST
