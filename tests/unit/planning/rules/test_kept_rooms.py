"""Rooms that are kept between snapshots: what was asked before changes no answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.planning.rules import existing_nodes as module
from shared.planning.rules.existing_nodes import ExistingNode, counted_nodes, existing_nodes
from tests import builders as make

NAMES = ("n1", "n2", "n3")
_POD = st.builds(
    lambda number, node, cpu: make.pod(f"p{number}", node_name=node, cpu=cpu),
    st.integers(0, 5),
    st.sampled_from(NAMES),
    st.sampled_from((100, 700)),
)
_NODE = st.builds(
    lambda name, zone, ready, cordoned, machine: make.node(
        name,
        labels={"topology.kubernetes.io/zone": zone},
        ready=ready,
        unschedulable=cordoned,
        provider_id=f"aws:///a/i-{machine}",
    ),
    st.sampled_from(NAMES),
    st.sampled_from("ab"),
    st.sampled_from((True, True, None)),
    st.sampled_from((False, False, True)),
    st.sampled_from((1, 2)),
)
_PENDING = st.builds(
    lambda node: make.pod("waits", nominated_node=node), st.sampled_from(("", *NAMES))
)
_SNAPSHOT = st.builds(
    lambda bound, nodes, pending, slots, daemonsets, cluster: make.snapshot(
        pending,
        bound=tuple(bound),
        nodes=tuple(sorted(nodes, key=lambda node: node.name)),
        slots=slots,
        daemonsets=daemonsets,
        cluster=cluster,
    ),
    st.lists(_POD, max_size=6, unique_by=lambda pod: pod.uid),
    st.lists(_NODE, max_size=3, unique_by=lambda node: node.name),
    _PENDING,
    st.sampled_from(((), (make.slot(instance_id="i-1"),))),
    st.sampled_from(((), (make.daemonset(),), (make.daemonset(cpu=300),))),
    st.sampled_from(("a", "b")),
)


def afresh(snapshot: ClusterSnapshot) -> tuple[ExistingNode, ...]:
    """Return the rooms of a cluster that was never asked for before."""
    module._cached_nodes.clear()
    return existing_nodes(snapshot)


@given(st.lists(_SNAPSHOT, min_size=2, max_size=5))
def test_what_was_asked_before_changes_no_room(snapshots: list[ClusterSnapshot]) -> None:
    expected = [afresh(snapshot) for snapshot in snapshots]
    module._cached_nodes.clear()
    assert [existing_nodes(snapshot) for snapshot in snapshots] == expected
    assert [existing_nodes(snapshot) for snapshot in snapshots] == expected


def test_only_the_room_of_what_changed_is_made_anew() -> None:
    standing = (make.pod("a", node_name="n1"), make.pod("b", node_name="n2"))
    before = make.snapshot(nodes=(make.node("n1"), make.node("n2")), bound=standing)
    bigger = replace(before, bound=(standing[0], make.pod("b", node_name="n2", cpu=900)))
    first, second = afresh(before)
    again, other = existing_nodes(bigger)
    assert again is first
    assert other.available != second.available


def test_rooms_are_made_anew_when_daemonsets_change() -> None:
    world = make.snapshot(nodes=(make.node(),), daemonsets=(make.daemonset(),))
    (first,) = afresh(world)
    (same,) = existing_nodes(replace(world, daemonsets=(make.daemonset(),)))
    (less,) = existing_nodes(replace(world, daemonsets=(make.daemonset(cpu=300),)))
    assert same is first
    assert first.available["cpu"] - less.available["cpu"] == 200


def test_the_rooms_of_few_clusters_are_kept() -> None:
    module._cached_nodes.clear()
    for number in range(module._MOST_CACHED + 3):
        existing_nodes(make.snapshot(nodes=(make.node(),), cluster=f"c{number}"))
    assert len(module._cached_nodes) == module._MOST_CACHED
    assert "c0" not in module._cached_nodes


@pytest.mark.parametrize("cordoned", [False, True])
def test_a_node_that_is_no_room_counts_with_its_pods(cordoned: bool) -> None:  # noqa: FBT001 -- of the test
    node = make.node("n1", unschedulable=cordoned)
    snapshot = make.snapshot(nodes=(node,), bound=make.pods(2, node_name="n1"))
    counted = counted_nodes(snapshot, existing_nodes(snapshot))
    assert [entry.pods for entry in counted] == ([snapshot.bound] if cordoned else [])
