"""Whether the instances of a NodePool join, as its condition says."""

import pytest

from shared.model import labels as keys
from shared.model.note import Note
from shared.nodes.launch.refusals.registration_health import (
    REGISTRATION_NOTES,
    registers,
    save_registration,
)
from tests.builders import node
from tests.unit.worlds import NAME, World


def joined(world: World, results: str, shape: str = "s1") -> Note:
    """Note results, 1 for an instance that joined and 0 for one that did not."""
    labels = {**node().labels, keys.NODE_POOL: "pool"}
    one = node(labels=labels, annotations={keys.PROVISIONER_HASH: shape})
    for result in results:
        save_registration(world.ports, one, joined=result == "1")
    return world.ledger.note(NAME, f"{REGISTRATION_NOTES}pool")


@pytest.mark.parametrize(
    ("results", "healthy"),
    [
        ("", None),
        ("1", True),
        ("0", None),
        ("10", True),
        ("010", False),
        ("00111", True),
    ],
)
def test_two_of_the_last_four_that_did_not_join_are_too_many(
    results: str, *, healthy: bool | None
) -> None:
    assert registers(joined(World(), results).value, "s1") is healthy


def test_results_of_another_shape_do_not_count() -> None:
    world = World()
    joined(world, "00")
    assert registers(joined(world, "").value, "s2") is None
    assert registers(joined(world, "1", "s2").value, "s2") is True


def test_nodes_of_a_provisioner_leave_no_result() -> None:
    world = World()
    save_registration(world.ports, node(), joined=True)
    assert world.ledger.notes(NAME, REGISTRATION_NOTES) == ()
