"""Required anti-affinity of pods on nodes, within a part of the work of a plan."""

import json
from collections.abc import Iterable
from typing import Any

from shared.manifests.pod_bounds import MAX_RULES
from shared.manifests.pods import decode_pod
from shared.model import labels as keys
from shared.model.codec import from_plain, to_plain
from shared.model.kubernetes.pods import AffinityTerm, LabelSelector, Pod
from shared.model.plan import Plan
from shared.model.resources import Resources
from shared.model.values import replace
from shared.planning.decide import decide
from shared.planning.existing_pod_rules import existing_pod_rules
from shared.planning.rules.pod_classes import group_by_class
from shared.planning.rules.topology.counts import TopologyCounts
from tests import builders as make
from tests.benchmarks.planning.bounded import raw_pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ANY = LabelSelector()
ROOMY = make.node("n1", allocatable=Resources.of(cpu=8000, memory=16 * make.GIB, pods=50))


def away(
    app: str, key: str = keys.HOSTNAME, namespace: str = "tenant", **more: Any
) -> AffinityTerm:
    """Return a term that keeps pods of an app away."""
    selector = make.selector(app=app)
    return make.affinity(key, selector=selector, namespaces=(namespace,), **more)


def owner(name: str, *terms: AffinityTerm, namespace: str = "tenant") -> Pod:
    """Return a pod on the node that keeps others away."""
    return make.pod(name, cpu=10, namespace=namespace, node_name="n1", anti_affinity=terms)


def waiting(app: str = "web", namespace: str = "default") -> Pod:
    return make.pod("a", namespace=namespace, labels={"app": app})


def plan_of(pod: Pod, *bound: Pod, budget_steps: int = 2_000_000) -> Plan:
    world = make.snapshot(pod, bound=bound, nodes=(ROOMY,))
    return decide(world, budget_steps=budget_steps)


def is_on_node(plan: Plan) -> bool:
    return [placement.node for placement in plan.placements] == ["n1"]


def rules(pods: Iterable[Pod], most: int, *others: Pod) -> Any:
    owners = [(pod.namespace, pod.scheduling, 1) for pod in pods]
    return existing_pod_rules(owners, group_by_class(others), TopologyCounts(), 0, most)


def test_terms_over_labels_that_no_node_has_keep_nobody_away_and_cost_nothing() -> None:
    counts = TopologyCounts(frozenset({keys.HOSTNAME}))
    both = owner("b", away("web", "example.com/rack"), away("web", namespace="default"))
    assert counts.required_anti_affinity(both.scheduling) == both.scheduling.anti_affinity[1:]
    only = owner("b", away("web", "example.com/rack", namespace="default"))
    assert is_on_node(plan_of(waiting(), only))
    assert not is_on_node(plan_of(waiting(), both))


def test_a_pod_on_a_node_above_the_bound_keeps_away_whom_its_last_term_does() -> None:
    def standing(*last: dict[str, Any]) -> Pod:
        terms = [
            {"topologyKey": keys.HOSTNAME, "labelSelector": {"matchLabels": {"k": f"{number}"}}}
            for number in range(MAX_RULES)
        ]
        affinity = {"podAntiAffinity": {REQUIRED: [*terms, *last]}}
        return decode_pod(raw_pod("b", affinity, cpu="10m", memory="1Mi", nodeName="n1"))

    web = {"matchLabels": {"app": "web"}}
    last = {"topologyKey": keys.HOSTNAME, "labelSelector": web, "namespaces": ["default"]}
    assert is_on_node(plan_of(waiting(), standing()))
    assert not is_on_node(plan_of(waiting(), standing(last)))
    # Wider than it is written, within the namespaces that it names.
    assert not is_on_node(plan_of(waiting("other"), standing(last)))
    assert is_on_node(plan_of(waiting(namespace="shop"), standing(last)))


def test_the_namespace_whose_terms_cost_most_is_widened_first() -> None:
    dear = [owner(f"d{number}", *(away(f"x{number}-{n}") for n in range(9))) for number in range(5)]
    plain = owner("p", away("web", namespace="shop"), namespace="shop")
    everything = rules([*dear, plain], 10_000)
    assert everything.wider == {}
    found = rules([*dear, plain], everything.steps - 1)
    (wide,) = found.wider["tenant"].values()
    assert wide == AffinityTerm(key=keys.HOSTNAME, selector=ANY, namespaces=("tenant",))
    assert set(found.wider) == {"tenant"}
    assert found.steps < everything.steps
    assert set(rules([*dear, plain], 0).wider) == {"tenant", "shop"}


def test_a_wider_term_counts_the_namespaces_of_all_it_stands_for() -> None:
    named = owner("a", away("x", namespace="shop"), away("y", keys.ZONE))
    everywhere = owner("b", away("z", keys.ZONE, namespace_selector=make.selector(team="red")))
    wider = rules([named, everywhere], 0).wider["tenant"]
    assert wider == {
        keys.HOSTNAME: AffinityTerm(key=keys.HOSTNAME, selector=ANY, namespaces=("shop",)),
        keys.ZONE: AffinityTerm(
            key=keys.ZONE, selector=ANY, namespaces=("tenant",), namespace_selector=ANY
        ),
    }


def test_terms_cost_what_is_asked_for_them() -> None:
    web = [waiting(), make.pod("z", cpu=600, labels={"app": "db"})]
    one = owner("b", away("web"))
    alone = rules([one], 1_000).steps
    assert rules([one], 1_000, *web).steps > alone
    wide = owner("b", make.affinity(selector=ANY, namespaces=("tenant",)))
    assert rules([wide], 1_000, *web).steps > rules([one], 1_000, *web).steps
    assert rules([one] * 8, 1_000).steps > alone
    selecting = owner("b", away("web", namespace_selector=make.selector(team="red")))
    owners = [(selecting.namespace, selecting.scheduling, 1)]
    assert existing_pod_rules(owners, (), TopologyCounts(), 500, 9_000).steps == alone + 500


def test_what_is_widened_keeps_away_more_and_is_named() -> None:
    many = tuple(owner(f"b{n}", *(away(f"x{n}-{m}") for m in range(20))) for n in range(20))
    for namespace, placed in (("default", True), ("tenant", False)):
        plan = plan_of(waiting(namespace=namespace), *many, budget_steps=8_000)
        assert plan.wider == ("tenant",)
        assert is_on_node(plan) == placed
    assert plan_of(waiting(namespace="tenant"), *many).wider == ()
    assert is_on_node(plan_of(waiting(namespace="tenant"), *many))


def test_the_same_terms_are_widened_in_what_was_written_down() -> None:
    many = tuple(owner(f"b{n}", *(away(f"x{m}") for m in range(20))) for n in range(20))
    copies = tuple(from_plain(Pod, json.loads(json.dumps(to_plain(pod)))) for pod in many)
    shared = many[0].scheduling
    for budget in (2_000, 20_000, 200_000):
        same = tuple(replace(pod, scheduling=shared) for pod in many)
        assert plan_of(waiting(), *copies, budget_steps=budget) == plan_of(
            waiting(), *same, budget_steps=budget
        )
