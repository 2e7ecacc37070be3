"""Metal, and accelerators that no pod asks for, are bought where nothing else is to be had."""

from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType
from shared.model.kubernetes.pods import PreferredNodes
from shared.model.plan import Plan
from shared.model.requirements import Requirements
from shared.model.resources import Resources
from shared.model.values import replace
from shared.planning.decide import decide
from shared.planning.lower_bound import with_bound
from shared.planning.placement import buying, node_options
from tests.builders import GIB, instance_type, needs, pod, provisioner, snapshot, spread
from tests.unit.planning.asking import QUICK, A

GPU = "nvidia.com/gpu"


def with_accelerator(known: InstanceType, resource: str) -> InstanceType:
    return replace(known, capacity=known.capacity + Resources(((resource, 1),)))


PLAIN = instance_type("c6g.4xlarge", cpu=16_000, memory=32 * GIB, price=600_000)
METAL = instance_type("c6g.metal-16xl", cpu=64_000, memory=128 * GIB, price=500_000)
CARD = with_accelerator(
    instance_type("g4dn.xlarge", cpu=4_000, memory=16 * GIB, price=550_000), GPU
)
CHIP = with_accelerator(
    instance_type("inf1.xlarge", cpu=4_000, memory=16 * GIB, price=590_000), "aws.amazon.com/neuron"
)
TYPES = (PLAIN, METAL, CARD, CHIP)
ON_METAL = needs(keys.INSTANCE_SIZE, "In", "metal-16xl")


def planned(*waiting: Any, owners: Any = (), types: tuple[InstanceType, ...] = TYPES) -> Plan:
    seen = snapshot(*waiting, provisioners=owners or [provisioner()], instance_types=types)
    plan = with_bound(seen, decide(seen, QUICK))
    assert plan.lower_bound_micros_per_hour <= plan.cost_micros_per_hour
    return plan


def bought(plan: Plan) -> dict[str, set[str]]:
    """Return the types of the options of each pod's new node."""
    return {
        ref.name: {option.offering.instance_type for option in (*node.options, *node.fallback)}
        for node in plan.nodes
        for ref in node.pods
    }


def test_plain_pods_get_none_of_them_whatever_they_cost() -> None:
    plan = planned(pod())
    assert bought(plan) == {"a": {"c6g.4xlarge"}}
    assert plan.lower_bound_micros_per_hour == plan.cost_micros_per_hour == 600_000


def test_pods_that_no_machine_holds_open_no_special_types_to_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = []

    def counted(*asked: Any) -> Any:
        looks.append(asked)
        return purchase(*asked)

    purchase = buying._purchase
    monkeypatch.setattr(buying, "_purchase", counted)
    others = [pod(f"small-{number}", cpu=9_000) for number in range(20)]
    alone = planned(*others)
    before = len(looks)
    plan = planned(*others, pod("huge", cpu=500_000))
    assert bought(plan) == bought(alone)
    assert [left.pod.name for left in plan.unschedulable] == ["huge"]
    assert len(looks) - before == before


def test_a_node_that_nothing_else_could_be_stays_special() -> None:
    full = [pod(f"plain-{number}", cpu=9_000) for number in range(12)]
    plan = planned(*full, pod("metal", cpu=500, node_selector=ON_METAL))
    assert len(plan.nodes) < len(full)
    assert not plan.unschedulable


@pytest.mark.parametrize("limits", [None, Resources((("cpu", 9_000_000),))])
def test_of_nodes_alike_one_is_asked_whether_it_can_do_without(
    limits: Resources | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def counted(*request: Any) -> Any:
        asked.append(request)
        return buying.buy_again(*request)

    monkeypatch.setattr(node_options, "buy_again", counted)
    others = [pod(f"small-{number}", cpu=3_000) for number in range(20)]
    kind = instance_type("g4dn.4xlarge", cpu=16_000, memory=64 * GIB, price=650_000)
    cards = with_accelerator(kind, GPU)
    card = pod("card", cpu=3_000, extra={GPU: 1})
    plan = planned(*others, card, owners=[provisioner(limits=limits)], types=(PLAIN, cards))
    assert {kind for name, some in bought(plan).items() if name != "card" for kind in some} == {
        "c6g.4xlarge"
    }
    assert (len(asked) > 2) == (limits is not None)


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(Requirements(), id="nothing"),
        pytest.param(needs(keys.INSTANCE_FAMILY, "In", "c6g", "g4dn"), id="families"),
        pytest.param(needs(keys.INSTANCE_SIZE, "NotIn", "metal"), id="not one metal size"),
    ],
)
def test_families_and_what_is_left_out_name_no_metal(asked: Any) -> None:
    assert bought(planned(pod(), owners=[provisioner(also=asked)])) == {"a": {"c6g.4xlarge"}}
    assert bought(planned(pod(node_selector=asked))) == {"a": {"c6g.4xlarge"}}


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(needs(keys.INSTANCE_SIZE, "In", "4xlarge", "metal-16xl"), id="size"),
        pytest.param(needs(keys.INSTANCE_TYPE, "In", "c6g.4xlarge", "c6g.metal-16xl"), id="type"),
    ],
)
def test_a_provisioner_or_a_pod_that_names_metal_may_have_it(asked: Any) -> None:
    both = {"c6g.4xlarge", "c6g.metal-16xl"}
    assert bought(planned(pod(), owners=[provisioner(also=asked)])) == {"a": both}
    assert bought(planned(pod(node_selector=asked))) == {"a": both}


def test_a_pod_that_prefers_metal_may_have_it() -> None:
    preferred = (PreferredNodes(weight=1, requirements=ON_METAL),)
    assert bought(planned(pod(preferred_nodes=preferred))) == {"a": {"c6g.metal-16xl"}}


def test_they_are_bought_where_nothing_else_holds_a_pod() -> None:
    assert bought(planned(pod(cpu=40_000))) == {"a": {"c6g.metal-16xl"}}
    assert bought(planned(pod(node_selector=ON_METAL))) == {"a": {"c6g.metal-16xl"}}
    assert bought(planned(pod(), types=(METAL, CARD))) == {"a": {"c6g.metal-16xl", "g4dn.xlarge"}}
    first = provisioner("metal", also=ON_METAL, weight=10)
    assert bought(planned(pod(), owners=[first, provisioner()])) == {"a": {"c6g.metal-16xl"}}


def test_they_are_bought_in_a_domain_that_has_nothing_else() -> None:
    """A pod that is not spread has a choice."""
    here = tuple(offering for offering in PLAIN.offerings if offering.zone == A)
    types = (replace(PLAIN, offerings=here), METAL)
    waiting = [pod(name, spreads=(spread(),)) for name in ("a", "b", "c")]
    spread_out = planned(*waiting, types=types)
    assert sorted(map(sorted, bought(spread_out).values())) == [
        ["c6g.4xlarge"],
        ["c6g.metal-16xl"],
        ["c6g.metal-16xl"],
    ]
    assert bought(planned(pod(), types=types)) == {"a": {"c6g.4xlarge"}}


def test_least_values_are_counted_over_all_types() -> None:
    owner = provisioner(least_values={keys.INSTANCE_TYPE: 3})
    assert bought(planned(pod(), owners=[owner]))["a"] == {known.name for known in TYPES}


def test_pods_fill_up_the_node_of_one_that_asks_for_an_accelerator() -> None:
    (node,) = planned(pod("a", extra={GPU: 1}), pod("b")).nodes
    assert {option.offering.instance_type for option in node.options} == {"g4dn.xlarge"}


def test_a_node_for_plain_pods_is_plain_beside_one_with_an_accelerator() -> None:
    card = replace(CARD, capacity=CARD.capacity + Resources.of(cpu=12_000))
    there = bought(
        planned(pod("a", cpu=14_000, extra={GPU: 1}), pod("b", cpu=14_000), types=(PLAIN, card))
    )
    assert there == {"a": {"g4dn.xlarge"}, "b": {"c6g.4xlarge"}}


def test_a_node_that_could_be_special_on_spot_alone_is_plain_on_demand() -> None:
    on_demand = tuple(way for way in PLAIN.offerings if way.capacity_type == "on-demand")
    plain = replace(PLAIN, offerings=on_demand)
    card = replace(CARD, capacity=CARD.capacity + Resources.of(cpu=12_000))
    owner = replace(provisioner(), requirements=Requirements())
    waiting = (pod("a", cpu=14_000, extra={GPU: 1}), pod("b", cpu=14_000))
    plan = planned(*waiting, owners=[owner], types=(plain, card))
    assert bought(plan) == {"a": {"g4dn.xlarge"}, "b": {"c6g.4xlarge"}}
