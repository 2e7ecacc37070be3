"""Empty nodes and expired nodes."""

from datetime import timedelta
from typing import Any

import pytest

from shared.disruption.consolidation import ConsolidationResult, DisruptionMethod
from shared.model import labels as keys
from shared.model.kubernetes.pods import ControllerRef, Pod
from shared.nodes.leave.emptiness_timer import Emptiness
from shared.nodes.timers.heartbeats import last_heartbeats
from shared.ports import TimerKind
from tests.builders import NOT_READY, NOW, node, node_of, pod, provisioner, ref, slot
from tests.karpenter_cases.lifecycle.nodes import age_step, changed, empty_step, standing
from tests.unit.disruption.clusters import cluster, consolidated
from tests.unit.worlds import MINUTE, NAME, SECOND, World

TTL = 30 * SECOND
OWNER: dict[str, Any] = {"ttl_after_empty": TTL}
LAST = ControllerRef(kind="StatefulSet", name="db", uid="db")


def empty(*more: Any, **changes: Any) -> World:
    return standing(*more, owner=provisioner(**OWNER), **changes)


def begin(world: World) -> str:
    return Emptiness(world.ports).begin("n1")


def stamp(world: World) -> str | None:
    return world.node.annotations.get(keys.EMPTINESS_TIMESTAMP)


@pytest.mark.parametrize("ready", [None, False])
def test_a_node_that_is_not_ready_gets_no_stamp(*, ready: bool | None) -> None:
    world = empty(ready=ready, labels={**node().labels, keys.INITIALIZED: ""})
    assert begin(world) == "not empty"
    assert stamp(world) is None


def test_an_empty_node_is_stamped_and_watched() -> None:
    world = empty()
    begin(world)
    assert stamp(world) == NOW.isoformat()
    (timer,) = world.outbox.timers_of(TimerKind.EMPTINESS)
    assert timer.payload["wait_seconds"] == 30
    assert timer.payload["since"] == NOW.isoformat()
    assert (world.node.uid, "emptiness") in last_heartbeats(world.ledger, NAME)


def test_a_node_that_is_used_again_loses_its_stamp() -> None:
    world = empty()
    begin(world)
    world.cluster.add(pod(node_name="n1"))
    assert empty_step(world)["result"] == "not empty"
    assert stamp(world) is None


def test_node_that_stayed_empty_is_removed() -> None:
    world = empty()
    begin(world)
    world.advance(TTL)
    assert empty_step(world)["result"] == "removed"
    assert world.node.deletion_at == NOW + TTL


def test_a_node_that_was_empty_for_a_while_is_waited_for_to_the_second() -> None:
    world = empty()
    begin(world)
    world.advance(18 * SECOND)
    state = empty_step(world)
    assert (state["next"], state["wait_seconds"]) == ("wait", 12)
    assert world.node.deletion_at is None


def test_empty_nodes_are_removed_by_their_ttl() -> None:
    world = empty()
    world.sweep()
    world.advance(TTL)
    assert empty_step(world)["result"] == "removed"


def test_a_node_without_a_stamp_stays() -> None:
    world = empty()
    begin(world)
    world.advance(TTL)
    changed(world, annotations={})
    assert empty_step(world)["result"] == "not empty"
    assert world.node.deletion_at is None


@pytest.mark.parametrize("text", ["soon", "", "2026-13-01T00:00:00+00:00"])
def test_a_stamp_that_cannot_be_read_is_written_anew(text: str) -> None:
    world = empty()
    begin(world)
    world.advance(TTL)
    changed(world, annotations={**world.node.annotations, keys.EMPTINESS_TIMESTAMP: text})
    assert empty_step(world)["next"] == "done"
    assert world.node.deletion_at is None
    world.advance(5 * MINUTE)
    world.sweep()
    assert stamp(world) == world.clock.now().isoformat()
    world.advance(TTL)
    assert empty_step(world)["result"] == "removed"


def outlook(*names: str, bound: tuple[Pod, ...] = (), **more: Any) -> ConsolidationResult:
    return consolidated(cluster(*map(node_of, names), bound=bound, **more))


def removed(found: ConsolidationResult) -> list[str]:
    assert found.best is not None
    assert found.best.method == DisruptionMethod.EMPTY
    return list(found.best.remove)


def test_empty_node_is_removed_by_consolidation() -> None:
    assert removed(outlook("n1", "n2", bound=(pod("x", node_name="n2"),))) == ["n1"]


def test_many_empty_nodes_are_removed_together_with_consolidation() -> None:
    assert removed(outlook("n1", "n2", "n3")) == ["n1", "n2", "n3"]


def test_a_node_that_pods_are_promised_to_is_not_empty_to_consolidation() -> None:
    promised = slot(instance_id="i-n1", pods=(ref(pod("waiting")),))
    found = outlook("n1", "n2", slots=(promised,))
    assert removed(found) == ["n2"]


def test_an_empty_node_says_so_by_its_stamp() -> None:
    world = empty()
    assert begin(world) == "timer started"
    assert stamp(world) is not None


def test_when_emptiness_is_switched_off_the_stamp_is_removed() -> None:
    world = empty()
    begin(world)
    world.cluster.add(provisioner())
    assert empty_step(world)["result"] == "not empty"
    assert stamp(world) is None


def test_a_node_that_is_no_longer_initialized_loses_its_stamp() -> None:
    world = empty()
    begin(world)
    changed(world, taints=(NOT_READY,))
    assert empty_step(world)["result"] == "not empty"
    assert stamp(world) is None


def test_a_node_that_was_never_initialized_gets_no_stamp() -> None:
    world = empty(labels={keys.INITIALIZED: ""}, taints=(NOT_READY,))
    assert begin(world) == "not empty"
    world.sweep()
    assert stamp(world) is None


def test_when_the_node_is_gone_its_timer_ends() -> None:
    world = empty()
    begin(world)
    world.cluster.node_values.clear()
    assert empty_step(world)["result"] == "gone"
    assert last_heartbeats(world.ledger, NAME) == {}


@pytest.mark.parametrize(
    ("changes", "empties"),
    [({}, False), ({"deletion_at": NOW}, True), ({"deletion_at": NOW, "owner": LAST}, False)],
    ids=["pod", "leaving", "leaving-statefulset"],
)
def test_a_node_with_pods_loses_its_stamp(changes: dict[str, Any], *, empties: bool) -> None:
    # v0.31 counts pods that are leaving no more; v0.6.3 did.
    world = empty()
    begin(world)
    world.cluster.add(pod(node_name="n1", **changes))
    empty_step(world)
    assert (stamp(world) is not None) is empties


def test_a_node_that_pods_were_promised_to_meanwhile_loses_its_stamp() -> None:
    world = empty(labels={keys.INITIALIZED: ""})
    begin(world)
    one = slot(instance_id="i-n1", pods=(ref(pod("waiting")),))
    world.ledger.slot_values[NAME, one.name] = one
    world.advance(TTL)
    assert empty_step(world)["result"] == "not empty"
    assert stamp(world) is None


def test_a_node_without_an_end_to_its_life_is_not_watched() -> None:
    world = standing(created_at=NOW - timedelta(days=900))
    world.sweep()
    assert world.outbox.timers_of(TimerKind.EXPIRATION) == []
    assert age_step(world)["result"] == "lives for ever"


def test_a_node_without_a_provisioner_does_not_age() -> None:
    world = World(provisioner(ttl_until_expired=MINUTE), node(labels={}))
    world.advance(60 * MINUTE)
    world.sweep()
    assert world.outbox.timers_of(TimerKind.EXPIRATION) == []
    assert age_step(world)["next"] == "done"
    assert world.node.deletion_at is None


def test_node_that_is_too_old_is_removed() -> None:
    world = standing(owner=provisioner(ttl_until_expired=MINUTE))
    assert age_step(world)["wait_seconds"] == 60
    world.advance(MINUTE)
    assert age_step(world)["result"] == "removed"
    assert world.node.deletion_at is not None
