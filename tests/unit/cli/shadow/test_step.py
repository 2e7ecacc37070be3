"""What one observation of a cluster leads to in the shadow fleet."""

from datetime import timedelta

from shared.model import labels as keys
from shared.model.dialect import OwnerKind
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.values import replace
from shared.provisioning.savings.pools import Pool, PoolKind
from tests import builders as make
from tests.unit.cli.shadow.stepping import MINUTE, NOW, RULES, Watched, of_group, on, real


def test_the_fleet_begins_with_what_runs() -> None:
    watched = Watched()
    leaving = real("b", deletion_at=NOW)
    kept = real("a", annotations={keys.DO_NOT_DISRUPT: "true", "other": "x"})
    assert watched.see([kept, leaving], [on("a", "one", cpu=1500)]) == []
    assert watched.running == ["a m5.large"]
    assert watched.fleet.places == {"uid-one": "a"}
    node = watched.fleet.nodes["a"].node
    assert node.annotations == {keys.SLOT: "", keys.DO_NOT_DISRUPT: "true"}
    assert node.is_ours
    assert node.is_initialized
    # Both are paid, as both really run.
    assert sorted(watched.fleet.real) == ["uid-a", "uid-b"]


def test_an_observation_that_is_not_later_changes_nothing() -> None:
    watched = Watched()
    watched.see([real("a")], [on("a", "one")])
    before = watched.fleet
    assert watched.see([], []) == []
    assert watched.fleet is before


def test_pods_that_come_are_launched_for_once() -> None:
    watched = Watched()
    full = on("a", "one", cpu=1800)
    watched.see([real("a")], [full])
    pending = [make.pod("two", cpu=1500), make.pod("gated", cpu=1500, gated=True)]
    assert watched.see([real("a")], [full, *pending], MINUTE) == [
        "would launch 1 node for 1 pod: 1 × m5.large on-demand; $0.0960/h"
    ]
    assert watched.last.decisions[0].text.endswith(
        "$0.0960/h. $0.1920/h beside $0.0960/h that really run"
    )
    # Also while the real scheduler has set a node aside for it, and once it runs there.
    nominated = replace(pending[0], nominated_node="a", unschedulable=False)
    assert watched.see([real("a")], [full, nominated], MINUTE) == []
    there = on("c", "two", cpu=1500)
    assert watched.see([real("a"), real("c", created_at=NOW)], [full, there], MINUTE) == []
    assert watched.running == ["a m5.large", "shadow-1 m5.large"]
    assert watched.fleet.places == {"uid-one": "a", "uid-two": "shadow-1"}


def test_a_pod_that_is_being_deleted_leaves_its_room_to_its_successor() -> None:
    watched = Watched()
    watched.see([real("a")], [on("a", "one", cpu=1500)])
    leaving = on("a", "one", cpu=1500, deletion_at=NOW)
    assert watched.see([real("a")], [leaving, make.pod("two", cpu=1500)], MINUTE) == []
    assert watched.fleet.places == {"uid-two": "a"}


def test_pods_of_daemonsets_take_room_and_hold_no_node() -> None:
    watched = Watched()
    agent = make.daemonset(cpu=1000)
    watched.see([real("a")], [on("a", "one", cpu=500)], daemonsets=(agent,))
    said = watched.see(
        [real("a")],
        [on("a", "one", cpu=500), make.pod("two", cpu=700)],
        MINUTE,
        daemonsets=(agent,),
    )
    assert said == ["would launch 1 node for 1 pod: 1 × m5.large on-demand; $0.0960/h"]


def test_node_groups_beside_karpenter_stay_as_they_are_unless_they_are_named() -> None:
    nodes = [real("a"), of_group("m", "system"), of_group("n", "system")]
    pods = [on("a", "one", cpu=1500), on("m", "two", cpu=100)]
    watched = Watched()
    assert watched.see(nodes, pods) == []
    assert watched.last.notes == (
        "not compared, as Karpenter or EKS Auto Mode has pools: managed node group system",
    )
    assert sorted(watched.fleet.real) == ["uid-a"]
    # Nothing moves to them, and their pods are not on the fleet.
    assert watched.fleet.places == {"uid-one": "a"}
    pending = make.pod("three", cpu=1000)
    (said,) = watched.see(nodes, [*pods, pending], MINUTE)
    assert said.startswith("would launch 1 node for 1 pod")
    # Bound to such a node, a pod has left the fleet.
    assert "uid-three" in watched.fleet.places
    watched.see(nodes, [*pods, on("n", "three", cpu=1000)], timedelta(seconds=10))
    assert watched.fleet.places == {"uid-one": "a"}
    named = Watched(replace(RULES, pools=("system",)))
    (said,) = named.see(nodes, pods)
    assert said.startswith("would remove 1 node: 1 × m5.large on-demand")
    assert named.last.notes == ("not compared, as --pool does not name them: Provisioner default",)
    assert sorted(named.fleet.real) == ["uid-m", "uid-n"]


def test_without_karpenter_all_node_groups_are_compared() -> None:
    watched = Watched()
    taint = Taint(key="team", value="a", effect=Effect.NO_SCHEDULE)
    tolerated = {"scheduling": make.scheduling(1500, tolerations=make.DEFAULT_TOLERATIONS)}
    nodes = [of_group("a", "g"), of_group("b", "tainted", taints=(taint,))]
    said = watched.see(
        nodes, [on("a", "one", cpu=1500), on("b", "two", **tolerated)], provisioners=()
    )
    assert watched.last.notes == ()
    assert {entry.run.pool for entry in watched.fleet.real.values()} == {
        Pool(PoolKind.MANAGED, "g"),
        Pool(PoolKind.MANAGED, "tainted"),
    }
    assert said == []
    # What a group may launch is known by its nodes, also when none of them is left.
    pods = [make.pod("three", cpu=1500), make.pod("four", cpu=1500)]
    said = watched.see([], pods, MINUTE, provisioners=())
    assert said[0] == "would launch 1 node for 1 pod: 1 × m5.large on-demand; $0.0960/h"
    assert watched.fleet.nodes["shadow-1"].run.pool == Pool(PoolKind.MANAGED, "g")


def test_pools_that_cannot_be_compared_are_noted() -> None:
    watched = Watched(replace(RULES, pools=("default", "gone")))
    nodes = [real("a"), of_group("b", "default")]
    watched.see(nodes, [on("a", "one", cpu=1500)])
    no_pool, same_name = watched.last.notes
    assert no_pool == (
        "--pool gone: nothing of it is comparable now: there are Provisioner default, managed "
        "node group default"
    )
    assert same_name == (
        "managed node group default is not compared: Provisioner default has the same name"
    )
    assert sorted(watched.fleet.real) == ["uid-a"]


def test_what_has_no_price_is_not_compared() -> None:
    watched = Watched()
    odd = real("z")
    odd = replace(odd, labels={**odd.labels, keys.INSTANCE_TYPE: "z9.huge"})
    fargate = replace(real("f"), labels={"eks.amazonaws.com/compute-type": "fargate"})
    watched.see([real("a"), odd, fargate], [on("a", "one", cpu=1500), on("z", "two")])
    assert (sorted(watched.fleet.real), watched.running) == (["uid-a"], ["a m5.large"])


def test_a_pod_moves_to_the_zone_where_its_volume_was_really_made() -> None:
    watched = Watched()
    full, waiting = on("a", "one", cpu=1800), make.pod("two", cpu=1500)
    watched.see([real("a")], [full])
    watched.see([real("a")], [full, waiting], MINUTE)
    zone = watched.fleet.nodes["shadow-1"].run.zone
    elsewhere = next(other for other in make.ZONES if other != zone)
    later = real("c", created_at=NOW)
    later = replace(later, labels={**later.labels, keys.ZONE: elsewhere})
    bound = on("c", "two", cpu=1500)
    needed = make.needs(keys.ZONE, "In", elsewhere)
    bound = replace(bound, scheduling=replace(bound.scheduling, volume_terms=((needed,),)))
    said = watched.see([real("a"), later], [full, bound], MINUTE)
    assert said[0].startswith("would launch 1 node for 1 pod: 1 × m5.large")
    assert watched.fleet.nodes[watched.fleet.places["uid-two"]].run.zone == elsewhere


def test_a_running_pod_without_a_place_is_reported_once_and_counted() -> None:
    watched = Watched()
    nodes, huge = [real("a")], on("a", "huge", cpu=500_000)
    fits, late = on("a", "one", cpu=1500), on("a", "late", cpu=500_000)
    watched.see(nodes, [fits])
    (said,) = watched.see(nodes, [fits, late], MINUTE)
    assert said.startswith("would have no node for default/late: ")
    # One that waits in the real cluster, too, lacks nothing.
    waits = make.pod("waits", cpu=500_000)
    assert watched.see(nodes, [fits, late, waits], MINUTE) == []
    assert watched.fleet.progress is not None
    assert watched.fleet.progress.unplaced_pod_seconds == 60
    assert huge.uid not in watched.fleet.progress.unplaced


def test_after_a_gap_nodes_that_are_gone_ended_when_they_were_last_seen() -> None:
    watched = Watched()
    nodes, pods = [real("a"), real("b")], [on("a", "one", cpu=1500), on("b", "two", cpu=1500)]
    watched.see(nodes, pods)
    watched.see(nodes, pods, MINUTE)
    watched.see(nodes[:1], pods[:1], timedelta(hours=3))
    assert watched.fleet.progress is not None
    assert watched.fleet.progress.span_began_at == watched.now
    assert watched.fleet.real["uid-b"].run.ended_at == NOW + MINUTE
    watched.see(nodes[:1], pods[:1], MINUTE)
    assert list(watched.fleet.real) == ["uid-a"]


def test_a_purchase_is_compared_once_and_those_before_the_record_never() -> None:
    watched = Watched()
    old, pod = (
        real("a", created_at=NOW - MINUTE, ready_changed_at=NOW - MINUTE),
        on("a", "one", cpu=1500),
    )
    watched.see([old], [pod])
    assert not list(watched.last.purchases)
    bought = real("b", "m5.2xlarge", created_at=NOW + MINUTE, ready_changed_at=NOW + 2 * MINUTE)
    pods = [pod, on("b", "two", cpu=1500)]
    watched.see([old, bought], pods, 3 * MINUTE)
    (purchase,) = watched.last.purchases
    assert (purchase.at, purchase.pods) == (NOW + MINUTE, 1)
    assert purchase.bought == "1 × m5.2xlarge on-demand"
    assert purchase.planned == "1 × m5.large on-demand"
    assert watched.last.decisions[-1].text.startswith(
        "the autoscaler bought 1 node for 1 pod at $0.3840/h (1 × m5.2xlarge on-demand); Dovetail "
        "would have bought 1 node at $0.0960/h (1 × m5.large on-demand), $0.2880/h less"
    )
    watched.see([old, bought], pods, MINUTE)
    assert watched.last.purchases == ()


def test_a_node_pool_may_launch_what_it_declares_before_it_has_a_node() -> None:
    pool = make.provisioner("idle", kind=OwnerKind.NODE_POOL, consolidation=True)
    watched = Watched(RULES, pool)
    group = of_group("m", "system")
    watched.see([group], [on("m", "one")])
    (said,) = watched.see([group], [on("m", "one"), make.pod("two", cpu=1500)], MINUTE)
    assert said.startswith("would launch 1 node for 1 pod")
    (entry,) = watched.fleet.nodes.values()
    assert entry.run.pool == Pool(PoolKind.NODE_POOL, "idle")
