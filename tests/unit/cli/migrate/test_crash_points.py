"""Nodes change hands: at every write the process may end, and Karpenter may start."""

from itertools import count

import pytest

from functions.cli.migrate.handover import Direction, HandoverStep
from shared.model import labels as keys
from shared.model.errors import ConflictError
from tests.unit.cli.migrate.changing_hands import ChangingHands

TAKE_OVER = [
    HandoverStep.KEEP_CLAIM,
    HandoverStep.WRITE_LEDGER,
    HandoverStep.ADD_DOVETAIL_TAGS,
    HandoverStep.REMOVE_KARPENTER_TAGS,
    HandoverStep.UNLINK_NODE,
    HandoverStep.REMOVE_CLAIM_FINALIZER,
    HandoverStep.DELETE_CLAIM,
    HandoverStep.OWN_NODE,
    HandoverStep.CLOSE_SLOT,
]
# The status is written together with the NodeClaim.
HAND_BACK = [
    HandoverStep.DISOWN_NODE,
    HandoverStep.MAKE_CLAIM,
    HandoverStep.LINK_NODE,
    HandoverStep.ADD_KARPENTER_TAGS,
    HandoverStep.REMOVE_DOVETAIL_TAGS,
    HandoverStep.DROP_LEDGER,
    HandoverStep.FORGET_CLAIM,
]


def prepared(direction: Direction) -> ChangingHands:
    """A node that is about to go that way."""
    found = ChangingHands()
    if direction == Direction.HAND_BACK:
        found.move(Direction.TAKE_OVER)
    return found


def has_changed(found: ChangingHands, direction: Direction) -> bool:
    if direction == Direction.TAKE_OVER:
        return found.is_dovetails()
    # It adds its finalizer to a NodeClaim that has lost it.
    found.controllers.run()
    return found.is_karpenters() and found.ended == []


def test_a_node_is_taken_over_in_the_order_that_keeps_its_machine() -> None:
    found = ChangingHands()
    assert found.move(Direction.TAKE_OVER) == TAKE_OVER
    assert found.is_dovetails()
    assert found.move(Direction.TAKE_OVER) == []


def test_a_node_is_handed_back_with_the_name_and_the_spec_that_its_node_claim_had() -> None:
    found = ChangingHands()
    before = found.kept()
    found.move(Direction.TAKE_OVER)
    assert found.kept() == []
    assert found.move(Direction.HAND_BACK) == HAND_BACK
    assert found.is_karpenters()
    assert found.kept() == before
    assert found.move(Direction.TAKE_OVER) == TAKE_OVER


@pytest.mark.parametrize("direction", list(Direction))
@pytest.mark.parametrize("before", [True, False])
def test_killed_at_any_write_and_run_again_it_ends_well(
    direction: Direction, *, before: bool
) -> None:
    for write in count():
        found = prepared(direction)
        killed = found.move_until_killed(direction, write, before=before)
        found.move(direction)
        assert has_changed(found, direction), (write, found.writes)
        assert found.ended == []
        if not killed:
            assert write > len(HAND_BACK)
            break


@pytest.mark.parametrize("first", list(Direction))
@pytest.mark.parametrize("before", [True, False])
def test_killed_at_any_write_it_can_be_turned_round(first: Direction, *, before: bool) -> None:
    (then,) = set(Direction) - {first}
    for write in count():
        found = prepared(first)
        killed = found.move_until_killed(first, write, before=before)
        rows = found.migration().survey(then).rows
        for row in rows:
            found.move(then, row.node)
        assert has_changed(found, then), (write, found.writes)
        assert found.ended == []
        if not killed:
            break


@pytest.mark.parametrize("direction", list(Direction))
def test_karpenter_started_between_any_two_writes_terminates_no_machine(
    direction: Direction,
) -> None:
    for write in count(1):
        found = prepared(direction)
        start = len(found.writes)

        def each(name: str, found: ChangingHands = found, at: int = start + write) -> None:
            # After that one write it would launch a machine: a test below shows it.
            if len(found.writes) == at and name != "make_node_claim":
                found.controllers.run()
            assert found.ended == [], found.writes

        found.after_each_write = each
        found.move(direction)
        assert has_changed(found, direction), (write, found.writes)
        assert found.controllers.launched == []
        if len(found.writes) < start + write:
            break


def test_beside_a_karpenter_that_never_rests_no_node_claim_is_deleted() -> None:
    """Each look misses it, as a check can; the NodeClaim is deleted as it was read or not."""
    found = ChangingHands()
    found.after_each_write = lambda _: found.controllers.run()
    with pytest.raises(ConflictError, match="after 20 tries not finalizer removed"):
        found.move(Direction.TAKE_OVER)
    assert len(found.kept()) == 1
    assert found.ended == []


@pytest.mark.parametrize("direction", list(Direction))
def test_karpenter_started_where_it_was_killed_terminates_no_machine(direction: Direction) -> None:
    for write in count():
        found = prepared(direction)
        killed = found.move_until_killed(direction, write, before=False)
        last = found.writes[-1]
        if last != "make_node_claim":
            found.controllers.run()
            assert found.ended == [], found.writes
            found.move(direction)
            assert has_changed(found, direction), found.writes
        if not killed:
            break


def test_karpenter_that_starts_before_the_status_launches_a_machine_and_terminates_none() -> None:
    found = prepared(Direction.HAND_BACK)
    assert found.move_until_killed(
        Direction.HAND_BACK, found_at(found, "make_node_claim"), before=False
    )
    found.controllers.run()
    assert found.controllers.launched == ["general-n1"]
    assert found.ended == []
    (row,) = found.migration().survey(Direction.HAND_BACK).rows
    assert "general-n1 is of another instance now" in row.refusal


def found_at(found: ChangingHands, write: str) -> int:
    """Return which write of the way back this is."""
    trial = prepared(Direction.HAND_BACK)
    start = len(trial.writes)
    trial.move(Direction.HAND_BACK)
    return trial.writes[start:].index(write)


def test_the_stand_in_terminates_what_loses_its_node_claim_or_its_tags() -> None:
    """So that the tests above mean something: each wrong order costs the machine."""
    unclaimed = ChangingHands()
    (claim,) = unclaimed.karpenter.node_claims()
    unclaimed.karpenter.raws.clear()
    unclaimed.controllers.run()
    assert unclaimed.ended == ["i-n1"]

    deleted = ChangingHands()
    (claim,) = deleted.karpenter.node_claims()
    deleted.karpenter.delete_node_claim(claim)
    deleted.controllers.run()
    assert deleted.ended == ["i-n1"]

    untagged = ChangingHands()
    untagged.tags.untag("i-n1", [keys.NODE_POOL])
    untagged.world.kubelet_joins("n1", ready=False)
    untagged.controllers.run()
    assert untagged.ended == ["i-n1"]
