"""The provisioning decision, case by case, on four instance types."""

from dataclasses import replace

from shared.model import labels as keys
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.taints import Effect, Taint, Toleration
from shared.model.plan import Plan
from shared.model.resources import Resources
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from tests import builders as make
from tests.builders import ZONES, needs, pod, pods, provisioner, snapshot

QUICK = PackingSettings(improve_iterations=2)
ONLY = Taint(key="only", effect=Effect.NO_SCHEDULE)


def types_of(plan: Plan) -> list[str]:
    return sorted(node.options[0].offering.instance_type for node in plan.nodes)


def why(plan: Plan) -> dict[str, tuple[str, ...]]:
    return {pod_left.pod.name: pod_left.reasons for pod_left in plan.unschedulable}


def placed_on(plan: Plan) -> dict[str, str]:
    return {ref.name: placement.node for placement in plan.placements for ref in placement.pods}


def test_nothing_waits_so_nothing_is_planned() -> None:
    assert decide(snapshot()) == Plan()
    assert decide(snapshot(pod(gated=True), pod("b", unschedulable=False))) == Plan()


def test_nominated_and_promised_pods_are_not_planned_again() -> None:
    one, two, three = pods(3)
    plan = decide(
        snapshot(
            one,
            two,
            three,
            slots=(make.slot(pods=(make.ref(one),)),),
            promised=frozenset([two.uid]),
        )
    )
    named = [ref.name for planned in plan.nodes for ref in planned.pods]
    named += [ref.name for placed in plan.placements for ref in placed.pods]
    assert named == [three.name]


def test_pods_share_the_cheapest_machine_that_holds_them() -> None:
    plan = decide(snapshot(*pods(3), daemonsets=(make.daemonset(),)), QUICK)
    (node,) = plan.nodes
    assert types_of(plan) == ["m5.large"]
    assert node.requests == Resources.of(cpu=1500, memory=1536 * make.MIB, pods=3)
    assert node.daemon_requests["cpu"] == 100
    assert dict(node.labels) == {keys.PROVISIONER_NAME: "default"}
    assert plan.cost_micros_per_hour == node.price_micros_per_hour == 96_000
    assert node.options[0].capacity["cpu"] == 2000
    assert node.options[0].allocatable["cpu"] == 1930


def test_room_that_is_there_is_used_before_any_is_bought() -> None:
    waiting = pods(3, cpu=800)
    plan = decide(snapshot(*waiting, nodes=(make.node(),), slots=(make.slot(),)), QUICK)
    assert plan.nodes == ()
    assert sorted(placed_on(plan).values()) == ["n1", "plan-1/0/0", "plan-1/0/0"] or sorted(
        placed_on(plan).values()
    ) == ["n1", "n1", "plan-1/0/0"]
    assert {placement.node: placement.slot for placement in plan.placements} == {
        "n1": "",
        "plan-1/0/0": "plan-1/0/0",
    }


def test_a_room_in_another_domain_does_not_take_pinned_pods() -> None:
    members = pods(3, spreads=(make.spread(),))
    plan = decide(snapshot(*members, nodes=(make.node(),)), QUICK)
    assert len(placed_on(plan)) == 1
    assert sorted(node.options[0].offering.zone for node in plan.nodes) == list(ZONES[1:])


def test_a_room_whose_taint_or_labels_refuse_is_left_alone() -> None:
    tainted = make.node(taints=(ONLY,))
    assert types_of(decide(snapshot(pod(), nodes=(tainted,)), QUICK)) == ["m5.large"]
    elsewhere = pod(node_selector=needs(keys.ZONE, "In", ZONES[2]))
    plan = decide(snapshot(elsewhere, nodes=(make.node(),)), QUICK)
    assert plan.nodes[0].options[0].offering.zone == ZONES[2]


def test_the_heaviest_provisioner_that_can_serve_a_pod_does() -> None:
    owners = (
        provisioner("light"),
        provisioner("heavy", weight=10, also=needs(keys.ZONE, "In", ZONES[0])),
        provisioner("tainted", weight=20, taints=(ONLY,)),
    )
    anywhere = pod("anywhere")
    far = pod("far", node_selector=needs(keys.ZONE, "In", ZONES[1]))
    tolerant = pod("tolerant", tolerations=(Toleration(key="only", operator="Exists"),))
    plan = decide(snapshot(anywhere, far, tolerant, provisioners=owners), QUICK)
    assert {ref.name: node.provisioner for node in plan.nodes for ref in node.pods} == {
        "anywhere": "heavy",
        "far": "light",
        "tolerant": "tainted",
    }


def test_a_custom_label_is_given_the_value_a_pod_asks_for() -> None:
    owner = provisioner(also=needs("team", "In", "red", "blue"))
    red = pod("red", node_selector=needs("team", "In", "red"))
    blue = pod("blue", node_selector=needs("team", "In", "blue"))
    plan = decide(snapshot(red, blue, provisioners=(owner,)), QUICK)
    assert {ref.name: node.labels["team"] for node in plan.nodes for ref in node.pods} == {
        "red": "red",
        "blue": "blue",
    }


def test_no_node_is_bought_for_a_pod_that_a_label_of_the_cloud_controller_may_keep_off() -> None:
    choosy = pod(node_selector=needs(keys.ZONE_ID, "NotIn", "use1-az1"))
    assert list(why(decide(snapshot(choosy), QUICK))) == ["a"]
    known = make.node(labels={**make.node().labels, keys.ZONE_ID: "use1-az2"})
    assert placed_on(decide(snapshot(choosy, nodes=(known,)), QUICK)) == {"a": "n1"}


def test_what_one_limit_turns_away_the_next_provisioner_takes() -> None:
    owners = (
        provisioner("first", weight=2, limits=Resources.of(cpu=2000)),
        provisioner("second", weight=1, limits=Resources.of(cpu=2000)),
        provisioner("third"),
    )
    members = pods(4, cpu=1500)
    plan = decide(snapshot(*members, provisioners=owners), QUICK)
    assert plan.unschedulable == ()
    bought = [node.provisioner for node in plan.nodes]
    assert bought.count("first") == bought.count("second") == 1
    capacity = [node.largest_capacity["cpu"] for node in plan.nodes if node.provisioner != "third"]
    assert capacity == [2000, 2000]


def test_many_limited_provisioners_neither_lose_nor_double_a_pod() -> None:
    """More provisioners than rounds: what is left over is reported, under its own name."""
    owners = tuple(
        provisioner(f"p{number:02}", limits=Resources.of(cpu=2000)) for number in range(12)
    )
    members = pods(14, cpu=1500)
    plan = decide(snapshot(*members, provisioners=owners), QUICK)
    named = [ref.name for node in plan.nodes for ref in node.pods]
    named += [pod_left.pod.name for pod_left in plan.unschedulable]
    assert sorted(named) == [member.name for member in members]
    assert len({node.provisioner for node in plan.nodes}) == len(plan.nodes) == 12


def test_reasons_name_the_limits_that_were_in_the_way() -> None:
    owners = (
        provisioner("first", limits=Resources.of(cpu=1000)),
        provisioner("second", limits=Resources.of(cpu=1000, memory=64 * make.GIB)),
        provisioner("third", also=needs(keys.ZONE, "In", "elsewhere")),
    )
    plan = decide(snapshot(pod(), provisioners=owners), QUICK)
    assert why(plan)["a"] == (
        "first: its limits are in the way: cpu 1 left of 1",
        "second: its limits are in the way: cpu 1 left of 1, memory 64Gi left of 64Gi",
        (
            "third: its requirements leave no instance type in us-east-1a, us-east-1b, us-east-1c; "
            "requirement topology.kubernetes.io/zone: no instance type here has elsewhere"
        ),
    )


def test_pods_of_one_host_port_get_a_node_each() -> None:
    members = pods(2, cpu=100, host_ports=(("0.0.0.0", "TCP", 80),))
    taken = pod("x", node_name="n1", cpu=100, host_ports=(("0.0.0.0", "TCP", 80),))
    plan = decide(snapshot(*members, nodes=(make.node(),), bound=(taken,)), QUICK)
    assert len(plan.nodes) == 2
    assert plan.placements == ()


def test_a_pod_is_not_placed_beside_one_that_avoids_it() -> None:
    guard = pod("g", node_name="n1", labels={"app": "g"}, anti_affinity=(make.affinity(),))
    plan = decide(snapshot(pod(cpu=100), nodes=(make.node(),), bound=(guard,)), QUICK)
    assert plan.placements == ()
    assert len(plan.nodes) == 1


def test_provisioners_without_a_site_buy_nothing() -> None:
    plan = decide(snapshot(pod(), sites=()), QUICK)
    assert why(plan)["a"] == ("default: no subnet: nothing was found",)


def test_pods_that_cannot_be_planned_for_say_why() -> None:
    one = pod(refusals=("it asks for x", "and for y"))
    plan = decide(snapshot(one, pod("b", affinity=(make.affinity("rack"),))), QUICK)
    assert why(plan) == {
        "a": ("it asks for x; and for y",),
        "b": (
            (
                "default: its topology rules leave no place: "
                "pod affinity over rack to pods with app=web"
            ),
        ),
    }


def test_spot_falls_back_to_on_demand_where_both_are_allowed() -> None:
    owner = provisioner(requirements=needs(keys.ARCH, "In", "amd64"))
    (node,) = decide(snapshot(pod(), provisioners=(owner,)), QUICK).nodes
    assert {option.offering.capacity_type.value for option in node.options} == {"spot"}
    assert {launch_option.offering.capacity_type.value for launch_option in node.fallback} == {
        "on-demand"
    }


def test_the_same_snapshot_gives_the_same_plan_and_pods_keep_their_order() -> None:
    members = pods(7, cpu=900)
    plan = decide(snapshot(*members), QUICK)
    assert plan == decide(snapshot(*reversed(members)), QUICK)
    assert all(list(node.pods) == sorted(node.pods) for node in plan.nodes)


def test_higher_priority_pods_are_drawn_first_from_what_there_is() -> None:
    limited = provisioner(limits=Resources.of(cpu=2000))
    high: Pod = pod("z", cpu=1500, priority=100)
    low = pod("a", cpu=1500)
    plan = decide(snapshot(low, high, provisioners=(limited,)), QUICK)
    assert len(plan.nodes) == len(plan.unschedulable) == 1


def test_a_planned_node_is_described_by_its_settings() -> None:
    kubelet = replace(provisioner().kubelet, max_pods=5)
    plan = decide(snapshot(*pods(6, cpu=10), provisioners=(provisioner(kubelet=kubelet),)), QUICK)
    assert sorted(len(node.pods) for node in plan.nodes) in ([1, 5], [2, 4], [3, 3])
    assert {node.options[0].allocatable["pods"] for node in plan.nodes} == {5}
