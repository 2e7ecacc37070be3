"""Which nodes of NodePools may be disrupted, and what keeps the others."""

from datetime import timedelta
from typing import Any

import pytest

from shared.disruption.candidates import PLAIN_POD_COST, eviction_cost
from shared.disruption.evaluation import OngoingChanges
from shared.manifests.disruption_budgets import decode_budget
from shared.manifests.pods import decode_pod
from shared.model import labels as keys
from shared.model.kubernetes.pods import ControllerRef
from shared.model.kubernetes.taints import Toleration
from shared.model.labels import DISRUPTED_TAINT as MARK
from shared.model.labels import UNSCHEDULABLE_TAINT as CORDON
from tests.builders import NOW, OTHER_SHAPE, budget, pod, ref, slot
from tests.karpenter_cases.scheduling.writing import pod_manifest
from tests.karpenter_cases.v1.disruption.scenes import of_pool, saving, scene
from tests.karpenter_cases.v1.worlds import named_pool, stand, world
from tests.unit.disruption.clusters import LATER, changed, looked, on

DAEMON = ControllerRef(kind="DaemonSet", name="d", uid="d")
STATIC = ControllerRef(kind="Node", name="a", uid="a")
KEEP = {keys.DO_NOT_DISRUPT: "true"}
OLD = OTHER_SHAPE
CHANGED = saving(labels={"team": "new"})


def is_candidate(node: Any, *bound: Any, budgets: Any = (), **more: Any) -> bool:
    """Whether a node may be consolidated: another has room for all its pods."""
    room = of_pool("room", "m5.2xlarge", annotations=KEEP)
    seen = scene(node, room, bound=bound, **more)
    found = looked(seen, budgets=budgets).change
    return found is not None and found.cause == "consolidation"


def may_drift(node: Any, *bound: Any, budgets: Any = (), owner: Any = CHANGED) -> bool:
    room = of_pool("room", "m5.2xlarge", annotations=KEEP)
    seen = scene(node, room, bound=bound, pools=(owner,))
    found = looked(seen, budgets=budgets).change
    return found is not None and found.cause == "drift"


def used(**changes: Any) -> Any:
    return on("a", **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"finalizers": ()},
        {"labels": {keys.INITIALIZED: ""}, "ready": None},
        {"deletion_at": NOW},
        {"unschedulable": True, "annotations": {keys.REMOVAL_REASON: "drift"}},
    ],
    ids=["foreign", "young", "going", "queued"],
)
def test_a_node_in_another_state_is_left(changes: dict[str, Any]) -> None:
    assert is_candidate(of_pool("a"), used())
    assert not is_candidate(of_pool("a", **changes), used())


def test_a_node_that_pods_are_promised_to_is_left() -> None:
    waiting = slot(instance_id="i-a", pods=(ref(pod("waiting")),))
    assert not is_candidate(of_pool("a"), used(), slots=(waiting,))
    nominated = pod("coming", nominated_node="a", unschedulable=False)
    found = scene(of_pool("a"), bound=(used(),), pending=(nominated,))
    assert looked(found).change is None


@pytest.mark.parametrize(
    "labels", [{keys.NODE_POOL: "gone"}, {keys.NODE_POOL: ""}], ids=["gone", "no-label"]
)
def test_a_node_without_its_pool_is_left(labels: dict[str, str]) -> None:
    assert not is_candidate(of_pool("a", labels=labels), used())


@pytest.mark.parametrize(("value", "stays"), [("true", True), ("false", False)])
def test_a_node_that_must_stay_is_left(value: str, *, stays: bool) -> None:
    kept = {keys.DO_NOT_DISRUPT: value}
    assert is_candidate(of_pool("a", annotations=kept), used()) is not stays
    assert may_drift(of_pool("a", annotations={**kept, **OLD}), used()) is not stays


@pytest.mark.parametrize("owner", [None, DAEMON, STATIC], ids=["plain", "daemon", "static"])
def test_a_pod_that_must_stay_keeps_its_node(owner: ControllerRef | None) -> None:
    member = on("a", 1, annotations=KEEP, owner=owner)
    assert not is_candidate(of_pool("a"), used(), member)


@pytest.mark.parametrize(
    "ended", [{"phase": "Succeeded"}, {"phase": "Failed"}, {"deletion_at": NOW}]
)
def test_an_ended_pod_keeps_nothing(ended: dict[str, Any]) -> None:
    assert is_candidate(of_pool("a"), used(annotations=KEEP, **ended))


def test_a_full_budget_keeps_its_node() -> None:
    full = (budget(0),)
    assert not is_candidate(of_pool("a"), used(), budgets=full)
    assert not is_candidate(of_pool("a"), used(owner=DAEMON), budgets=full)
    assert is_candidate(of_pool("a"), used(), budgets=(budget(1),))
    bears = [Toleration(key=key, operator="Exists") for key in (CORDON, MARK, "")]
    for some in bears[:2]:
        assert not is_candidate(of_pool("a"), used(tolerations=(some,)), budgets=full)
    assert is_candidate(of_pool("a"), used(tolerations=(bears[2],)), budgets=full)
    for exempt in ({"owner": STATIC}, {"phase": "Succeeded"}, {"deletion_at": NOW}):
        assert is_candidate(of_pool("a"), used(**exempt), budgets=full)


def test_two_budgets_on_a_pod_keep_its_node() -> None:
    pair = (budget(1), budget(1, name="other"))
    assert not is_candidate(of_pool("a"), used(), budgets=pair)


@pytest.mark.parametrize(("policy", "goes"), [("AlwaysAllow", True), ("IfHealthyBudget", False)])
def test_an_unhealthy_pod_goes_where_its_budget_says_so(policy: str, *, goes: bool) -> None:
    spec = {"selector": {}, "unhealthyPodEvictionPolicy": policy}
    raw = {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": spec,
        "status": {"disruptionsAllowed": 0},
    }
    full = (decode_budget(raw),)
    assert is_candidate(of_pool("a"), used(ready=False), budgets=full) is goes
    assert not is_candidate(of_pool("a"), used(ready=True), budgets=full)


def test_a_budget_of_another_namespace_keeps_nothing() -> None:
    assert is_candidate(of_pool("a"), used(), budgets=(budget(0, namespace="other"),))


def test_without_a_grace_period_neither_drift_nor_consolidation_begins() -> None:
    drifted = of_pool("a", annotations=OLD)
    assert may_drift(drifted, used())
    assert not may_drift(drifted, used(annotations=KEEP))
    assert not may_drift(drifted, used(), budgets=(budget(0),))
    assert not is_candidate(drifted, used(annotations=KEEP))


@pytest.mark.parametrize(
    ("minutes", "stays"),
    [(1, True), (3, False), (None, True)],
    ids=["within", "after", "unstarted"],
)
def test_a_pod_may_be_protected_for_a_while(minutes: int | None, *, stays: bool) -> None:
    started = None if minutes is None else (LATER - timedelta(minutes=minutes)).isoformat()
    raw = pod_manifest("a", node="a", cpu="500m")
    raw["metadata"]["annotations"] = {keys.DO_NOT_DISRUPT: "2m"}
    raw["status"]["startTime"] = started
    assert is_candidate(of_pool("a"), decode_pod(raw)) is not stays


@pytest.mark.parametrize(
    "written", ["1.5h", "+1h30.m", "1h.5h", "5400000ms", "5400000000µs", "5400000000μs", "90m1ns"]
)
def test_a_protection_is_a_duration_as_go_writes_it(written: str) -> None:
    assert not is_candidate(of_pool("a"), kept("a", written, 89))
    assert is_candidate(of_pool("a"), kept("a", written, 91))


@pytest.mark.parametrize(
    "written",
    ["abc", "0", "0s", "-5m", "Never", "90", "1e3s", "1h 5m", ".h", "2562048h", "9" * 5000 + "h"],
)
def test_a_protection_that_cannot_be_read_is_ignored_and_told(written: str) -> None:
    assert is_candidate(of_pool("a"), kept("a", written, 1), kept("b", written, None))
    there = world(named_pool())
    stand(there)
    raw = pod_manifest("a", node="n1", cpu="300m")
    raw["metadata"]["annotations"] = {keys.DO_NOT_DISRUPT: written}
    there.cluster.add(decode_pod(raw))
    there.provision(look=True)
    (message,) = there.messages("InvalidDoNotDisruptAnnotation", "Pod")
    assert repr(written) in message


def kept(name: str, span: str, minutes: int | None) -> Any:
    """Return a pod that started so long ago, or not yet, and is protected for a span."""
    raw = pod_manifest(name, node="a", cpu="300m")
    raw["metadata"]["annotations"] = {keys.DO_NOT_DISRUPT: span}
    if minutes is not None:
        raw["status"]["startTime"] = (LATER - timedelta(minutes=minutes)).isoformat()
    return decode_pod(raw)


def test_the_longest_of_several_protections_counts() -> None:
    over, lasting = kept("b", "1m", 5), kept("c", "1h", 5)
    assert is_candidate(of_pool("a"), over, kept("d", "4m", 5))
    assert not is_candidate(of_pool("a"), over, lasting)
    assert not is_candidate(of_pool("a"), lasting, over)


def test_with_a_grace_period_drift_begins_and_no_consolidation() -> None:
    limited = saving(labels={"team": "new"}, terminationGracePeriod="1h")
    drifted = of_pool("a", annotations=OLD)
    assert may_drift(drifted, used(annotations=KEEP), owner=limited)
    assert may_drift(drifted, used(), budgets=(budget(0),), owner=limited)
    assert not is_candidate(of_pool("a"), used(annotations=KEEP), pools=(limited,))


@pytest.mark.parametrize("key", [keys.ZONE, keys.CAPACITY_TYPE, keys.INSTANCE_TYPE])
def test_a_node_without_facts_may_drift_and_is_not_consolidated(key: str) -> None:
    bare = of_pool("a", annotations=OLD, labels={key: ""})
    assert may_drift(bare, used())
    assert not is_candidate(bare, used())


def cost(deletion: int = 0, priority: int = 0) -> int:
    given = {keys.POD_DELETION_COST: str(deletion)}
    return eviction_cost(pod(annotations=given, priority=priority))


def test_what_moving_a_pod_counts() -> None:
    assert eviction_cost(pod()) == PLAIN_POD_COST
    assert cost(deletion=2**26) > PLAIN_POD_COST < cost(priority=2**24)
    assert cost(deletion=-(2**26)) < PLAIN_POD_COST > cost(priority=-(2**24))
    assert cost(deletion=2**40) == 10 * PLAIN_POD_COST


def test_a_resting_node_is_left_to_its_own_change() -> None:
    seen = scene(of_pool("a"), of_pool("b"), bound=(used(),))
    resting = OngoingChanges(running=frozenset({"uid-a"}))
    assert changed(seen, pace=resting).remove == ("b",)
