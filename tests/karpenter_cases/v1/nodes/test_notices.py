"""What AWS says of machines of NodePools, and machines and nodes that lost each other."""

from typing import Any

import pytest

from shared.model.ec2.instance_types import CapacityType
from shared.model.errors import InvalidMessageError, UnauthorizedError
from shared.model.messages.notices import decode_notice
from shared.nodes.leave.interruption import Interruption, NodeIndex
from shared.ports import TimerKind
from tests.builders import instance, offering, pod
from tests.karpenter_cases.lifecycle.test_interruption_cases import SPOT, STATE, event, health, told
from tests.karpenter_cases.v1.nodes.ending import standing
from tests.karpenter_cases.v1.worlds import named_pool, world
from tests.unit.worlds import MINUTE, SECOND, World


@pytest.mark.parametrize(
    "notice",
    [
        event(SPOT),
        health("n1"),
        event(STATE, state="stopping"),
        event(STATE, state="shutting-down"),
    ],
    ids=["spot", "scheduled", "stopping", "terminating"],
)
def test_each_warning_removes_the_node(notice: dict[str, Any]) -> None:
    there = standing(pod(node_name="n1"))
    assert told(there, notice) == ["drained"]
    assert there.node.deletion_at is not None


def test_the_offering_of_a_warned_machine_is_avoided() -> None:
    there = standing()
    spot = offering(capacity_type=CapacityType.SPOT)
    there.cloud.add(instance(offering=spot))
    told(there, event(SPOT))
    assert there.ledger.unavailable_offerings(there.clock.now()) == {spot}


def test_a_message_that_says_nothing_to_do_changes_nothing() -> None:
    there = standing()
    with pytest.raises(InvalidMessageError, match="names no instance"):
        decode_notice(event(SPOT, **{"instance-id": "?"}))
    assert told(there, event(STATE, state="running")) == ["ignored"]
    assert there.node.deletion_at is None


def test_many_messages_about_a_node_do_one_thing() -> None:
    there = standing(pod(node_name="n1"))
    assert told(there, *[event(SPOT)] * 3) == ["drained", "draining", "draining"]
    assert there.cluster.called("delete_node") == ["n1"]


def test_a_node_that_is_gone_is_no_error() -> None:
    assert told(world(named_pool()), event(SPOT), health("n9")) == ["ignored", "ignored"]


def test_a_second_message_changes_no_deadline() -> None:
    there = standing(pod(node_name="n1"))
    told(there, health("n1"))
    first = there.node
    there.advance(MINUTE)
    notice = decode_notice(health("n1"))
    report = Interruption(there.ports, NodeIndex()).run(notice, "i-n1")
    assert (report.action, report.interrupted) == ("draining", False)
    assert there.node == first


def test_a_queue_that_denies_is_an_error() -> None:
    there = standing(pod(node_name="n1"))
    there.outbox.fail_next(UnauthorizedError("sqs SendMessage: denied"))
    with pytest.raises(UnauthorizedError, match="denied"):
        told(there, event(SPOT))


# --- machines without nodes, nodes without machines


def swept(there: World, seconds: int) -> World:
    there.advance(seconds * SECOND)
    there.sweep()
    return there


def leaves(there: World) -> bool:
    return there.node.deletion_at is not None


def test_a_node_whose_machine_is_gone_goes() -> None:
    there = standing(ready=False)
    there.cloud.end("i-n1")
    swept(there, 600)
    assert leaves(there)
    alive = swept(standing(), 600)
    assert not leaves(alive)


def ended(there: World) -> list[str]:
    timers = there.outbox.timers_of(TimerKind.TERMINATION)
    return sorted(str(timer.payload["instance_id"]) for timer in timers)


def test_a_machine_without_a_node_ends_after_a_while() -> None:
    there = world(named_pool())
    there.cloud.add(instance("i-lost"), instance("i-other", tags={"Name": "another team's"}))
    assert ended(swept(there, 60)) == []
    assert ended(swept(there, 240)) == ["i-lost"]
