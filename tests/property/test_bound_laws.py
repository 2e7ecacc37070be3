"""Laws of the printed lower bound: no other plan for the same pods costs less."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from shared.model import labels as keys
from shared.model.kubernetes.pods import Pod
from shared.model.plan import Plan
from shared.model.requirements import Requirement, Requirements
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.packing.best_bound import least_cost
from shared.packing.packer import pack
from shared.packing.problem import PackingProblem, PackingSettings
from shared.planning.decide import decide
from shared.planning.lower_bound import with_bound
from tests.property.strategies import snapshots
from tests.property.test_packing_laws import QUICK, problems

HASTY = PackingSettings(improve_iterations=2)
OTHERS = (
    PackingSettings(max_node_vcpus=0, diversification_k_on_demand=1, diversification_k_spot=1),
    PackingSettings(
        improve_iterations=0, max_node_vcpus=4, max_launch_groups=1, fewer_groups_permille=900
    ),
    PackingSettings(node_fee_micros_per_hour=100_000, leftover_value_percent=0),
)


def placed(plan: Plan) -> set[str]:
    on_nodes = [ref.uid for node in plan.nodes for ref in node.pods]
    return {*on_nodes, *(ref.uid for placement in plan.placements for ref in placement.pods)}


def pinned(pod: Pod, zone: str) -> Pod:
    """Return the pod as if it had asked for a zone; that would change what a spread looks at."""
    if any(spread.key == keys.ZONE for spread in pod.scheduling.spreads):
        return pod
    wanted = Requirements.of((Requirement.of(keys.ZONE, zone),))
    selector = pod.scheduling.node_selector.merge(wanted)
    return replace(pod, scheduling=replace(pod.scheduling, node_selector=selector))


@given(snapshots(), st.data())
def test_no_other_plan_for_the_same_pods_costs_less_than_the_bound(
    snapshot: ClusterSnapshot, data: st.DataObject
) -> None:
    plan = with_bound(snapshot, decide(snapshot, HASTY))
    bound = plan.lower_bound_micros_per_hour
    assert 0 <= bound <= plan.cost_micros_per_hour
    zones = st.sampled_from(
        sorted({zone for site in snapshot.sites for zone in site.zones} | {"?"})
    )
    dealt = tuple(
        pinned(pod, data.draw(zones)) if data.draw(st.booleans()) else pod
        for pod in snapshot.pending
    )
    for other in other_plans(snapshot, dealt):
        if placed(plan) <= placed(other):
            assert bound <= other.cost_micros_per_hour


def other_plans(snapshot: ClusterSnapshot, dealt: tuple[Pod, ...]) -> Iterator[Plan]:
    for number, settings in enumerate(OTHERS):
        yield decide(replace(snapshot, seed=number), settings)
    yield decide(replace(snapshot, pending=snapshot.pending[::-1]), HASTY)
    yield decide(replace(snapshot, pending=dealt), HASTY)


@given(asked=problems())
@QUICK
def test_no_packing_of_the_same_pods_costs_less_than_the_bound(asked: PackingProblem) -> None:
    made = pack(asked)
    missing = {k: n for k, n, _ in made.unplaced}
    same = tuple(
        replace(pod_class, count=pod_class.count - missing.get(k, 0))
        for k, pod_class in enumerate(asked.classes)
    )
    question = replace(asked, classes=same, limits={})
    bought = [0] * len(same)
    for node in made.nodes:
        for k, n in node.contents:
            bought[k] += n
    bound = least_cost(question, bought, made.cost_micros_per_hour).micros_per_hour
    assert made.lower_bound_micros_per_hour == 0 or bound <= made.cost_micros_per_hour
    for settings in OTHERS:
        other = pack(replace(question, settings=settings, seed=9))
        if not other.unplaced:
            assert bound <= other.cost_micros_per_hour
