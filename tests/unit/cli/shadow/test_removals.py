"""Which nodes of the shadow fleet are removed, when, and until when they are paid."""

from datetime import timedelta

import pytest

from shared.model import labels as keys
from shared.model.dialect import OwnerKind
from shared.model.node_budgets import DisruptionReason, NodeBudget
from shared.model.values import replace
from tests import builders as make
from tests.unit.cli.shadow.stepping import MINUTE, NOW, OWNER, RULES, Watched, on, real


def test_an_empty_node_is_paid_until_it_is_removed() -> None:
    watched = Watched()
    nodes = [real("a"), real("b")]
    assert watched.see(nodes, [on("a", "one", cpu=1500)]) == [
        "would remove 1 node: 1 × m5.large on-demand; $0.0960/h; consolidation: saves $0.0960/h"
    ]
    assert watched.running == ["a m5.large"]
    assert watched.fleet.nodes["b"].run.ended_at == NOW


def test_a_replaced_node_is_paid_until_its_replacement_has_booted_and_it_is_drained() -> None:
    watched = Watched()
    pod = on("a", "one", cpu=1500)
    (said,) = watched.see([real("a", "m5.2xlarge")], [pod])
    assert said == (
        "would remove 1 node: 1 × m5.2xlarge on-demand; $0.3840/h; consolidation: saves $0.2880/h, "
        "once 1 × m5.large on-demand at $0.0960/h can take their pods"
    )
    assert watched.running == ["shadow-1 m5.large"]
    assert watched.fleet.places == {"uid-one": "shadow-1"}
    assert watched.fleet.nodes["a"].run.ended_at == NOW + RULES.boot + RULES.drain
    assert not watched.fleet.nodes["shadow-1"].node.was_initialized
    watched.see([real("a", "m5.2xlarge")], [pod], RULES.boot / 2)
    assert not watched.fleet.nodes["shadow-1"].node.was_initialized
    watched.see([real("a", "m5.2xlarge")], [pod], RULES.boot / 2)
    assert watched.fleet.nodes["shadow-1"].node.was_initialized
    assert "a" in watched.fleet.nodes
    # It counts against the limits of its change for as long as these look back.
    watched.see([real("a", "m5.2xlarge")], [pod], timedelta(minutes=11))
    assert list(watched.fleet.nodes) == ["shadow-1"]


def test_what_a_replacement_saves_is_what_the_line_shows_and_at_least_where_ec2_may_choose() -> (
    None
):
    types = (*make.CATALOG, make.instance_type("m5a.large", price=100_000))
    watched = Watched(replace(RULES, instance_types=types))
    (said,) = watched.see([real("a", "m5.2xlarge")], [on("a", "one", cpu=1500)])
    assert "saves $0.2880/h as planned, at least $0.2840/h, once 1 × m5.large on-demand at" in said


def test_a_node_waits_for_consolidate_after() -> None:
    patient = replace(OWNER, consolidate_after=10 * MINUTE)
    watched = Watched(RULES, patient)
    nodes, pods = [real("a"), real("b")], [on("a", "one", cpu=1000), on("b", "two", cpu=1000)]
    assert watched.see(nodes, pods) == []
    assert watched.see(nodes, pods[:1], MINUTE) == []
    assert watched.see(nodes, pods[:1], 9 * MINUTE) == []
    (said,) = watched.see(nodes, pods[:1], MINUTE)
    assert said.startswith("would remove 1 node")


def test_consolidation_is_not_tried_again_on_what_it_found_nothing_for() -> None:
    watched = Watched()
    watched.see([real("a")], [on("a", "one", cpu=1500)])
    first = watched.fleet.progress
    watched.see([real("a")], [on("a", "one", cpu=1500)], MINUTE)
    second = watched.fleet.progress
    assert first is not None
    assert second is not None
    assert (first.fruitless, first.fruitless_until) == (second.fruitless, second.fruitless_until)
    assert second.evaluated_at == NOW + MINUTE
    # Between two evaluations only pods are placed.
    watched.see([real("a")], [on("a", "one", cpu=1500)], timedelta(seconds=10))
    assert watched.fleet.progress is not None
    assert watched.fleet.progress.evaluated_at == NOW + MINUTE


@pytest.mark.parametrize("allowed", [0, 1])
def test_an_owner_that_removes_only_empty_nodes_waits_for_its_time(allowed: int) -> None:
    budget = NodeBudget(nodes=allowed, reasons=(DisruptionReason.EMPTY,))
    owner = make.provisioner(ttl_after_empty=2 * MINUTE, budgets=(budget,))
    watched = Watched(RULES, owner)
    nodes, pod = [real("a", "m5.2xlarge")], on("a", "one")
    assert watched.see(nodes, [pod]) == []
    assert watched.see(nodes, [], MINUTE) == []
    # A pod in between starts the wait again.
    assert watched.see(nodes, [pod], MINUTE) == []
    assert watched.see(nodes, [], MINUTE) == []
    assert watched.see(nodes, [], MINUTE) == []
    gone = ["would remove 1 node: 1 × m5.2xlarge on-demand; $0.3840/h; emptiness: no pod is left"]
    assert watched.see(nodes, [], MINUTE) == (gone if allowed else [])


def test_a_node_that_is_being_removed_uses_up_the_budget_of_its_owner() -> None:
    owner = replace(OWNER, budgets=(NodeBudget(nodes=1),))
    watched = Watched(RULES, owner)
    nodes = [real("a", "m5.2xlarge"), real("b", "m5.2xlarge")]
    pods = [on("a", "one", cpu=1500), on("b", "two", cpu=1500)]
    assert len(watched.see(nodes, pods)) == 1
    assert watched.see(nodes, pods, MINUTE / 2) == []
    assert len(watched.see(nodes, pods, 10 * MINUTE)) == 1


def test_without_a_budget_few_nodes_are_removed_within_ten_minutes() -> None:
    watched = Watched()
    nodes, pods = [real("a"), real("b"), real("c")], [on("a", "one", cpu=1500)]
    assert len(watched.see(nodes, pods)) == 1
    assert watched.see(nodes, pods, 9 * MINUTE) == []
    assert len(watched.see(nodes, pods, 2 * MINUTE)) == 1


def test_a_pod_disruption_budget_keeps_a_node() -> None:
    pod = on("a", "one", cpu=1500)
    assert Watched().see([real("a", "m5.2xlarge")], [pod], budgets=(make.budget(0),)) == []
    assert Watched().see([real("a", "m5.2xlarge")], [pod], budgets=(make.budget(1),)) != []


def test_a_node_that_expires_is_replaced_though_that_saves_nothing() -> None:
    watched = Watched(RULES, make.provisioner(ttl_until_expired=timedelta(hours=1)))
    (said,) = watched.see([real("a")], [on("a", "one", cpu=1500)])
    assert said == (
        "would remove 1 node: 1 × m5.large on-demand; $0.0960/h; expiration: it is older than "
        "ttlSecondsUntilExpired, once 1 × m5.large on-demand at $0.0960/h can take their pods"
    )


def test_drift_causes_nothing() -> None:
    large_only = make.needs(keys.INSTANCE_TYPE, "In", "m5.xlarge")
    owner = make.provisioner(kind=OwnerKind.NODE_POOL, consolidation=True, also=large_only)
    found = real("a")
    labels = {k: v for k, v in found.labels.items() if k != keys.PROVISIONER_NAME}
    found = replace(found, labels={**labels, keys.NODE_POOL: "default"})
    assert Watched(RULES, owner).see([found], [on("a", "one", cpu=1500)]) == []


def test_a_brake_of_dovetail_on_an_owner_does_not_count() -> None:
    watched = Watched(RULES, replace(OWNER, paused=True, shadow=True))
    (said,) = watched.see([real("a"), real("b")], [on("a", "one", cpu=1500)])
    assert said.startswith("would remove 1 node")
