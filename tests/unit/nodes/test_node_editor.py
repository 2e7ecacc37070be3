"""Changing a Node that controllers write to at the same time."""

import pytest

from shared.model.errors import ConflictError, NotFoundError
from shared.model.kubernetes.nodes import Node
from shared.model.values import replace
from shared.nodes.node_editor import change_node
from shared.ports import NodeChange
from tests.builders import node
from tests.unit.worlds import World

LABEL = NodeChange(set_labels={"a": "b"})


def test_a_node_that_was_written_to_is_read_again_and_changed_as_it_is_then() -> None:
    world = World(node(finalizers=("ours", "first")))
    read = world.node
    world.cluster.change_node(read, NodeChange(finalizers=("ours", "second")))

    def without_ours(fresh: Node) -> NodeChange:
        return NodeChange(
            finalizers=tuple(finalizer for finalizer in fresh.finalizers if finalizer != "ours")
        )

    assert change_node(world.ports, read, without_ours).finalizers == ("second",)


def test_a_node_that_needs_no_change_is_not_written() -> None:
    world = World(node())
    assert change_node(world.ports, world.node, lambda _: None) == world.node
    assert world.cluster.calls == []


def test_another_node_of_the_same_name_is_not_changed() -> None:
    world = World(node())
    read = world.node
    world.cluster.add(node(uid="another"))
    with pytest.raises(NotFoundError, match="node n1 is gone"):
        change_node(world.ports, read, LABEL)
    world.cluster.node_values.clear()
    with pytest.raises(NotFoundError):
        change_node(world.ports, read, LABEL)


def test_a_node_that_is_written_to_all_the_time_is_a_conflict() -> None:
    world = World(node())
    world.cluster.fail_next("change_node", *[ConflictError("written")] * 4)
    with pytest.raises(ConflictError):
        change_node(world.ports, world.node, LABEL)
    assert len(world.cluster.called("change_node")) == 4


def test_a_node_that_lost_the_label_of_its_owner_meanwhile_is_not_changed() -> None:
    world = World(node())
    read = world.node
    world.cluster.add(replace(read, labels={}, resource_version="2"))
    with pytest.raises(ConflictError):
        change_node(world.ports, read, LABEL)
    assert len(world.cluster.called("change_node")) == 1


def test_a_node_that_was_read_without_the_label_of_its_owner_is_not_changed() -> None:
    world = World(replace(node(), labels={}))
    with pytest.raises(ConflictError):
        change_node(world.ports, world.node, LABEL)
    assert world.cluster.called("change_node") == []
