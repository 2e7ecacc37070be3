"""The lower bound of a plan: what the pods themselves insist on, and nothing else."""

from typing import Any

from shared.model import labels as keys
from shared.model.kubernetes.pods import PreferredNodes
from shared.model.plan import Plan
from shared.model.policy import PreferencePolicy
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.planning.decide import decide
from shared.planning.lower_bound import with_bound
from tests import builders as make
from tests.unit.planning.asking import QUICK

SPOT = make.needs(keys.CAPACITY_TYPE, "In", "spot")
DEAR = make.provisioner("costly", weight=9)
CHEAP = make.provisioner("cheap", requirements=SPOT)


def decided(snapshot: ClusterSnapshot, **settings: Any) -> Plan:
    return with_bound(snapshot, decide(snapshot, replace(QUICK, **settings)))


def test_bound_respects_the_order_of_provisioners() -> None:
    asked = make.pods(2, cpu=1500)
    plan = decided(make.snapshot(*asked, provisioners=(DEAR, CHEAP)))
    assert {node.provisioner for node in plan.nodes} == {"costly"}
    assert plan.lower_bound_micros_per_hour == plan.cost_micros_per_hour == 192_000


def test_with_limits_any_provisioner_may_have_served_a_pod() -> None:
    limited = make.provisioner("costly", weight=9, limits=Resources.of(cpu=100_000))
    plan = decided(make.snapshot(*make.pods(2, cpu=1500), provisioners=(limited, CHEAP)))
    assert plan.cost_micros_per_hour == 192_000
    assert 0 < plan.lower_bound_micros_per_hour <= 64_000


def test_a_preference_that_was_kept_is_no_need() -> None:
    preference_kind = make.needs(keys.INSTANCE_TYPE, "In", "m5.2xlarge")
    liked = make.scheduling(
        1500, preferred_nodes=(PreferredNodes(weight=1, requirements=preference_kind),)
    )
    respecting = make.provisioner(preference_policy=PreferencePolicy.RESPECT)
    plan = decided(make.snapshot(make.pod("a", scheduling=liked), provisioners=(respecting,)))
    assert plan.cost_micros_per_hour == 384_000
    assert plan.lower_bound_micros_per_hour == 96_000


def test_pods_with_other_labels_are_counted_as_one_class() -> None:
    one = make.pods(2, "a", cpu=900, labels={"app": "a"})
    other = make.pods(2, "b", cpu=900, labels={"app": "b"})
    plan = decided(make.snapshot(*one, *other))
    assert plan.lower_bound_micros_per_hour == plan.cost_micros_per_hour == 192_000


def test_pods_of_two_priorities_are_served_by_the_first_provisioner_alike() -> None:
    asked = (
        *make.pods(2, "a", cpu=900, priority=1),
        *make.pods(2, "b", cpu=900),
    )
    plan = decided(make.snapshot(*asked, provisioners=(DEAR, CHEAP)))
    assert plan.lower_bound_micros_per_hour == plan.cost_micros_per_hour == 192_000


def test_a_spread_over_zones_forces_pods_into_each() -> None:
    spread = make.spread(keys.ZONE, selector=make.selector(app="web"))
    pods = [make.pod(name, cpu=900, spreads=(spread,), labels={"app": "web"}) for name in "abc"]
    plan = decided(make.snapshot(*pods))
    assert plan.lower_bound_micros_per_hour == plan.cost_micros_per_hour == 288_003


def test_pods_that_others_may_stand_in_for_are_forced_nowhere() -> None:
    spread = make.spread(keys.ZONE, selector=make.selector(app="web"))
    spreading = [make.pod(name, cpu=900, spreads=(spread,), labels={"app": "web"}) for name in "ab"]
    counted = make.pod("c", cpu=900, labels={"app": "web"})
    plan = decided(make.snapshot(*spreading, counted))
    assert plan.lower_bound_micros_per_hour < 288_000


def test_where_rules_are_left_out_the_bound_is_close_only_if_it_is_near_the_plan() -> None:
    web, other = (make.affinity(selector=make.selector(app=app)) for app in ("web", "other"))
    alone = [make.pod(name, anti_affinity=(web,), labels={"app": "web"}) for name in "ab"]
    repelled = make.pod("c", anti_affinity=(web,), labels={"app": "other"})
    repelling = make.pod("d", anti_affinity=(other,), labels={"app": "some"})
    wanted = (make.affinity(weight=100),)
    apart = [make.pod(name, anti_affinity=wanted, labels={"app": "web"}) for name in "ab"]
    kept = {"preference_policy": PreferencePolicy.RESPECT}
    near = decided(make.snapshot(*alone))
    assert near.gap_percent == 0
    assert near.bound_is_close
    for some, settings in (((repelled, repelling), {}), (apart, kept)):
        far = decided(make.snapshot(*some), **settings)
        assert far.gap_percent > 1
        assert not far.bound_is_close
