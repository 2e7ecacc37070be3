"""What a look over all nodes chooses to change."""

from datetime import timedelta
from functools import partial
from typing import Any

from shared.disruption.consolidation import DisruptionMethod
from shared.disruption.evaluation import (
    DisruptionCause,
    DisruptionCommand,
    DisruptionInput,
    OngoingChanges,
    evaluate,
)
from shared.disruption.evaluation_due import needs_evaluation
from shared.disruption.fingerprint import fingerprint
from shared.disruption.interrupted_pods import with_interrupted
from shared.disruption.settings import DisruptionSettings
from shared.disruption.simulate import fits_without
from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.node_budgets import NodeBudget
from shared.model.values import replace
from tests.builders import (
    CATALOG,
    GIB,
    NOW,
    OTHER_SHAPE,
    budget,
    instance_type,
    node_of,
    pod,
    pods,
    provisioner,
)
from tests.unit.disruption import clusters
from tests.unit.disruption.clusters import AGED, HOUR, LATER, PACKING, changed, looked, on

cluster = partial(clusters.cluster, provisioners=(AGED,))


def test_evaluation_that_may_not_continue_changes_nothing() -> None:
    """Empty nodes go even then: nothing has to be tried for them."""
    disruption_input = DisruptionInput(
        snapshot=cluster(node_of("a"), bound=(on("a"),)),
        budgets=(),
        settings=DisruptionSettings(),
        packing=PACKING,
    )
    assert evaluate(disruption_input, may_continue=lambda: False).change is None
    assert evaluate(disruption_input).change is not None


def test_a_node_whose_pods_would_not_fit_elsewhere_is_skipped() -> None:
    older = node_of("b", created_at=NOW - timedelta(minutes=1))
    bound = (on("a"), on("b", extra={"example.com/rare": 1}))
    found = looked(cluster(node_of("a"), older, bound=bound))
    assert found.change is not None
    assert found.change.remove == ("a",)
    assert found.skipped == {"b": "its pods would find no place that they may take"}
    alone = looked(cluster(older, bound=(bound[1],)))
    assert (alone.change, alone.reason) == (None, "no node may be disrupted")


def test_while_another_is_drained_for_the_same_reason_it_waits() -> None:
    going = node_of("b", deletion_at=NOW, annotations={keys.REMOVAL_REASON: "expiration"})
    seen = cluster(node_of("a"), going, bound=(on("a"), on("b")))
    found = looked(seen)
    assert (found.change, found.skipped) == (None, {"a": "another node is drained first"})
    assert looked(seen, at_a_time=2).change is not None
    # A node without pods to move does not wait for it.
    empty = looked(cluster(node_of("a"), going, bound=(on("b"),)))
    assert empty.change is not None
    assert empty.change.method == DisruptionMethod.EMPTY


def test_while_a_node_is_replaced_others_wait_unless_budgets_count_them() -> None:
    seen = cluster(node_of("a"), node_of("b"), bound=(on("a"), on("b")))
    pace = OngoingChanges(running=frozenset({"uid-a"}))
    assert looked(seen, pace).skipped == {"b": "another node is drained first"}
    two = replace(AGED, budgets=(NodeBudget(nodes=2),))
    assert changed(replace(seen, provisioners=(two,)), pace=pace).remove == ("b",)
    one = replace(AGED, budgets=(NodeBudget(nodes=1),))
    assert looked(replace(seen, provisioners=(one,)), pace).change is None


def saving(
    *nodes: Node, bound: tuple[Pod, ...], running: str = "uid-a"
) -> DisruptionCommand | None:
    seen = clusters.cluster(*nodes, bound=bound)
    return looked(seen, OngoingChanges(running=frozenset({running}))).change


def test_a_change_that_is_independent_of_one_under_way_is_begun() -> None:
    large = node_of("c", "m5.2xlarge")
    found = saving(node_of("a"), large, bound=(on("a", cpu=1500), on("c")))
    assert found is not None
    assert (found.remove, found.method) == (("c",), DisruptionMethod.REPLACE)


def test_the_room_that_pods_of_a_change_under_way_need_is_left_to_them() -> None:
    # On the third node is room for the pod of one of the two.
    room = node_of("room", annotations={keys.DO_NOT_CONSOLIDATE: "true"})
    pods = (on("a", cpu=700), on("b", cpu=700), on("room", cpu=900))
    nodes = (node_of("a"), node_of("b"), room)
    alone = saving(*nodes, bound=pods, running="uid-gone")
    assert alone is not None
    assert alone.method == DisruptionMethod.DELETE
    assert saving(*nodes, bound=pods) is None
    # The node that was bought for it has room for it, also while it starts: then the other goes.
    fresh = node_of(
        "fresh",
        annotations={keys.REPLACES: "a"},
        labels={keys.INITIALIZED: ""},
        taints=(Taint(key=keys.NOT_READY_TAINT, effect=Effect.NO_SCHEDULE),),
        ready=None,
    )
    other = saving(*nodes, fresh, bound=pods)
    assert other is not None
    assert (other.remove, other.method) == (("b",), DisruptionMethod.DELETE)


def test_pods_of_a_node_find_no_place_on_what_was_bought_for_others() -> None:
    fresh = node_of("fresh", annotations={keys.REPLACES: "b"})
    seen = cluster(node_of("a"), fresh, bound=(on("a"),))
    assert not fits_without(seen, ["a"], PACKING)
    own = replace(fresh, annotations={keys.REPLACES: "a,b"})
    assert fits_without(replace(seen, nodes=(seen.nodes[0], own)), ["a"], PACKING)


def test_a_node_whose_change_failed_is_not_disrupted_for_a_while() -> None:
    found = looked(
        cluster(node_of("a"), bound=(on("a"),)), OngoingChanges(rested=frozenset({"uid-a"}))
    )
    assert found.change is None
    assert found.skipped == {"a": "a change of it is under way, or came to nothing lately"}


def test_no_change_counts_on_the_room_of_nodes_that_replace_others() -> None:
    fresh = node_of("new", annotations={keys.REPLACES: "gone"}, created_at=LATER)
    found = looked(cluster(node_of("a"), fresh, bound=(on("a"),)))
    assert found.change is not None
    assert (found.change.remove, found.change.method) == (("a",), DisruptionMethod.REPLACE)


RECOMMENDED = {keys.REBALANCE_RECOMMENDED: NOW.isoformat()}
SPOT = {keys.CAPACITY_TYPE: CapacityType.SPOT.value}


def test_a_recommendation_is_followed_when_it_does_not_cost_more() -> None:
    taken = node_of("a", annotations=RECOMMENDED)
    seen = cluster(taken, bound=(on("a"),), provisioners=(provisioner(),))
    found = changed(seen)
    assert (found.cause, found.method) == (DisruptionCause.REBALANCE, DisruptionMethod.REPLACE)
    # On demand costs three times as much as the spot machine that would be left.
    spot = node_of("a", annotations=RECOMMENDED, labels=SPOT)
    dear = replace(seen, nodes=(spot,))
    kept = looked(dear)
    assert kept.change is None
    assert kept.skipped == {"a": "its pods would cost $0.0960/h elsewhere, and it costs $0.0320/h"}
    assert looked(dear, rebalance_micros_per_hour=100_000).change is not None


def test_a_recommendation_is_followed_at_no_price_where_others_have_room() -> None:
    spot = node_of("a", annotations=RECOMMENDED, labels=SPOT)
    seen = cluster(spot, node_of("b"), bound=(on("a"),), provisioners=(provisioner(),))
    assert changed(seen).method == DisruptionMethod.DELETE


def test_a_recommendation_is_not_followed_where_too_few_values_are_left_for_no_higher_price() -> (
    None
):
    taken = node_of("a", annotations=RECOMMENDED)
    owner = provisioner(least_values={keys.INSTANCE_TYPE: 2})
    found = looked(cluster(taken, bound=(on("a"),), provisioners=(owner,)))
    assert found.skipped == {"a": "too few offerings that cost no more are left for minValues"}


def test_no_option_of_a_rebalanced_node_costs_more_than_the_setting_allows() -> None:
    types = (*CATALOG, instance_type("r5.large", memory=16 * GIB, price=126_000))
    taken = node_of("a", annotations=RECOMMENDED, labels=SPOT)
    seen = cluster(
        taken, bound=(on("a", cpu=900),), provisioners=(clusters.SPOT_ONLY,), instance_types=types
    )
    dearest = []
    for more in (0, 2, 10_001):
        plan = changed(seen, rebalance_micros_per_hour=more).plan
        dearest.append([planned.highest_price_micros_per_hour for planned in plan.nodes])
    # A machine of this type costs 32,000 in the first zone and one more in each further zone.
    assert dearest == [[32_000], [32_002], [42_001]]


def test_a_node_that_is_not_to_be_disrupted_is_not_left_for_a_recommendation() -> None:
    kept = {keys.DO_NOT_DISRUPT: "true"}
    forbids = {"a": "its annotation karpenter.sh/do-not-disrupt forbids it"}
    taken = node_of("a", annotations={**RECOMMENDED, **kept})
    for pods_on in ((on("a"),), ()):
        found = looked(cluster(taken, bound=pods_on, provisioners=(provisioner(),)))
        assert (found.change, found.skipped) == (None, forbids)
    drifted = node_of("a", annotations={**OTHER_SHAPE, **kept})
    found = looked(cluster(drifted, bound=(on("a"),), provisioners=(provisioner(),)), drift=True)
    assert (found.change, found.skipped) == (None, forbids)
    # A Provisioner's node expires all the same.
    assert looked(cluster(node_of("a", annotations=kept), bound=(on("a"),))).change is not None


def test_consolidation_comes_last_and_within_its_budget() -> None:
    both = provisioner(consolidation=True, ttl_until_expired=HOUR)
    seen = cluster(node_of("a"), node_of("b"), bound=(on("a"), on("b")), provisioners=(both,))
    found = changed(seen)
    assert found.cause == DisruptionCause.EXPIRATION
    only = replace(seen, provisioners=(provisioner(consolidation=True),))
    found = changed(only)
    assert (found.cause, found.method) == (DisruptionCause.CONSOLIDATION, DisruptionMethod.DELETE)
    assert found.why.startswith("saves $")
    spent = OngoingChanges(rested=frozenset({"uid-gone"}))
    assert looked(only, spent, budget_percent=10).reason == "the budget of disruptions is used up"


def test_nodes_of_others_and_of_no_provisioner_are_never_due() -> None:
    foreign = node_of("a", finalizers=())
    orphan = node_of("b", labels={keys.PROVISIONER_NAME: "gone"})
    found = looked(cluster(foreign, orphan))
    assert (found.change, found.skipped) == (None, {})


def test_a_node_whose_birth_is_not_known_never_expires() -> None:
    assert looked(cluster(node_of("a", created_at=None))).change is None


def test_the_budget_is_a_share_of_the_nodes_and_one_at_least() -> None:
    settings = DisruptionSettings()
    assert [settings.most_nodes(of) for of in (0, 9, 10, 25, 100)] == [1, 1, 1, 2, 10]


def test_a_look_is_wanted_where_a_node_may_be_due() -> None:
    def wanted(owner: Any, other_node: Node, *, drift: bool = False) -> bool:
        return needs_evaluation([other_node], {"default": owner}, LATER, drift=drift)

    assert not wanted(provisioner(), node_of("a"))
    assert wanted(provisioner(consolidation=True), node_of("a"))
    assert wanted(AGED, node_of("a"))
    assert not wanted(AGED, node_of("a", created_at=LATER))
    assert wanted(provisioner(), node_of("a"), drift=True)
    assert wanted(provisioner(), node_of("a", annotations=RECOMMENDED))
    assert not wanted(provisioner(consolidation=True, paused=True), node_of("a"))
    assert not wanted(provisioner(consolidation=True), node_of("a", finalizers=()))
    assert not wanted(provisioner(consolidation=True), node_of("a", deletion_at=NOW))
    assert not needs_evaluation([node_of("a")], {}, LATER)


def test_pods_of_a_machine_that_aws_takes_wait_for_capacity_at_once() -> None:
    taken = node_of("a", deletion_at=NOW, annotations={keys.REMOVAL_REASON: "spot-interruption"})
    leaving = on("a")
    bare = pod("bare", node_name="a", owner=None)
    ending = pod("ending", node_name="a", deletion_at=NOW)
    staying = on("b")
    seen = cluster(taken, node_of("b"), bound=(leaving, bare, ending, staying))
    found = with_interrupted(seen)
    assert [other_pod.name for other_pod in found.pending] == ["a-0"]
    assert found.pending[0].is_provisionable
    assert found.bound == (bare, ending, staying)
    quiet = cluster(node_of("a", deletion_at=NOW), bound=(leaving,))
    assert with_interrupted(quiet) is quiet


def test_whether_pods_fit_elsewhere_is_asked_without_buying_and_without_volumes() -> None:
    seen = cluster(node_of("a"), node_of("b"), bound=(on("a", claims=("data",)), on("b")))
    assert fits_without(seen, ["a"], PACKING)
    full = cluster(node_of("a"), node_of("b"), bound=(on("a"), *pods(3, node_name="b")))
    assert not fits_without(full, ["a"], PACKING)


def test_a_scene_has_another_fingerprint_once_something_in_it_counts() -> None:
    seen = cluster(node_of("a"), bound=(on("a"),), pending=(pod("waits"),))
    disruption_input = DisruptionInput(
        snapshot=seen, budgets=(), settings=DisruptionSettings(), packing=PACKING
    )

    def of(**changes: Any) -> str:
        return fingerprint(replace(disruption_input, snapshot=replace(seen, **changes)))

    assert of() == of(seed=7) == of(taken_at=LATER + HOUR)
    different = [
        of(),
        of(taken_at=NOW),
        of(nodes=(node_of("a", created_at=None, annotations={keys.REPLACES: "x"}),)),
        of(bound=()),
        of(pending=()),
        of(provisioners=(provisioner(resource_version="2"),)),
        fingerprint(replace(disruption_input, ongoing=OngoingChanges(rested=frozenset({"uid-a"})))),
        fingerprint(
            replace(
                disruption_input,
                budgets=(budget(),),
            )
        ),
    ]
    assert len(set(different)) == len(different)


def test_in_a_scene_that_is_known_only_what_is_due_is_looked_for() -> None:
    due = cluster(node_of("a"), bound=(on("a"),))
    disruption_input = DisruptionInput(
        snapshot=due, budgets=(), settings=DisruptionSettings(), packing=PACKING
    )
    assert evaluate(disruption_input, consolidating=False).change is not None
    idle = replace(due, provisioners=(provisioner(consolidation=True),))
    known = evaluate(replace(disruption_input, snapshot=idle), consolidating=False)
    assert known.reason == "nothing has changed"


def test_a_large_cluster_is_tried_less_often() -> None:
    settings = DisruptionSettings()
    tries = [settings.within_reason(pods).max_simulations for pods in (0, 100, 10_000, 10**6)]
    assert tries == [80, 80, 20, 8]
