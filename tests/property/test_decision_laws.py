"""Laws of the provisioning decision, checked against the snapshot by other means."""

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import TypeVar

from hypothesis import given
from hypothesis import strategies as st

from shared.model import labels as keys
from shared.model.ec2.launches import LaunchOption, PlannedNode, PodRef
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.taints import first_untolerated
from shared.model.plan import Plan
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from shared.planning.lower_bound import with_bound
from tests.property.strategies import snapshots

T = TypeVar("T")
# Enough for a good plan of a few pods, and quick.
QUICK = PackingSettings(improve_iterations=2)


def given_to(plan: Plan) -> list[PodRef]:
    """Return the pods that get a node, new or not, as often as they do."""
    placed = [ref for placement in plan.placements for ref in placement.pods]
    return [*placed, *(ref for node in plan.nodes for ref in node.pods)]


def pods_of(snapshot: ClusterSnapshot) -> Mapping[str, Pod]:
    return {pod.uid: pod for pod in snapshot.pending}


def accepts(pod: Pod, labels: Mapping[str, str]) -> bool:
    wanted = pod.scheduling
    terms = wanted.required_terms or (wanted.node_selector,)
    return wanted.node_selector.allow_labels(labels) and any(t.allow_labels(labels) for t in terms)


def keeps_apart(other_pod: Pod, other: Pod) -> bool:
    """Whether kube-scheduler would not put `other` where `one` stands, or the other way round."""
    ports = {p[1:] for p in other_pod.scheduling.host_ports} & {
        p[1:] for p in other.scheduling.host_ports
    }
    return bool(ports) or any(
        term.key == keys.HOSTNAME
        and term.selector is not None
        and b.namespace in (term.namespaces or (a.namespace,))
        and term.selector.selects(b.labels)
        for a, b in ((other_pod, other), (other, other_pod))
        for term in a.scheduling.anti_affinity
    )


def over_skew(members: Sequence[Pod]) -> list[str]:
    """Return the pods whose hard hostname spread is broken if some node is empty.

    Pods that are only counted may come after those that have the rule, so they do not matter.
    """
    return [
        pod.key
        for pod in members
        for rule in pod.scheduling.spreads
        if rule.key == keys.HOSTNAME
        and rule.policy == "DoNotSchedule"
        and rule.selector is not None
        and rule.selector.selects(pod.labels)
        and rule.max_skew
        < sum(
            rule.selector.selects(member.labels)
            for member in members
            if member.namespace == pod.namespace and rule in member.scheduling.spreads
        )
    ]


def labels_of(snapshot: ClusterSnapshot, node: PlannedNode, option: LaunchOption) -> dict[str, str]:
    types = {instance_type.name: instance_type for instance_type in snapshot.instance_types}
    key = option.offering
    return {
        **types[key.instance_type].labels,
        **node.labels,
        keys.ZONE: key.zone,
        keys.CAPACITY_TYPE: key.capacity_type.value,
    }


@given(snapshots())
def test_every_pod_is_placed_once_or_has_a_reason(snapshot: ClusterSnapshot) -> None:
    plan = decide(snapshot, QUICK)
    nominated = {ref.uid for slot in snapshot.slots for ref in slot.pods}
    waiting = [
        pod.uid
        for pod in snapshot.pending
        if pod.is_provisionable and pod.uid not in nominated | snapshot.promised
    ]
    named = [ref.uid for ref in given_to(plan)]
    named += [pod_left.pod.uid for pod_left in plan.unschedulable]
    assert sorted(named) == sorted(waiting)
    assert all(pod_left.reasons and all(pod_left.reasons) for pod_left in plan.unschedulable)
    assert not plan.remark


@given(snapshots())
def test_every_option_of_a_planned_node_holds_all_its_pods(snapshot: ClusterSnapshot) -> None:
    plan = decide(snapshot, QUICK)
    pods = pods_of(snapshot)
    owners = {provisioner.name: provisioner for provisioner in snapshot.provisioners}
    for node in plan.nodes:
        owner = owners[node.provisioner]
        members = [pods[ref.uid] for ref in node.pods]
        assert node.requests == Resources.total(member.scheduling.requests for member in members)
        assert not owner.paused
        assert not any(
            first_untolerated(owner.taints, member.scheduling.tolerations) for member in members
        )
        assert not over_skew(members)
        for option in (*node.options, *node.fallback):
            labels = labels_of(snapshot, node, option)
            assert (node.requests + node.daemon_requests).fits(option.allocatable)
            assert all(accepts(member, labels) for member in members)
            assert option.offering not in snapshot.unavailable
            assert all(
                requirement.allows(labels.get(requirement.key))
                for requirement in owner.requirements
                if requirement.key in labels
            )
        assert len({launch_option.offering.capacity_type for launch_option in node.options}) == 1


@given(snapshots())
def test_pods_that_keep_apart_never_share_a_node(snapshot: ClusterSnapshot) -> None:
    plan = decide(snapshot, QUICK)
    pods = pods_of(snapshot)
    groups = [[pods[ref.uid] for ref in node.pods] for node in plan.nodes]
    for placement in plan.placements:
        standing = [pod for pod in snapshot.bound if pod.node_name == placement.node]
        promised = [
            pods[ref.uid]
            for slot in snapshot.slots
            if slot.name == placement.slot
            for ref in slot.pods
        ]
        groups.append([*(pods[ref.uid] for ref in placement.pods), *promised])
        for group in groups[-1]:
            assert not any(keeps_apart(group, other) for other in standing)
    for members in groups:
        for index, member in enumerate(members):
            assert not any(keeps_apart(member, other) for other in members[index + 1 :])


@given(snapshots())
def test_placed_pods_fit_the_room_of_nodes_that_stay(snapshot: ClusterSnapshot) -> None:
    plan = decide(snapshot, QUICK)
    pods = pods_of(snapshot)
    nodes = {node.name: node for node in snapshot.nodes}
    slots = {slot.name: slot for slot in snapshot.slots}
    for placement in plan.placements:
        asked = Resources.total(pods[ref.uid].scheduling.requests for ref in placement.pods)
        if placement.slot:
            slot = slots[placement.slot]
            already = [pods[ref.uid] for ref in slot.pods]
            allocatable = slot.allocatable
        else:
            assert not nodes[placement.node].unschedulable
            already = [pod for pod in snapshot.bound if pod.node_name == placement.node]
            allocatable = nodes[placement.node].allocatable
        used = Resources.total(pod.scheduling.requests for pod in already)
        assert asked.fits(allocatable - used)


@given(snapshots())
def test_limits_are_kept_even_if_every_node_becomes_its_largest_option(
    snapshot: ClusterSnapshot,
) -> None:
    plan = decide(snapshot, QUICK)
    for owner in snapshot.provisioners:
        for name, most in (owner.limits or Resources()).items:
            there = sum(
                node.capacity[name] for node in snapshot.nodes if node.provisioner == owner.name
            )
            there += sum(s.capacity[name] for s in snapshot.slots if s.provisioner == owner.name)
            bought = [n for n in plan.nodes if n.provisioner == owner.name]
            if bought:
                assert there + sum(n.largest_capacity[name] for n in bought) <= most


@given(snapshots(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(snapshot: ClusterSnapshot, random: Random) -> None:
    def shuffled(many: Sequence[T]) -> tuple[T, ...]:
        return tuple(random.sample(many, len(many)))

    mixed = replace(
        snapshot,
        pending=shuffled(snapshot.pending),
        bound=shuffled(snapshot.bound),
        nodes=shuffled(snapshot.nodes),
        provisioners=shuffled(snapshot.provisioners),
        sites=shuffled(snapshot.sites),
        daemonsets=shuffled(snapshot.daemonsets),
        slots=shuffled(snapshot.slots),
    )
    assert decide(mixed, QUICK) == decide(snapshot, QUICK)


@given(snapshots())
def test_what_is_promised_is_not_planned_again(snapshot: ClusterSnapshot) -> None:
    plan = decide(snapshot, QUICK)
    promised = {ref.uid for ref in given_to(plan)}
    after = decide(replace(snapshot, promised=snapshot.promised | promised), QUICK)
    named = set(given_to(after)) | {pod_left.pod for pod_left in after.unschedulable}
    assert named == {pod_left.pod for pod_left in plan.unschedulable}


@given(snapshots())
def test_every_planned_node_has_pods_and_a_price_no_lower_than_the_bound(
    snapshot: ClusterSnapshot,
) -> None:
    plan = with_bound(snapshot, decide(snapshot, QUICK))
    assert all(node.pods for node in plan.nodes)
    assert plan.cost_micros_per_hour == sum(node.price_micros_per_hour for node in plan.nodes)
    assert plan.lower_bound_micros_per_hour <= plan.cost_micros_per_hour
    counted = Counter(ref for node in plan.nodes for ref in node.pods)
    assert all(count == 1 for count in counted.values())
