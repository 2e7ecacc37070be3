"""Laws of classes, and of the order of binding that a plan gives."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from shared.model import labels as keys
from shared.model.kubernetes.pods import AffinityTerm, Pod, TopologySpread
from shared.model.plan import Plan
from shared.model.policy import PreferencePolicy
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from shared.planning.rules.pod_classes import group_by_class
from tests import builders as make
from tests.property.strategies import pending_pods, snapshots

QUICK = PackingSettings(improve_iterations=2)
RULES: Final[Sequence[dict[str, Any]]] = (
    {"spreads": (make.spread(), make.spread(keys.HOSTNAME, 2))},
    {"spreads": (make.spread(keys.CAPACITY_TYPE, 2), make.spread(min_domains=4))},
    {"spreads": (make.spread("team"),)},
    {"spreads": (make.spread(keys.ARCH, hard=False),)},
    {"affinity": (make.affinity(keys.ZONE, selector=make.selector(app="db")),)},
    {"affinity": (make.affinity(selector=make.selector(app="db")),)},
    {"affinity": (make.affinity(), make.affinity(keys.ZONE))},
    {"anti_affinity": (make.affinity(keys.ZONE, selector=make.selector(app="db")),)},
    {"anti_affinity": (make.affinity(weight=5), make.affinity(keys.ZONE, weight=9))},
)


@given(pending_pods())
def test_classes_hold_each_pod_once_whatever_the_order(pods: tuple[Pod, ...]) -> None:
    classes = group_by_class(pods)
    assert sorted(ref.uid for pod_class in classes for ref in pod_class.pods) == sorted(
        p.uid for p in pods
    )
    assert group_by_class(tuple(reversed(pods))) == classes
    by_uid = {pod.uid: pod for pod in pods}
    for pod_class in classes:
        assert {by_uid[ref.uid].scheduling for ref in pod_class.pods} == {pod_class.scheduling}
    ranks = [pod_class.scheduling.priority for pod_class in classes]
    assert ranks == sorted(ranks, reverse=True)


class Cluster:
    """Nodes with their labels and the pods on them, judged in the plainest way."""

    def __init__(self, snapshot: ClusterSnapshot, plan: Plan) -> None:
        types = {
            instance_type.name: instance_type.labels for instance_type in snapshot.instance_types
        }
        self.labels: dict[str, Mapping[str, str]] = {
            node.name: node.labels for node in snapshot.nodes
        }
        self.pods: dict[str, list[Pod]] = {node.name: [] for node in snapshot.nodes}
        self.place: dict[str, str] = {}
        for slot in snapshot.slots:
            of_type = types.get(slot.offering.instance_type, {})
            self.labels[slot.name] = {keys.HOSTNAME: slot.name, **of_type, **slot.labels}
            self.pods[slot.name] = [pod for pod in snapshot.pending if make.ref(pod) in slot.pods]
        for pod in snapshot.bound:
            self.pods[pod.node_name].append(pod)
        for number, node in enumerate(plan.nodes):
            first = node.options[0].offering
            name = f"new-{number}"
            self.labels[name] = {
                **types[first.instance_type],
                **node.labels,
                keys.ZONE: first.zone,
                keys.CAPACITY_TYPE: first.capacity_type.value,
                keys.HOSTNAME: name,
            }
            self.pods[name] = []
            self.place.update({ref.uid: name for ref in node.pods})
        for placement in plan.placements:
            self.place.update({ref.uid: placement.node for ref in placement.pods})

    def domain(self, key: str, value: str | None) -> list[Pod]:
        names = [name for name, labels in self.labels.items() if labels.get(key) == value]
        return [pod for name in names for pod in self.pods[name]]

    def wrong(self, pod: Pod, name: str) -> list[str]:
        labels = self.labels[name]
        found = [
            f"{pod.name} on {name}: {rule}"
            for rule in pod.scheduling.spreads
            if rule.policy == "DoNotSchedule" and not self.spread_kept(pod, rule, labels)
        ]
        found += [
            f"{pod.name} on {name}: {term}"
            for term in pod.scheduling.affinity
            if term.weight is None and not self.near(pod, term, labels)
        ]
        found += [
            f"{pod.name} on {name} beside {other.name}"
            for key, value in labels.items()
            for other in self.domain(key, value)
            if apart(pod, other, key) or apart(other, pod, key)
        ]
        return found

    def spread_kept(self, pod: Pod, rule: TopologySpread, labels: Mapping[str, str]) -> bool:
        wanted = [
            spread.key for spread in pod.scheduling.spreads if spread.policy == "DoNotSchedule"
        ]
        if any(key not in labels for key in wanted):
            return False
        counts: dict[str, int] = {}
        for name, of_node in self.labels.items():
            if pod.scheduling.node_selector.allow_labels(of_node) and all(
                key in of_node for key in wanted
            ):
                value = of_node[rule.key]
                counts[value] = counts.get(value, 0) + sum(
                    other_pod.namespace == pod.namespace and counted(rule, other_pod)
                    for other_pod in self.pods[name]
                )
        floor = 0 if len(counts) < (rule.min_domains or 0) else min(counts.values(), default=0)
        return counts.get(labels[rule.key], 0) + counted(rule, pod) - floor <= rule.max_skew

    def near(self, pod: Pod, term: AffinityTerm, labels: Mapping[str, str]) -> bool:
        terms = [term for term in pod.scheduling.affinity if term.weight is None]

        def asked(other_pod: Pod) -> bool:
            return all(selects(each, pod, other_pod) for each in terms)

        if term.key not in labels:
            return False
        if any(asked(pod) for pod in self.domain(term.key, labels[term.key])):
            return True
        nobody = not any(
            asked(pod)
            for each in terms
            for name, of_node in self.labels.items()
            if each.key in of_node
            for pod in self.pods[name]
        )
        return nobody and asked(pod)


def counted(rule: TopologySpread, pod: Pod) -> bool:
    return rule.selector is not None and rule.selector.selects(pod.labels)


def selects(term: AffinityTerm, owner: Pod, other: Pod) -> bool:
    return (
        term.selector is not None
        and other.namespace in (term.namespaces or (owner.namespace,))
        and term.selector.selects(other.labels)
    )


def apart(owner: Pod, other: Pod, key: str) -> bool:
    return any(
        term.key == key and term.weight is None and selects(term, owner, other)
        for term in owner.scheduling.anti_affinity
    )


@given(snapshots(), st.lists(st.sampled_from(RULES), max_size=6))
def test_each_pod_is_acceptable_at_its_moment(
    snapshot: ClusterSnapshot, more: Sequence[Mapping[str, Any]]
) -> None:
    ruled = [
        make.pod(
            f"r{number}-{replica}",
            labels={"app": "db" if number % 2 else "web"},
            scheduling=replace(make.scheduling(cpu=300), **rules),
        )
        for number, rules in enumerate(more)
        for replica in range(3)
    ]
    world = replace(snapshot, pending=(*snapshot.pending, *ruled))
    plan = decide(world, QUICK)
    cluster = Cluster(world, plan)
    pods = {pod.uid: pod for pod in world.pending}
    assert sorted(ref.uid for ref in plan.order) == sorted(cluster.place)
    wrong = []
    for ref in plan.order:
        name = cluster.place[ref.uid]
        wrong += cluster.wrong(pods[ref.uid], name)
        cluster.pods[name].append(pods[ref.uid])
    assert wrong == []


SOFT: Final[Sequence[dict[str, Any]]] = (
    {"spreads": (make.spread(hard=False), make.spread(keys.HOSTNAME, hard=False))},
    {"anti_affinity": (make.affinity(weight=5), make.affinity(keys.ZONE, weight=9))},
    {"affinity": (make.affinity(weight=5), make.affinity("rack", weight=9))},
)


@given(snapshots(), st.sampled_from(SOFT), st.sampled_from(PreferencePolicy))
def test_a_preference_never_leaves_a_pod_without_a_place(
    snapshot: ClusterSnapshot, rules: Mapping[str, Any], policy: PreferencePolicy
) -> None:
    plain = make.pods(3, "q", cpu=400)
    choosy = tuple(replace(pod, scheduling=replace(pod.scheduling, **rules)) for pod in plain)
    empty = replace(snapshot, pending=(), slots=())
    before = decide(replace(empty, pending=plain), QUICK)
    settings = replace(QUICK, preference_policy=policy)
    after = decide(replace(empty, pending=choosy), settings)
    assert after.preferences.kept <= after.preferences.stated
    assert len(after.unschedulable) <= len(before.unschedulable)
