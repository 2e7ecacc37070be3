"""The provision function: queue, fast lane, and what goes wrong with either."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from functions.provision.handler import handler
from shared.model.errors import ThrottledError, UnauthorizedError
from shared.model.messages.message import MessageKind, encode, make_message
from shared.ports import TimerKind
from tests.builders import NOW, node_of, pod, provisioner
from tests.functions.conftest import UNREACHABLE, Context, ProvisionRuntime
from tests.unit.worlds import SECOND, Crash, World, failing, instead

# Running functions ignore this one; pytest replaces their filters with its own.
pytestmark = pytest.mark.filterwarnings("ignore:No application metrics to publish")
Use = Callable[[str, Any], None]


def body(cluster: str = "test", kind: MessageKind = MessageKind.POD_PENDING) -> str:
    return json.dumps(encode(make_message(kind, cluster, NOW)))


def batch(*bodies: str) -> dict[str, Any]:
    return {"Records": [{"messageId": f"m{n}", "body": text} for n, text in enumerate(bodies)]}


def waiting() -> World:
    return World(provisioner(), pod())


def emf(out: str) -> dict[str, Any]:
    """Return the values of the metrics in the log."""
    lines = [json.loads(line) for line in out.splitlines() if '"_aws"' in line]
    return {key: value for line in lines for key, value in line.items() if key != "_aws"}


def test_a_batch_is_one_plan_for_its_cluster(use: Use, capsys: pytest.CaptureFixture[str]) -> None:
    world = waiting()
    use("provision", ProvisionRuntime(test=world))
    assert handler(batch(body(), body()), Context()) == {"batchItemFailures": []}
    assert len(world.alive) == 1
    metrics = emf(capsys.readouterr().out)
    assert metrics["NodesLaunched"] == [1]
    assert metrics["PodsPlanned"] == [1]
    assert metrics["DollarsPerHourBought"] == [0.096]


def test_the_fast_lane_waits_for_the_burst_to_end(use: Use) -> None:
    world = waiting()
    use("provision", ProvisionRuntime(test=world))
    assert handler(json.loads(body()), Context()) == {"batchItemFailures": []}
    assert sum(world.clock.slept, timedelta(0)) == SECOND
    assert len(world.alive) == 1


def test_each_cluster_of_a_batch_of_several_has_an_invocation_of_its_own(use: Use) -> None:
    one, two = waiting(), waiting()
    runtime = ProvisionRuntime(one=one, two=two)
    use("provision", runtime)
    records = batch(
        body("one"), body("two", MessageKind.EVALUATE), body("one", MessageKind.PROVISIONER_CHANGED)
    )
    assert handler(records, Context()) == {"batchItemFailures": []}
    assert (len(one.alive), len(two.alive)) == (0, 0)
    assert one.outbox.plans_at_once == [("one", False, True)]
    assert two.outbox.plans_at_once == [("two", True, False)]


@pytest.mark.parametrize("error", [ValueError, KeyError, RecursionError, MemoryError])
def test_a_cluster_whose_data_raises_anything_delays_no_other(
    use: Use, error: type[Exception]
) -> None:
    """The one that raises comes first, and is first in each batch again."""
    bad, good = waiting(), waiting()
    instead(bad.cluster, "pending_pods", failing(error("of its data")))
    runtime = ProvisionRuntime(bad=bad, good=good)
    use("provision", runtime)
    assert handler(batch(body("bad"), body("good")), Context()) == {"batchItemFailures": []}
    for world, cluster in ((bad, "bad"), (good, "good")):
        assert world.outbox.plans_at_once == [(cluster, False, False)]
    handler(json.loads(body("good", MessageKind.RESUME)), Context())
    assert len(good.alive) == 1
    assert good.clock.slept == []


def test_records_of_a_cluster_that_cannot_be_sent_on_come_again(use: Use) -> None:
    one, two = waiting(), waiting()
    one.outbox.fail_next(ThrottledError("too many calls"))
    use("provision", ProvisionRuntime(one=one, two=two))
    answer = handler(batch(body("two"), body("one")), Context())
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m1"}]}
    assert two.outbox.plans_at_once == [("two", False, False)]


def test_good_records_are_served_before_any_is_put_aside(use: Use) -> None:
    world = waiting()
    runtime = ProvisionRuntime(test=world)
    machines: list[int] = []

    def send_to_dead_letters(*_: object) -> list[str]:
        machines.append(len(world.alive))
        return []

    instead(runtime, "send_to_dead_letters", send_to_dead_letters)
    use("provision", runtime)
    handler(batch("torn", body(), "torn too"), Context())
    assert machines == [1]


def test_conditions_are_written_when_a_provisioner_changed(use: Use) -> None:
    world = waiting()
    use("provision", ProvisionRuntime(test=world))
    handler(batch(body(kind=MessageKind.PROVISIONER_CHANGED)), Context())
    assert world.cluster.conditions["default"][0]


def test_held_lease_is_counted(use: Use, capsys: pytest.CaptureFixture[str]) -> None:
    world = waiting()
    world.ledger.acquire("test", "another", world.clock.now())
    use("provision", ProvisionRuntime(test=world))
    assert handler(batch(body()), Context()) == {"batchItemFailures": []}
    assert emf(capsys.readouterr().out)["LeaseContention"] == [1]


def test_records_that_cannot_be_understood_do_not_stop_the_others(use: Use) -> None:
    world = waiting()
    runtime = ProvisionRuntime(test=world)
    use("provision", runtime)
    assert handler(batch("{", body(), "[]"), Context()) == {"batchItemFailures": []}
    assert [text for text, _ in runtime.dead] == ["{", "[]"]
    assert len(world.alive) == 1


def test_a_cluster_that_is_not_attached_is_set_aside_and_the_next_one_served(use: Use) -> None:
    world = waiting()
    runtime = ProvisionRuntime(test=world)
    use("provision", runtime)
    assert handler(batch(body("gone"), body("gone"), body()), Context()) == {
        "batchItemFailures": []
    }
    assert runtime.dead == [(body("gone"), "cluster 'gone' is not attached")] * 2
    assert runtime.woken == ["test"]


@pytest.mark.parametrize("sends", [True, False])
def test_a_failure_that_may_pass_is_tried_again(use: Use, *, sends: bool) -> None:
    world = waiting()
    instead(world.cluster, "pending_pods", failing(UNREACHABLE))
    runtime = ProvisionRuntime(test=world)
    runtime.sends = sends
    use("provision", runtime)
    answer = handler(batch(body(), body()), Context())
    assert runtime.woken_later == [("test", None)]
    failed = [
        batch_item_failure["itemIdentifier"] for batch_item_failure in answer["batchItemFailures"]
    ]
    # Without such a message the records themselves are retried.
    assert failed == ([] if sends else ["m0", "m1"])
    assert not world.ledger.is_held("test")


def test_a_failure_of_the_fast_lane_is_tried_again_by_a_message(use: Use) -> None:
    """The record of the same pod finds the lease held, and is settled: no other plan follows."""
    world = waiting()

    def turned_away(*_: object) -> None:
        assert world.ledger.acquire("test", "record", world.clock.now()) is None
        raise UNREACHABLE

    instead(world.cluster, "provisioners", turned_away)
    runtime = ProvisionRuntime(test=world)
    use("provision", runtime)
    assert handler(json.loads(body()), Context()) == {"batchItemFailures": []}
    assert runtime.woken_later == [("test", None)]
    assert not world.ledger.is_held("test")


def test_failure_of_the_fast_lane_without_a_retry_message_is_an_error(use: Use) -> None:
    world = waiting()
    instead(world.cluster, "pending_pods", failing(UNREACHABLE))
    runtime = ProvisionRuntime(test=world)
    runtime.sends = False
    use("provision", runtime)
    with pytest.raises(type(UNREACHABLE)):
        handler(json.loads(body()), Context())


def test_an_event_that_no_repeating_helps_is_set_aside(use: Use) -> None:
    world = waiting()
    instead(world.cluster, "pending_pods", failing(UnauthorizedError("no")))
    runtime = ProvisionRuntime(test=world)
    use("provision", runtime)
    handler(json.loads(body()), Context())
    ((text, reason),) = runtime.dead
    assert json.loads(text) == json.loads(body())
    assert reason == "no"
    instead(runtime, "send_to_dead_letters", lambda *_: ["refused"])
    with pytest.raises(UnauthorizedError):
        handler(json.loads(body()), Context())


def test_the_delay_of_a_throttle_is_kept(use: Use) -> None:
    world = waiting()
    wait = timedelta(seconds=7)
    instead(world.cluster, "pending_pods", failing(ThrottledError("slow", delay=wait)))
    runtime = ProvisionRuntime(test=world)
    use("provision", runtime)
    handler(batch(body()), Context())
    assert runtime.woken_later == [("test", wait)]


def test_an_invocation_near_its_end_hands_over(use: Use) -> None:
    world = waiting()
    use("provision", ProvisionRuntime(test=world))
    handler(batch(body()), Context(left=timedelta(seconds=10)))
    assert world.alive == []
    assert world.outbox.wakes == [("test", timedelta(0))]


def test_an_event_of_the_fast_lane_that_cannot_be_understood_is_set_aside(
    use: Use, dead: list[tuple[str, str]]
) -> None:
    use("provision", ProvisionRuntime(test=waiting()))
    event = {"source": "dovetail.test", "detail-type": "pod-gone", "detail": {}}
    assert handler(event, Context()) is None
    ((text, reason),) = dead
    assert json.loads(text) == event
    assert reason.startswith("detail-type: 'pod-gone'")


def half_empty() -> World:
    nodes = node_of("n1"), node_of("n2")
    world = World(provisioner(consolidation=True), *nodes, pod("a", node_name="n1"))
    world.advance(timedelta(hours=1))
    return world


def test_evaluation_removes_nodes_that_are_not_needed(
    use: Use, capsys: pytest.CaptureFixture[str]
) -> None:
    for event in (
        batch(body(kind=MessageKind.EVALUATE)),
        json.loads(body(kind=MessageKind.EVALUATE)),
    ):
        world = half_empty()
        use("provision", ProvisionRuntime(test=world))
        handler(event, Context())
        assert emf(capsys.readouterr().out)["NodesDisrupted"] == [1]
        assert world.clock.slept == []
        assert len(world.outbox.timers_of(TimerKind.REPLACEMENT)) == 1


def test_a_look_that_finds_the_lease_held_or_fails_comes_again(use: Use) -> None:
    world = half_empty()
    world.ledger.acquire("test", "other", world.clock.now())
    runtime = ProvisionRuntime(test=world)
    use("provision", runtime)
    handler(batch(body(kind=MessageKind.EVALUATE)), Context())
    assert runtime.woken_later == [("test, look", 2 * SECOND)]
    instead(world.ledger, "acquire", failing(UNREACHABLE))
    handler(batch(body(kind=MessageKind.EVALUATE)), Context())
    assert runtime.woken_later[1:] == [("test, look", None)]


def test_pods_are_planned_for_though_no_status_can_be_written(use: Use) -> None:
    world = waiting()
    use("provision", ProvisionRuntime(test=world))
    instead(world.cluster, "set_provisioner_condition", failing(UnauthorizedError("a webhook")))
    assert handler(json.loads(body(kind=MessageKind.PROVISIONER_CHANGED)), Context()) == {
        "batchItemFailures": []
    }
    assert len(world.alive) == 1
    assert world.outbox.wakes == []


def test_status_is_written_after_the_message_that_plans_again(use: Use) -> None:
    """A process that dies while it writes status must leave no cluster unplanned."""
    world = waiting()
    runtime = ProvisionRuntime(test=world)
    use("provision", runtime)
    instead(world.cluster, "pending_pods", failing(UNREACHABLE))
    instead(world.cluster, "set_provisioner_condition", failing(Crash()))
    with pytest.raises(Crash):
        handler(json.loads(body(kind=MessageKind.PROVISIONER_CHANGED)), Context())
    assert runtime.woken_later == [("test", None)]
