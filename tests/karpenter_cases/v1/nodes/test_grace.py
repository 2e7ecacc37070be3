"""How long a drain of a NodePool's node may last, and when its nodes expire."""

from datetime import timedelta
from typing import Any

import pytest

from shared.model import labels as keys
from shared.nodes.leave.expiration_timer import Expiration
from shared.ports import TimerKind
from tests.builders import NOW, budget, pod
from tests.karpenter_cases.v1.nodes.ending import drain, evicted, going
from tests.karpenter_cases.v1.worlds import named_pool, stand, world
from tests.unit.worlds import MINUTE, SECOND, World

HOUR = timedelta(hours=1)
GRACE = {"terminationGracePeriod": "1h"}
KEEP = {keys.DO_NOT_DISRUPT: "true"}


def state_of(there: World) -> Any:
    return there.outbox.timers_of(TimerKind.TERMINATION)[0].payload


def held(seconds: int = 1800) -> World:
    """Return a node that goes, with a pod that a budget holds."""
    there = going(pod(node_name="n1", grace_period_seconds=seconds), spec=GRACE)
    there.cluster.budgeted.add("default/a")
    drain(there)
    return there


def test_a_pod_that_must_stay_is_waited_for() -> None:
    there = going(pod(node_name="n1", annotations=KEEP), pod("b", node_name="n1"))
    drain(there)
    assert evicted(there) == ["default/b"]
    there.cluster.kubelets_stop_pods()
    assert drain(there)["next"] == "wait"
    assert len(there.alive) == 1


def test_near_the_end_a_pod_is_deleted_and_not_before() -> None:
    there = held()
    there.advance(29 * MINUTE)
    drain(there)
    assert there.cluster.pods["default/a"].deletion_at is None
    there.advance(2 * MINUTE)
    drain(there)
    assert there.cluster.pods["default/a"].deletion_at is not None


def test_a_pod_whose_time_fits_is_not_deleted_yet() -> None:
    there = held(seconds=60)
    there.advance(HOUR - 61 * SECOND)
    drain(there)
    assert there.cluster.pods["default/a"].deletion_at is None
    there.advance(SECOND)
    drain(there)
    assert there.cluster.pods["default/a"].deletion_at == NOW + HOUR


def test_a_tier_that_is_stuck_keeps_no_later_pod_past_the_end() -> None:
    critical = {"priority_class": "system-node-critical", "grace_period_seconds": 1800}
    there = going(
        pod(node_name="n1", grace_period_seconds=30),
        pod("z", node_name="n1", **critical),
        spec=GRACE,
    )
    there.cluster.budgeted.add("default/a")
    drain(there)
    there.advance(31 * MINUTE)
    drain(there)
    assert there.cluster.called("delete_pod") == ["default/z"]
    assert there.cluster.pods["default/a"].deletion_at is None


def test_a_pod_that_would_end_too_late_is_brought_forward() -> None:
    late = pod(node_name="n1", deletion_at=NOW + 3 * HOUR, grace_period_seconds=10800)
    early = pod("b", node_name="n1", deletion_at=NOW + HOUR / 2, grace_period_seconds=10800)
    there = going(late, early, spec=GRACE)
    drain(there)
    assert there.cluster.called("delete_pod") == ["default/a"]
    assert there.cluster.pods["default/a"].deletion_at == NOW + HOUR
    assert there.cluster.pods["default/b"].deletion_at == NOW + HOUR / 2


def test_no_pod_gets_less_than_a_second() -> None:
    there = held(seconds=30)
    there.advance(HOUR - timedelta(milliseconds=100))
    drain(there)
    found = there.cluster.pods["default/a"].deletion_at
    assert found == there.clock.now() + SECOND


def test_without_a_grace_period_no_end_is_written() -> None:
    there = going(pod(node_name="n1"))
    drain(there)
    assert keys.TERMINATION_TIMESTAMP not in there.node.annotations
    limited = held()
    first = limited.node.annotations[keys.TERMINATION_TIMESTAMP]
    limited.advance(MINUTE)
    drain(limited)
    assert limited.node.annotations[keys.TERMINATION_TIMESTAMP] == first


def test_the_grace_period_is_that_of_the_nodes_pool() -> None:
    end = held().node.annotations[keys.TERMINATION_TIMESTAMP]
    assert end.startswith((NOW + HOUR).isoformat()[:16])


# --- expiration


def aging(span: str, *members: Any, **changes: Any) -> World:
    there = world(named_pool(spec={"expireAfter": span}))
    there.cluster.add(*members)
    stand(there, **changes)
    return there


def age(there: World) -> Any:
    state = {"cluster": "test", "node": "n1", "uid": there.node.uid, "since": ""}
    return Expiration(there.ports).step(state)


def test_a_node_without_an_end_stays_and_a_young_one_is_looked_at_again() -> None:
    there = aging("Never")
    there.advance(1000 * HOUR)
    assert age(there)["result"] == "lives for ever"
    young = aging("2h")
    assert age(young)["next"] == "wait"
    assert young.node.deletion_at is None


def expired(*members: Any, **changes: Any) -> World:
    there = aging("1h", *members, **changes)
    there.advance(HOUR + SECOND)
    assert age(there)["result"] == "removed"
    return there


def test_an_old_node_is_removed_for_that_reason() -> None:
    there = expired()
    assert there.node.deletion_at is not None
    assert there.node.annotations[keys.REMOVAL_REASON] == "expiration"


def test_a_node_that_goes_is_not_removed_twice() -> None:
    there = aging("1h", deletion_at=NOW)
    there.advance(2 * HOUR)
    assert age(there)["next"] == "done"
    assert there.cluster.called("delete_node") == []


@pytest.mark.parametrize("holder", ["pod", "budget", "pool"])
def test_nothing_holds_an_old_node(holder: str) -> None:
    members = {
        "pod": (pod(node_name="n1", annotations=KEEP),),
        "budget": (pod(node_name="n1"), budget(0)),
        "pool": (pod(node_name="n1"),),
    }
    disruption = {"budgets": [{"nodes": "0"}]} if holder == "pool" else {}
    there = world(named_pool(spec={"expireAfter": "1h"}, disruption=disruption))
    there.cluster.add(*members[holder])
    stand(there)
    there.advance(HOUR + SECOND)
    assert age(there)["result"] == "removed"
