"""How a node is emptied and ended."""

from datetime import timedelta
from typing import Any

import pytest

from functions.termination import handler as termination
from shared.model import labels as keys
from shared.model.kubernetes.pods import ControllerRef
from shared.model.kubernetes.taints import Toleration
from shared.nodes.leave.termination import Termination
from shared.nodes.leave.voluntary_removal import RemovalOutcome, remove_voluntarily
from shared.ports import TimerKind
from tests.builders import NOW, instance, node, pod, slot
from tests.karpenter_cases.lifecycle.nodes import drain, going, reasons, standing
from tests.unit.worlds import NAME, SECOND

HELD = {keys.DO_NOT_EVICT: "true"}
DAEMON = ControllerRef(kind="DaemonSet", name="d", uid="d")
STATIC = ControllerRef(kind="Node", name="n1", uid="n1")


def test_deleted_node_is_removed_with_its_machine() -> None:
    world = going()
    assert drain(world)["result"] == "terminated"
    assert world.cluster.nodes() == ()


def test_evictions_are_retried_soon_while_a_budget_allows_some() -> None:
    members = [pod(name, node_name="n1") for name in "abcdef"]
    world = going(*members)
    steps, waits = Termination(world.ports, None), []
    state: dict[str, Any] = dict(world.outbox.timers_of(TimerKind.TERMINATION)[-1].payload)
    for leaving in (members[:2], members[2:4], members[4:]):
        world.cluster.budgeted = {member.key for member in members} - {
            other_pod.key for other_pod in leaving
        }
        state = steps.step(state)
        waits.append(state["wait_seconds"])
        world.cluster.kubelets_stop_pods()
        world.advance(2 * SECOND)
    assert waits == [2, 2, 2]
    assert world.cluster.pods == {}


def test_a_pod_that_bears_an_unschedulable_node_stays_to_the_end() -> None:
    bears = (Toleration(key=keys.UNSCHEDULABLE_TAINT, operator="Exists"),)
    world = going(pod("a", node_name="n1", tolerations=bears), pod("b", node_name="n1"))
    drain(world)
    assert world.cluster.called("evict") == ["default/b"]


def test_a_pod_that_must_not_be_evicted_keeps_a_node_we_would_rather_not_have() -> None:
    world = standing(pod(node_name="n1", annotations=HELD))
    assert remove_voluntarily(world.ports, world.node, "expiration") == RemovalOutcome.BLOCKED
    assert not world.node.unschedulable
    assert world.node.deletion_at is None


@pytest.mark.parametrize(
    "exempt", [{"owner": DAEMON}, {"owner": STATIC}, {"phase": "Succeeded"}, {"phase": "Failed"}]
)
def test_do_not_evict_on_pods_that_need_not_leave_holds_nothing(exempt: dict[str, Any]) -> None:
    world = standing(pod(node_name="n1", annotations=HELD, **exempt))
    assert remove_voluntarily(world.ports, world.node, "emptiness") == RemovalOutcome.REMOVED
    assert drain(world)["result"] == "terminated"


def test_a_budget_holds_its_pods_and_others_leave() -> None:
    world = going(pod("a", node_name="n1"), pod("b", node_name="n1"))
    world.cluster.budgeted.add("default/a")
    assert drain(world)["next"] == "wait"
    assert world.cluster.pods["default/a"].deletion_at is None
    assert world.cluster.pods["default/b"].deletion_at is not None
    assert len(world.alive) == 1


def test_critical_pods_leave_last() -> None:
    critical = pod("z", node_name="n1", priority_class="system-cluster-critical")
    world = going(critical, pod("a", node_name="n1"))
    state = drain(world)
    assert world.cluster.called("evict") == ["default/a"]
    drain(world, state)
    assert world.cluster.called("evict") == ["default/a"]
    world.cluster.kubelets_stop_pods()
    drain(world, state)
    assert world.cluster.called("evict") == ["default/a", "default/z"]


def test_static_pods_are_not_evicted() -> None:
    world = going(pod("s", node_name="n1", owner=STATIC))
    assert drain(world)["result"] == "terminated"
    assert world.cluster.called("evict") == []


def test_the_machine_lives_until_all_pods_are_gone() -> None:
    world = going(pod("a", node_name="n1"), pod("b", node_name="n1"))
    state = drain(world)
    del world.cluster.pods["default/a"]
    assert drain(world, state)["next"] == "wait"
    assert len(world.alive) == 1
    world.cluster.kubelets_stop_pods()
    assert drain(world, state)["result"] == "terminated"
    assert world.alive == []


def test_pods_have_the_time_they_ask_for_and_a_minute_more() -> None:
    world = going(pod(node_name="n1", grace_period_seconds=300))
    state = drain(world)
    for _ in range(6):
        assert drain(world, state)["next"] == "wait"
        world.advance(59 * SECOND)
    world.advance(10 * SECOND)
    state = drain(world, state)
    assert world.alive == []
    world.advance(2 * SECOND)
    assert drain(world, state)["result"] == "terminated"


def test_the_machine_is_ended_with_its_node() -> None:
    world = going()
    drain(world)
    assert world.alive == []
    assert world.cloud.called("terminate") == [("i-n1",)]


def test_the_ledgers_rows_of_a_machine_are_deleted_with_its_node() -> None:
    world = going()
    one = slot(instance_id="i-n1")
    world.ledger.slot_values[NAME, one.name] = one
    world.ledger.instances["i-n1"] = NAME
    drain(world)
    assert world.ledger.slots(NAME) == ()
    assert world.ledger.cluster_of("i-n1") is None


def test_nodes_removed_at_once_do_not_affect_each_other() -> None:
    names = ("n2", "n3", "n4", "n5")
    world = going(*(node(name, deletion_at=NOW) for name in names))
    world.cloud.add(*(instance(f"i-{name}") for name in names))
    service = Termination(world.ports, None)
    for name in names:
        service.begin(name)
    states = [timer.payload for timer in world.outbox.timers_of(TimerKind.TERMINATION)]
    assert len(states) == 5
    for _ in range(4):
        states = [state if state["next"] == "done" else service.step(state) for state in states]
        world.advance(timedelta(seconds=2))
    assert {state["result"] for state in states} == {"terminated"}
    assert world.alive == []


def test_load_balancers_are_notified_before_pods_are_evicted() -> None:
    world = going(pod(node_name="n1"))
    drain(world)
    assert keys.EXCLUDE_FROM_LOAD_BALANCERS in world.node.labels
    methods = [call.method for call in world.cluster.calls]
    assert methods.index("change_node") < methods.index("evict")


def test_a_pod_without_a_controller_is_evicted() -> None:
    world = going(pod(node_name="n1", owner=None))
    drain(world)
    assert world.cluster.called("evict") == ["default/a"]


def test_ended_pods_hold_nothing() -> None:
    world = going(
        pod("s", node_name="n1", phase="Succeeded"), pod("f", node_name="n1", phase="Failed")
    )
    assert drain(world)["result"] == "terminated"


def test_node_without_its_machine_is_removed_though_pods_are_on_it() -> None:
    world = going(pod(node_name="n1"))
    world.cloud.end("i-n1")
    assert drain(world)["result"] == "terminated"
    assert world.cluster.called("evict") == []


@pytest.mark.filterwarnings("ignore:No application metrics to publish")
def test_each_released_node_is_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world = going()

    class Runtime:
        def service(self, _: str) -> Termination:
            return Termination(world.ports, None)

    class Context:
        function_name = function_version = invoked_function_arn = aws_request_id = "x"
        memory_limit_in_mb = 128

    monkeypatch.setattr(termination, "load_runtime", Runtime)
    state = world.outbox.timers_of(TimerKind.TERMINATION)[0].payload
    termination.handler(state, Context())
    assert '"NodesReleased":[1.0]' in capsys.readouterr().out.replace(" ", "")


def test_two_nodes_of_one_machine_are_both_removed() -> None:
    twin = node("n2", provider_id=node().provider_id, deletion_at=NOW)
    world = going(twin)
    service = Termination(world.ports, None)
    service.begin("n2")
    results = [
        service.step(timer.payload)["result"]
        for timer in world.outbox.timers_of(TimerKind.TERMINATION)
    ]
    assert results == ["terminated", "terminated"]
    assert world.cluster.nodes() == ()
    assert world.alive == []


def test_the_row_of_a_machine_stays_while_its_node_is_drained() -> None:
    world = going(pod(node_name="n1"))
    world.ledger.instances["i-n1"] = NAME
    drain(world)
    assert world.ledger.cluster_of("i-n1") == NAME


def test_a_node_whose_machine_was_never_known_ends_no_machine() -> None:
    world = going(provider_id="")
    assert drain(world)["result"] == "terminated"
    assert world.cloud.called("terminate") == []


def test_drain_blocked_by_a_budget_is_reported_with_the_budget() -> None:
    world = going(pod(node_name="n1"))
    world.cluster.budgeted.add("default/a")
    drain(world)
    assert reasons(world) == {"Cordoned", "DrainBlocked"}
    assert "default/a (a PodDisruptionBudget)" in world.node.annotations[keys.DRAIN_BLOCKED]
