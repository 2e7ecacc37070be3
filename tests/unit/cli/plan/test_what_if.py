"""Recorded decisions under another policy: purchases, what they cost, and pods that wait."""

from collections.abc import Callable
from datetime import timedelta

from functions.cli.plan.recorded_decision import RecordedDecision, load_decision
from functions.cli.plan.what_if import paid_micros, what_if, with_provisioners
from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.provisioner import KubeletConfiguration, Provisioner
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from shared.provisioning.decisions.record import decision_document
from tests.builders import (
    NOW,
    instance_type,
    intent,
    needs,
    node,
    pods,
    provisioner,
    slot,
    snapshot,
)
from tests.unit.nodes.launch.launches import apart

HOUR = timedelta(hours=1)
LARGE_ONLY = provisioner(also=needs(keys.INSTANCE_TYPE, "In", "m5.2xlarge"))


def decided(plan_id: str, scene: ClusterSnapshot) -> RecordedDecision:
    settings = PackingSettings()
    return load_decision(decision_document(plan_id, scene, decide(scene, settings), settings))


def same(settings: PackingSettings) -> PackingSettings:
    return settings


def unchanged(scene: ClusterSnapshot) -> ClusterSnapshot:
    return scene


def given(*provisioners: Provisioner) -> Callable[[ClusterSnapshot], ClusterSnapshot]:
    return lambda scene: with_provisioners(scene, provisioners)


def of_plan(plan_id: str, count: int) -> tuple[Node, ...]:
    return tuple(
        node(f"{plan_id}-{number}", annotations={keys.SLOT: f"{plan_id}/0/{number}"})
        for number in range(count)
    )


def test_the_same_policy_buys_the_same() -> None:
    (step,) = what_if([decided("p1", snapshot(*pods(3)))], same, unchanged)
    assert step.recorded == step.other
    assert (step.recorded.nodes, step.recorded.placed, step.recorded.waiting) == (1, 3, 0)
    assert step.extra_micros_per_hour == 0


def test_another_provisioner_of_the_same_name_takes_its_place() -> None:
    (step,) = what_if([decided("p1", snapshot(*pods(3)))], same, given(LARGE_ONLY))
    assert step.recorded.cost_micros_per_hour == 96_000
    assert step.other.cost_micros_per_hour == 384_000
    assert step.extra_micros_per_hour == 288_000


def test_a_provisioner_that_allows_less_makes_pods_wait() -> None:
    limited = provisioner(limits=Resources.of(cpu=1000))
    (step,) = what_if([decided("p1", snapshot(*pods(3)))], same, given(limited))
    assert (step.other.nodes, step.other.placed, step.other.waiting) == (0, 0, 3)


def test_other_settings_are_made_from_those_of_each_decision() -> None:
    seen: list[PackingSettings] = []

    def change(settings: PackingSettings) -> PackingSettings:
        seen.append(settings)
        return replace(settings, max_node_vcpus=2)

    (step,) = what_if([decided("p1", snapshot(*pods(12)))], change, unchanged)
    assert seen == [PackingSettings()]
    assert step.other.nodes > step.recorded.nodes


def test_a_new_provisioner_has_subnets_where_others_have_them() -> None:
    scene = snapshot()
    more = with_provisioners(scene, [provisioner("more")])
    assert [found.name for found in more.provisioners] == ["default", "more"]
    assert more.sites[-1].zones == scene.sites[0].zones
    assert with_provisioners(scene, [LARGE_ONLY]).sites == scene.sites


def test_a_new_provisioner_does_not_buy_what_its_images_never_boot() -> None:
    scene = snapshot(instance_types=(instance_type("a1.large"), instance_type("m5.large")))
    assert with_provisioners(scene, [provisioner("more")]).sites[-1].without_image == {"a1.large"}


def test_what_is_known_of_recorded_machines_holds_for_no_others() -> None:
    scene = snapshot()
    site = replace(
        scene.sites[0],
        without_image=frozenset({"m5.large"}),
        observed={"m5.large": Resources.of(pods=2)},
    )
    scene = replace(scene, sites=(site,))
    same = provisioner(weight=7)
    assert with_provisioners(scene, [same]).sites == (site,)
    other = provisioner(kubelet=KubeletConfiguration(max_pods=110))
    (found,) = with_provisioners(scene, [other]).sites
    assert (found.zones, found.without_image, found.observed) == (site.zones, frozenset(), {})


def test_nodes_are_paid_for_as_long_as_later_decisions_see_them() -> None:
    first = replace(snapshot(*pods(6)), seed=1)
    bought = decided("p1", first)
    count = len(bought.plan.nodes)
    later = [
        decided(
            f"p{number}",
            replace(snapshot(nodes=of_plan("p1", standing)), taken_at=NOW + number * HOUR),
        )
        for number, standing in ((2, count), (3, 0), (4, 0))
    ]
    elsewhere = replace(first, cluster="zoo", taken_at=NOW + 9 * HOUR)
    steps = what_if([*later, decided("p9", elsewhere), bought], same, given(LARGE_ONLY))
    assert [step.plan_id for step in steps] == ["p1", "p2", "p3", "p4", "p9"]
    recorded, other = paid_micros(steps)
    assert recorded == 3 * bought.plan.cost_micros_per_hour
    assert other == 3 * steps[0].other.cost_micros_per_hour


def test_what_ec2_refused_is_known_by_the_next_decision_and_is_not_paid() -> None:
    waits = snapshot(*apart(3))
    scenes = (
        waits,
        waits,
        replace(waits, nodes=of_plan("p2", 1), slots=(slot(plan_id="p2"),)),
        replace(waits, intents=(intent(plan_id="p3"),)),
    )
    steps = what_if(
        [
            decided(f"p{number}", replace(scene, taken_at=NOW + number * HOUR))
            for number, scene in enumerate(scenes, 1)
        ],
        same,
        unchanged,
    )
    assert [step.recorded.nodes for step in steps] == [3, 3, 1, 3]
    assert [step.launched for step in steps] == [0, 2, None, None]
    # Two nodes for two hours, and one for an hour that may yet come.
    assert paid_micros(steps) == (5 * 96_000, 5 * 96_000)


def test_a_pod_that_the_other_policy_has_served_is_not_bought_for_again() -> None:
    full = provisioner(limits=Resources.of(cpu=1000))
    waits = [
        replace(snapshot(*pods(3), provisioners=(owner,)), taken_at=NOW + number * HOUR / 2)
        for number, owner in enumerate((full, full, provisioner(), provisioner()))
    ]
    decisions = [decided(f"p{number}", scene) for number, scene in enumerate(waits)]
    steps = what_if(decisions, same, given(provisioner()))
    assert [step.recorded.placed for step in steps] == [0, 0, 3, 3]
    assert [step.recorded.waiting for step in steps] == [3, 3, 0, 0]
    # Once both have served the pods, they wait again for both: their launch failed.
    assert [step.other.placed for step in steps] == [3, 0, 0, 3]
    assert [step.other.waiting for step in steps] == [0, 0, 0, 0]


def test_decisions_of_the_same_moment_and_of_other_clusters_are_apart() -> None:
    full = provisioner(limits=Resources.of(cpu=1000))
    scene = snapshot(*pods(3), provisioners=(full,))
    elsewhere = replace(scene, cluster="zoo", taken_at=NOW + HOUR)
    decisions = [decided("p1", scene), decided("p2", scene), decided("p3", elsewhere)]
    steps = what_if(decisions, same, given(provisioner()))
    assert [step.other.placed for step in steps] == [3, 3, 3]


def test_nodes_that_only_the_other_policy_bought_are_paid_to_the_last_decision() -> None:
    full = provisioner(limits=Resources.of(cpu=1000))
    scene = snapshot(*pods(3), provisioners=(full,))
    decisions = [
        decided(f"p{number}", replace(scene, taken_at=NOW + number * HOUR)) for number in range(3)
    ]
    assert paid_micros(what_if(decisions, same, given(provisioner()))) == (0, 2 * 96_000)
