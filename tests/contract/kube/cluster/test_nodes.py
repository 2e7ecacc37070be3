"""The Cluster port: nodes."""

import pytest

from shared.model import labels as keys
from shared.model.errors import ConflictError, NotFoundError, PermanentError
from shared.model.kubernetes.taints import Effect, Taint
from shared.ports import NodeChange
from tests.contract.kube.worlds import FINALIZER, World, find_node, manifest


def test_a_node_is_made_as_the_manifest_says(world: World) -> None:
    made = world.cluster.create_node(manifest())
    assert made == find_node(world)
    assert made.is_ours
    assert made.instance_id == "i-0123"
    assert made.labels[keys.ZONE] == "us-west-2a"
    assert made.annotations[keys.SLOT] == "p/0/0"
    # The API server adds a taint of its own.
    assert set(manifest().taints) <= set(made.taints)
    assert made.ready is None
    assert (made.capacity, made.allocatable) == (manifest().capacity, manifest().allocatable)


def test_a_node_with_the_same_taint_twice_is_refused_also_when_one_exists(world: World) -> None:
    twice = manifest(taints=(Taint(key="team", value="b", effect=Effect.NO_SCHEDULE),))
    with pytest.raises(PermanentError, match="taints must be unique by key and effect pair"):
        world.cluster.create_node(twice)
    world.cluster.create_node(manifest())
    with pytest.raises(PermanentError, match="taints must be unique by key and effect pair"):
        world.cluster.create_node(twice)


def test_a_node_that_exists_is_returned_as_it_is(world: World) -> None:
    made = world.cluster.create_node(manifest())
    again = world.cluster.create_node(manifest(finalizers=()))
    assert (again.uid, again.finalizers) == (made.uid, (FINALIZER,))
    assert [node.name for node in world.cluster.nodes()] == ["n1"]


def test_a_node_is_changed_in_every_way_at_once(world: World) -> None:
    made = world.cluster.create_node(manifest())
    changed = world.cluster.change_node(
        made,
        NodeChange(
            unschedulable=True,
            set_labels={"a/b": "x", keys.ZONE: None},
            set_annotations={keys.SLOT: None, "note": "y", "absent": None},
            remove_taint_keys=frozenset({keys.NOT_READY_TAINT, "absent"}),
            add_taints=(
                Taint(key="team", value="ignored", effect=Effect.NO_SCHEDULE),
                Taint(key="new", effect=Effect.NO_EXECUTE),
            ),
        ),
    )
    assert changed == find_node(world)
    assert changed.unschedulable
    assert changed.labels["a/b"] == "x"
    assert keys.ZONE not in changed.labels
    assert changed.annotations == {"note": "y"}
    taints = {(taint.key, taint.value) for taint in changed.taints}
    assert (keys.NOT_READY_TAINT, "") not in taints
    assert {("team", "a"), ("new", "")} <= taints
    assert ("team", "ignored") not in taints
    assert changed.resource_version != made.resource_version
    back = world.cluster.change_node(changed, NodeChange(unschedulable=False))
    assert not back.unschedulable


def test_all_taints_can_be_replaced(world: World) -> None:
    made = world.cluster.create_node(manifest())
    bare = world.cluster.change_node(
        made, NodeChange(remove_taint_keys=frozenset(taint.key for taint in made.taints))
    )
    assert bare.taints == ()
    added = Taint(key="x", value="y", effect=Effect.NO_SCHEDULE)
    assert world.cluster.change_node(bare, NodeChange(add_taints=(added,))).taints == (added,)


def test_a_node_without_maps_gets_them(world: World) -> None:
    world.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "spec": {}})
    node = find_node(world)
    changed = world.cluster.change_node(
        node,
        NodeChange(
            set_labels={"a": "b"},
            set_annotations={"c": "d"},
            finalizers=(FINALIZER,),
            provider_id="aws:///us-west-2a/i-9",
        ),
    )
    assert changed.labels["a"] == "b"
    assert changed.annotations["c"] == "d"
    assert changed.finalizers == (FINALIZER,)
    assert changed.instance_id == "i-9"


def test_a_change_to_a_node_that_changed_meanwhile_is_a_conflict(world: World) -> None:
    made = world.cluster.create_node(manifest())
    world.cluster.change_node(made, NodeChange(unschedulable=True))
    with pytest.raises(ConflictError):
        world.cluster.change_node(made, NodeChange(set_labels={"a": "b"}))
    with pytest.raises(ConflictError):
        world.cluster.delete_node(made)
    assert "a" not in find_node(world).labels


def test_a_change_to_a_node_that_is_gone_is_not_found(world: World) -> None:
    made = world.cluster.create_node(manifest(finalizers=()))
    world.cluster.delete_node(made)
    with pytest.raises(NotFoundError):
        world.cluster.change_node(made, NodeChange(unschedulable=True))
    world.cluster.delete_node(made)


def test_a_finalizer_holds_a_deleted_node_until_it_is_dropped(world: World) -> None:
    made = world.cluster.create_node(manifest())
    world.cluster.delete_node(made)
    held = find_node(world)
    assert held.deletion_at is not None
    world.cluster.delete_node(held)
    world.cluster.change_node(find_node(world), NodeChange(finalizers=()))
    assert world.cluster.node("n1") is None
