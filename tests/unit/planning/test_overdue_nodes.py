"""Ready nodes that wait too long for something are no capacity for further pods."""

from datetime import timedelta
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.snapshot import ClusterSnapshot
from shared.planning.decide import decide
from shared.planning.overdue_nodes import without_overdue
from tests import builders as make
from tests.builders import NOW

PATIENCE = timedelta(minutes=5)
LONG_AGO = NOW - timedelta(minutes=6)
WEB = make.pod("web", cpu=100)
PROMISED = make.pod("promised", cpu=100)


def waiting(**changes: Any) -> Node:
    return make.node(**{"ready_changed_at": LONG_AGO, **changes})


def seen(node: Node) -> ClusterSnapshot:
    promise = make.slot(instance_id="i-n1", node_name="n1", pods=(make.ref(PROMISED),))
    snapshot = make.snapshot(WEB, PROMISED, nodes=(node,), slots=(promise,))
    return without_overdue(snapshot, PATIENCE)


def test_further_pods_get_a_node_of_their_own_and_promised_ones_stay_promised() -> None:
    (planned,) = decide(seen(waiting())).nodes
    assert [pod.name for pod in planned.pods] == ["web"]


@pytest.mark.parametrize(
    "changes",
    [
        {"ready_changed_at": NOW - timedelta(minutes=4)},
        {"ready_changed_at": None},
        {"ready": False, "taints": (make.NOT_READY,)},
        {"labels": {**make.node().labels, keys.INITIALIZED: "true"}},
    ],
)
def test_node_counts_before_its_time_is_over_and_again_once_it_is_initialized(
    changes: dict[str, Any],
) -> None:
    plan = decide(seen(waiting(**changes)))
    assert plan.nodes == ()
    assert [placement.node for placement in plan.placements] == ["n1"]


def test_nodes_of_others_are_not_judged() -> None:
    foreign = waiting(finalizers=(), labels={}, provider_id="")
    snapshot = make.snapshot(WEB, nodes=(foreign,))
    assert without_overdue(snapshot, PATIENCE) is snapshot
