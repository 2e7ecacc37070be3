"""Nodes whose pods have just changed are left alone by consolidation."""

from datetime import timedelta

from shared.disruption.evaluation import DisruptionCause, DisruptionInput, as_simulated, evaluate
from shared.disruption.fingerprint import fingerprint
from shared.disruption.pod_changes import pod_digests, recently_changed
from shared.disruption.settings import DisruptionSettings
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from tests.builders import NOW, node_of, pod, provisioner
from tests.unit.disruption.clusters import LATER, PACKING, cluster, on

MINUTE = timedelta(minutes=1)
OWNER = provisioner(consolidation=True, consolidate_after=10 * MINUTE)


def seen_at(minutes: int, *pods: str, **more: object) -> ClusterSnapshot:
    bound = tuple(on("a", number=int(name), **more) for name in pods)
    taken = LATER + minutes * MINUTE
    return cluster(node_of("a"), bound=bound, provisioners=(OWNER,), taken_at=taken)


def test_a_node_rests_once_its_pods_have_not_changed_for_long_enough() -> None:
    first = pod_digests(seen_at(0, "1", "2"), {})
    assert recently_changed(seen_at(0, "1", "2"), first) == frozenset()
    second = pod_digests(seen_at(1, "1"), first)
    assert recently_changed(seen_at(1, "1"), second) == {"uid-a"}
    third = pod_digests(seen_at(10, "1"), second)
    assert third == second
    assert recently_changed(seen_at(10, "1"), third) == {"uid-a"}
    assert recently_changed(seen_at(11, "1"), third) == frozenset()


def test_at_first_sight_the_start_of_its_newest_pod_counts() -> None:
    started = seen_at(0, "1", started_at=LATER - 3 * MINUTE)
    assert recently_changed(started, pod_digests(started, {})) == {"uid-a"}
    unknown = replace(started, nodes=(node_of("a", created_at=None),), bound=())
    assert pod_digests(unknown, {})["uid-a"][1] == LATER.isoformat()


def test_pods_of_daemonsets_and_pods_that_leave_are_no_pods_of_it() -> None:
    alone = pod_digests(seen_at(0, "1"), {})
    with_leaving = seen_at(5, "1")
    leaving = pod("b", node_name="a", deletion_at=NOW)
    with_leaving = replace(with_leaving, bound=(*with_leaving.bound, leaving))
    assert pod_digests(with_leaving, alone) == alone


def test_nodes_of_owners_without_a_span_are_not_remembered() -> None:
    plain = cluster(node_of("a"), provisioners=(provisioner(consolidation=True),))
    assert pod_digests(plain, {}) == {}
    both = cluster(node_of("a"), node_of("b", labels={"x": "y"}), provisioners=(OWNER,))
    assert pod_digests(both, {}).keys() == {"uid-a", "uid-b"}
    gone = cluster(node_of("a"), provisioners=(provisioner(),))
    assert recently_changed(gone, {"uid-a": ("", LATER.isoformat())}) == frozenset()


def scene(*uids: str) -> DisruptionInput:
    seen = cluster(node_of("a"), node_of("b"), bound=(on("a"), on("b")), provisioners=(OWNER,))
    return DisruptionInput(
        snapshot=seen,
        budgets=(),
        settings=DisruptionSettings(budget_percent=100),
        packing=PACKING,
        recently_changed=frozenset(uids),
    )


def test_consolidation_neither_removes_such_a_node_nor_moves_pods_to_it() -> None:
    assert evaluate(scene()).change is not None
    found = evaluate(scene("uid-a")).change
    assert found is None or found.remove == ("b",)
    closed = as_simulated(scene("uid-a"), DisruptionCause.CONSOLIDATION).snapshot.nodes
    assert [node.unschedulable for node in closed] == [True, False]
    open_to_others = as_simulated(scene("uid-a"), DisruptionCause.DRIFT).snapshot.nodes
    assert not any(node.unschedulable for node in open_to_others)
    assert evaluate(scene("uid-a", "uid-b")).reason == "no node may be disrupted"
    assert fingerprint(scene("uid-a")) != fingerprint(scene())
