"""The provisioning decision, case by case, on four instance types."""

from shared.model import labels as keys
from shared.model.plan import Plan
from shared.model.resources import Resources
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from tests import builders as make
from tests.builders import ZONES, needs, pod, pods, provisioner, snapshot

QUICK = PackingSettings(improve_iterations=2)


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


def test_the_same_snapshot_gives_the_same_plan_and_pods_keep_their_order() -> None:
    members = pods(7, cpu=900)
    plan = decide(snapshot(*members), QUICK)
    assert plan == decide(snapshot(*reversed(members)), QUICK)
    assert all(list(node.pods) == sorted(node.pods) for node in plan.nodes)
