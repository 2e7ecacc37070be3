"""What `dovetail migrate` shows and does: which nodes, what they cost, why some cannot."""

from typing import Any

import pytest

from functions.cli.migrate.handover import Direction, next_step
from functions.cli.migrate.migration import MigrationBlockedError
from shared.disruption.drift import shape_hash
from shared.model import labels as keys
from shared.model.errors import ConflictError, PermanentError
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.values import replace
from shared.ports import NodeChange
from tests.builders import node
from tests.unit.cli.migrate.changing_hands import CLASS, ChangingHands
from tests.unit.worlds import MINUTE, NAME, failing, instead

TAKE_OVER, HAND_BACK = Direction.TAKE_OVER, Direction.HAND_BACK


def refusal(found: ChangingHands, direction: Direction = TAKE_OVER) -> str:
    """Return why the only node of the survey does not change hands; moving it says the same."""
    (row,) = found.migration().survey(direction).rows
    with pytest.raises(MigrationBlockedError) as held:
        found.move(direction, row.node)
    assert str(held.value) == f"node {row.node}: {row.refusal}"
    return row.refusal


def change(found: ChangingHands, **fields: Any) -> None:
    known = found.world.cluster.node("n1")
    assert known is not None
    found.world.cluster.add(replace(known, resource_version="", **fields))


def test_a_survey_shows_each_node_with_its_price_by_node_pool() -> None:
    found = ChangingHands(nodes=2)
    found.world.cluster.add(node("other", labels={}, finalizers=()))
    survey = found.migration().survey(TAKE_OVER)
    assert [(row.node_pool, row.node, row.is_open) for row in survey.rows] == [
        ("general", "n1", True),
        ("general", "n2", True),
    ]
    assert {row.price_micros_per_hour for row in survey.rows} == {96_000}
    assert survey.rows[0].capacity_type == "on-demand"
    assert found.writes == []


def test_a_node_without_a_node_claim_is_not_of_karpenter_and_a_claim_without_a_node_waits() -> None:
    found = ChangingHands()
    found.add_node("n2")
    del found.world.cluster.node_values["n2"]
    rows = found.migration().survey(TAKE_OVER).rows
    assert [(row.node, row.refusal[:27]) for row in rows] == [
        ("general-n2", "this NodeClaim has no Node:"),
        ("n1", ""),
    ]


def test_nothing_changes_hands_while_karpenter_runs() -> None:
    found = ChangingHands()
    found.karpenter.reasons = ("Deployment karpenter/karpenter has 1 replicas: scale it",)
    with pytest.raises(MigrationBlockedError, match="has 1 replicas"):
        found.move(TAKE_OVER)
    assert found.writes == []


def test_karpenter_is_looked_for_again_before_each_step() -> None:
    found = ChangingHands()

    def start(_: str) -> None:
        if len(found.writes) == 6:
            found.karpenter.reasons = ("it was started",)

    found.after_each_write = start
    with pytest.raises(MigrationBlockedError, match="it was started"):
        found.move(TAKE_OVER)
    assert len(found.writes) == 6


def test_a_node_that_is_not_ready_keeps_its_owner() -> None:
    found = ChangingHands()
    found.world.kubelet_joins("n1", ready=False)
    assert "the Node is not Ready" in refusal(found)


def test_a_node_that_is_being_removed_keeps_its_owner() -> None:
    found = ChangingHands()
    change(found, deletion_at=found.world.clock.now())
    assert "it is being removed" in refusal(found)
    claim = ChangingHands()
    claim.karpenter.delete("general-n1", claim.world.clock.now())
    assert "it is being removed" in refusal(claim)


def test_a_node_whose_machine_does_not_run_keeps_its_owner() -> None:
    found = ChangingHands()
    found.world.cloud.end("i-n1")
    assert "EC2 shows no running instance i-n1" in refusal(found)
    unknown = ChangingHands()
    change(unknown, provider_id="kind://n1")
    unknown.karpenter.raws["general-n1"]["status"]["providerID"] = "kind://n1"
    assert "no running instance for its providerID" in refusal(unknown)


def test_a_node_that_karpenter_has_chosen_names_the_command_that_takes_its_taint_off() -> None:
    found = ChangingHands()
    change(found, taints=(Taint(key=keys.DISRUPTED_TAINT, effect=Effect.NO_SCHEDULE),))
    assert "kubectl taint node n1 karpenter.sh/disrupted-" in refusal(found)


def test_a_node_that_dovetail_removes_is_not_handed_back() -> None:
    found = ChangingHands()
    found.move(TAKE_OVER)
    change(found, annotations={**found.world.node.annotations, keys.REMOVAL_REASON: "expiration"})
    assert "Dovetail is removing it: expiration" in refusal(found, HAND_BACK)


def test_a_pool_that_dovetail_cannot_use_keeps_its_nodes() -> None:
    found = ChangingHands()
    found.world.cluster.apply({**CLASS, "spec": {**CLASS["spec"], "userData": "[oh"}})
    change(found, labels={**found.world.node.labels})
    assert "Dovetail cannot use its NodePool: " in refusal(found)


def test_a_node_without_a_node_pool_of_dovetail_keeps_its_owner() -> None:
    found = ChangingHands()
    change(found, labels={**found.world.node.labels, keys.NODE_POOL: "gone"})
    assert "there is no NodePool gone" in refusal(found)
    change(found, labels={k: v for k, v in found.world.node.labels.items() if k != keys.NODE_POOL})
    assert "it has no NodePool" in refusal(found)


def test_a_machine_that_is_not_tagged_as_the_clusters_keeps_its_owner() -> None:
    found = ChangingHands()
    found.tags.untag("i-n1", [f"kubernetes.io/cluster/{NAME}"])
    assert "lacks the tag kubernetes.io/cluster/test=owned" in refusal(found)


def test_a_node_claim_that_is_not_registered_or_has_other_finalizers_is_kept() -> None:
    found = ChangingHands()
    found.karpenter.raws["general-n1"]["status"]["conditions"] = []
    assert "is not registered yet" in refusal(found)
    held = ChangingHands()
    held.karpenter.raws["general-n1"]["metadata"]["finalizers"].append("example.com/audit")
    assert "finalizers of other programs: example.com/audit" in refusal(held)


def test_a_node_that_dovetail_launched_is_not_handed_back_and_says_what_to_do() -> None:
    found = ChangingHands()
    found.karpenter.raws.clear()
    change(found, annotations={keys.SLOT: "plan/0/0"})
    assert "Dovetail launched it: drain it" in refusal(found, HAND_BACK)
    assert found.migration().survey(TAKE_OVER).rows == ()


def test_a_kept_node_claim_that_somebody_changed_is_not_made_again() -> None:
    found = ChangingHands()
    found.move(TAKE_OVER)
    for broken in ("{", "[]", '{"name":"","spec":{}}'):
        change(found, annotations={**found.world.node.annotations, keys.NODE_CLAIM: broken})
        assert "it must hold a NodeClaim" in refusal(found, HAND_BACK)


def test_a_name_that_another_machine_has_is_not_taken_from_it() -> None:
    found = ChangingHands()
    found.move(TAKE_OVER)
    found.add_node("n2")
    found.karpenter.raws["general-n1"] = found.karpenter.raws.pop("general-n2")
    found.karpenter.raws["general-n1"]["metadata"]["name"] = "general-n1"
    (row,) = [row for row in found.migration().survey(HAND_BACK).rows if row.node == "n1"]
    assert "general-n1 is of another instance now" in row.refusal


def test_a_node_that_is_gone_does_not_change_hands() -> None:
    found = ChangingHands()
    with pytest.raises(MigrationBlockedError, match="node n9 is gone"):
        found.move(TAKE_OVER, "n9")


def test_an_adopted_node_drifts_when_its_pool_changes_and_stays_drifted_if_it_was() -> None:
    found = ChangingHands(nodes=2)
    found.karpenter.raws["general-n2"]["status"]["conditions"].append(
        {"type": "Drifted", "status": "True", "reason": "NodePoolDrifted"}
    )
    for name in ("n1", "n2"):
        found.move(TAKE_OVER, name)
    (pool,), _ = found.world.cluster.provisioners()
    written = [entry.annotations[keys.PROVISIONER_HASH] for entry in found.world.cluster.nodes()]
    assert written == [shape_hash(pool), "karpenter-NodePoolDrifted"]


@pytest.mark.parametrize(
    ("field", "annotation"),
    [
        ("expireAfter", keys.EXPIRE_AFTER),
        ("terminationGracePeriod", keys.TERMINATION_GRACE_PERIOD),
    ],
)
@pytest.mark.parametrize(
    ("said", "written"),
    [("720h", "2592000"), ("Never", "Never"), (None, None), ("soon", None)],
)
def test_an_adopted_node_lives_and_ends_as_its_node_claim_said(
    field: str, annotation: str, said: str | None, written: str | None
) -> None:
    found = ChangingHands()
    found.karpenter.raws["general-n1"]["spec"][field] = said
    found.move(TAKE_OVER)
    assert found.world.node.annotations.get(annotation) == written
    found.move(HAND_BACK)
    assert annotation not in found.world.node.annotations


def test_a_machine_of_an_unknown_type_is_taken_over_without_a_price() -> None:
    found = ChangingHands()
    found.world.catalog.missing = "no catalogue"
    found.move(TAKE_OVER)
    assert found.is_dovetails()
    assert found.world.node.annotations[keys.PRICE] == ""


def test_an_adopted_node_is_emptied_and_expired_as_any_other() -> None:
    found = ChangingHands()
    found.move(TAKE_OVER)
    found.world.sweep()
    kinds = {started.kind.value for started in found.world.outbox.timers}
    assert kinds == {"emptiness", "expiration"}


def test_sweep_terminates_nothing_between_any_two_writes() -> None:
    for direction in (TAKE_OVER, HAND_BACK):
        found = ChangingHands()
        if direction == HAND_BACK:
            found.move(TAKE_OVER)

        def each(_: str, found: ChangingHands = found) -> None:
            found.world.advance(10 * MINUTE)
            found.world.sweep()
            assert found.ended == []

        found.after_each_write = each
        found.move(direction)
        assert found.ended == []


def test_a_plan_that_is_under_way_is_waited_for() -> None:
    found = ChangingHands()
    found.world.ledger.acquire(NAME, "provision", found.world.clock.now())
    found.move(TAKE_OVER)
    assert found.is_dovetails()


def test_a_plan_asked_for_while_the_ledger_was_written_is_asked_for_again() -> None:
    found = ChangingHands()

    def each(write: str) -> None:
        if write == "fill_slot":
            found.world.ledger.acquire(NAME, "provision", found.world.clock.now())

    found.after_each_write = each
    found.move(TAKE_OVER)
    assert len(found.world.outbox.wakes) == 1


def test_a_slot_whose_instance_row_is_lost_is_written_again() -> None:
    found = ChangingHands()
    found.move_until_killed(TAKE_OVER, 3, before=False)
    found.world.ledger.drop_instance("i-n1")
    found.move(TAKE_OVER)
    assert found.is_dovetails()


def test_a_slot_that_is_still_open_is_closed_on_the_way_back() -> None:
    found = ChangingHands()
    found.move_until_killed(TAKE_OVER, 2, before=False)
    assert found.world.ledger.slots(NAME)
    found.move(HAND_BACK)
    assert found.is_karpenters()


def test_a_node_that_others_write_to_is_read_again() -> None:
    found = ChangingHands()
    original, times = found.world.cluster.change_node, iter(range(3))

    def beaten(known: Any, wanted: NodeChange) -> Any:
        if next(times, None) is not None:
            raise ConflictError("the kubelet was first")
        return original(known, wanted)

    instead(found.world.cluster, "change_node", beaten)
    found.move(TAKE_OVER)
    assert found.is_dovetails()


def test_a_finished_node_needs_no_step_even_without_a_machine() -> None:
    found = ChangingHands()
    seen = found.migration()._surveyor.read_node("n1")
    assert seen is not None
    assert next_step(replace(seen, instance=None), TAKE_OVER) is not None


def test_a_step_that_is_refused_for_good_ends_the_command() -> None:
    found = ChangingHands()
    instead(found.tags, "tag", failing(PermanentError("ec2 CreateTags: not allowed")))
    with pytest.raises(PermanentError, match="not allowed"):
        found.move(TAKE_OVER)
    assert found.ended == []
