"""How a node of a NodePool is emptied and ended."""

import contextlib

import pytest

from shared.model import labels as keys
from shared.model.errors import UnavailableError
from shared.model.kubernetes.pods import ControllerRef
from shared.model.values import replace
from shared.nodes.leave.termination import Termination
from shared.ports import TimerKind
from tests.builders import NOW, budget, node, pod
from tests.karpenter_cases.v1.nodes.ending import drain, evicted, going, standing
from tests.karpenter_cases.v1.worlds import stand
from tests.unit.worlds import MINUTE, SECOND

DAEMON = ControllerRef(kind="DaemonSet", name="d", uid="d")
STATIC = ControllerRef(kind="Node", name="n1", uid="n1")


def test_a_deleted_node_ends_with_its_machine_and_others_are_ignored() -> None:
    there = going()
    foreign = node("foreign", labels={}, finalizers=(), deletion_at=NOW)
    there.cluster.add(foreign)
    assert Termination(there.ports, None).begin("foreign") == "not ours or not being deleted"
    assert drain(there)["result"] == "terminated"
    assert [known.name for known in there.cluster.nodes()] == ["foreign"]
    assert there.alive == []


def test_load_balancers_and_scheduler_are_told_before_pods() -> None:
    there = going(pod(node_name="n1"))
    drain(there)
    assert keys.EXCLUDE_FROM_LOAD_BALANCERS in there.node.labels
    assert there.node.unschedulable
    methods = [call.method for call in there.cluster.calls]
    assert methods.index("change_node") < methods.index("evict")


def test_pods_of_the_host_and_ended_ones_are_ignored() -> None:
    there = going(
        pod("s", node_name="n1", owner=STATIC),
        pod("e", node_name="n1", phase="Succeeded"),
        pod("f", node_name="n1", phase="Failed"),
        pod("alone", node_name="n1", owner=None),
    )
    drain(there)
    assert evicted(there) == ["default/alone"]
    there.cluster.kubelets_stop_pods()
    assert drain(there)["result"] == "terminated"


@pytest.mark.parametrize("budgets", [1, 2], ids=["full", "two"])
def test_a_pod_under_a_budget_is_waited_for_and_told(budgets: int) -> None:
    there = going(pod(node_name="n1"), *(budget(0, name=f"b{n}") for n in range(budgets)))
    there.cluster.budgeted.add("default/a")
    assert drain(there)["next"] == "wait"
    assert len(there.alive) == 1
    (message,) = there.messages("DrainBlocked")
    for number in range(budgets):
        assert f"b{number}" in message


def test_critical_pods_leave_once_the_others_are_gone() -> None:
    last = pod("z", node_name="n1", priority_class="system-node-critical")
    there = going(last, pod("a", node_name="n1"))
    state = drain(there)
    drain(there, state)
    assert evicted(there) == ["default/a"]
    there.cluster.kubelets_stop_pods()
    drain(there, state)
    assert evicted(there) == ["default/a", "default/z"]


def test_a_stuck_pod_is_passed_over_after_a_minute() -> None:
    there = going(pod(node_name="n1", deletion_at=NOW))
    there.advance(59 * SECOND)
    assert drain(there)["next"] == "wait"
    there.advance(SECOND)
    drain(there)
    assert there.alive == []


def test_a_pod_of_the_same_name_is_another() -> None:
    first = pod(node_name="n1")
    there = going(first)
    seen = there.cluster.pods_on("n1")
    there.cluster.add(replace(first, uid="another", resource_version=""))
    there.cluster.evict(seen[0])
    assert there.cluster.pods["default/a"].deletion_at is None


@pytest.mark.parametrize("ready", [None, False])
def test_a_machine_that_is_gone_needs_no_drain(*, ready: bool | None) -> None:
    there = going(pod(node_name="n1"), ready=ready)
    there.cloud.end("i-n1")
    assert drain(there)["result"] == "terminated"
    assert evicted(there) == []


def test_volumes_of_drained_pods_are_waited_for() -> None:
    there = going()
    there.cluster.attachments["n1"] = ("vol-1",)
    assert drain(there)["next"] == "wait"
    assert len(there.alive) == 1
    there.cluster.attachments.clear()
    assert drain(there)["result"] == "terminated"


def test_an_error_of_ec2_is_tried_again_and_the_node_stays() -> None:
    there = going()
    there.cloud.fail_next("terminate", UnavailableError("try later"))
    with contextlib.suppress(UnavailableError):
        assert drain(there)["next"] == "wait"
    assert there.node.finalizers == (keys.TERMINATION_FINALIZER,)
    assert len(there.alive) == 1
    there.advance(MINUTE)
    drain(there)
    assert there.alive == []


def test_two_nodes_of_one_machine_both_go() -> None:
    there = standing()
    stand(there, "n2", provider_id=there.node.provider_id)
    steps = Termination(there.ports, None)
    for name in ("n1", "n2"):
        there.cluster.delete_node(there.cluster.node_values[name])
        steps.begin(name)
    for timer in there.outbox.timers_of(TimerKind.TERMINATION):
        assert steps.step(timer.payload)["result"] == "terminated"
    assert there.cluster.nodes() == ()


def test_a_node_without_a_machine_asks_ec2_for_nothing() -> None:
    there = going(provider_id="")
    assert drain(there)["result"] == "terminated"
    assert there.cloud.called("terminate") == []
