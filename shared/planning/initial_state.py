"""The initial state: what a decision starts from, made of a snapshot."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import product

from shared.model import labels as keys
from shared.model.kubernetes.pods import Pod, Scheduling
from shared.model.kubernetes.taints import Effect
from shared.model.snapshot import ClusterSnapshot
from shared.packing.problem import PackingSettings
from shared.planning.existing_pod_rules import existing_pod_rules
from shared.planning.offerings.offering_index import OfferingIndex
from shared.planning.offerings.offering_table import OfferingTable, ProvisionerPicks, offering_table
from shared.planning.offerings.pending_group import (
    PendingGroup,
    PreferenceChoice,
    WeighedPreference,
)
from shared.planning.offerings.picks import Picks
from shared.planning.offerings.target_node import TargetNode
from shared.planning.rules.daemon_overhead import daemon_keys
from shared.planning.rules.existing_nodes import (
    CountedNode,
    ExistingNode,
    counted_nodes,
    daemons_on,
    existing_nodes,
    nominated,
)
from shared.planning.rules.labels_and_taints import accepted_terms
from shared.planning.rules.limits import remaining_limits
from shared.planning.rules.pod_classes import PodClass, group_by_class, selected_keys
from shared.planning.rules.provisioner_offerings import PLACE_KEYS, usable_in_order
from shared.planning.rules.topology.counts import Place, Profile, TopologyCounts, add, add_uncertain
from shared.planning.rules.topology.daemonset_pods import (
    CountedDaemonSets,
    counted_daemonsets,
    daemonset_pods,
)
from shared.planning.rules.topology.rules import TopologyRules
from shared.planning.rules.topology.selector import namespace_labels
from shared.planning.state import PlanState, provisioners_at_limit
from shared.planning.work import Work, estimates


def pods_to_place(snapshot: ClusterSnapshot) -> list[Pod]:
    """Return the pending pods to place: provisionable, and not promised to a node already."""
    placed = nominated(snapshot.slots) | snapshot.promised
    return [pod for pod in snapshot.pending if pod.is_provisionable and pod.uid not in placed]


def initial_state(
    snapshot: ClusterSnapshot,
    waiting: Sequence[Pod],
    settings: PackingSettings,
    work: Work,
    as_rules: AbstractSet[WeighedPreference] = frozenset(),
) -> PlanState:
    """Return the state before anything is decided: pods, nodes, and what can be launched.

    Args:
        snapshot: What is known of the cluster.
        waiting: The pods to place.
        settings: Packing settings.
        work: Counts the steps of the decision.
        as_rules: The weighed preferences that are hard rules in this try.

    Raises:
        OverBudgetError: If this takes more steps than the budget allows.
    """
    existing = existing_nodes(snapshot)
    others = counted_nodes(snapshot, existing)
    nodes: tuple[ExistingNode | CountedNode, ...] = (*existing, *others)
    existing_pods = [pod for node in nodes for pod in node.pods]
    rules = [pod.scheduling for pod in existing_pods]
    rules += [daemon_set.scheduling for daemon_set in snapshot.daemonsets]
    classes = work.classes = group_by_class(waiting, rules)
    seen = _VisibleLabels([*(pod_class.scheduling for pod_class in classes), *rules])
    differing, named = seen.differing(existing_pods), len(snapshot.namespaces)
    work.expect(estimates(classes, len(nodes), differing, named))
    table, picks, lacking_picks = _table(snapshot, classes, work)
    topology_counts = TopologyCounts(_topology_keys(table, nodes))
    topology_rules = _make_topology_rules(
        snapshot, topology_counts, classes, _hosts(existing, others), existing_pods
    )
    wider = _register_existing_pods(
        snapshot, topology_counts, topology_rules, classes, existing_pods, work
    )
    daemonsets = counted_daemonsets(snapshot.daemonsets, topology_rules)
    limits = remaining_limits(snapshot)
    offerings = OfferingIndex(table, existing, provisioners_at_limit(table, limits))
    choice = PreferenceChoice(
        policy=settings.preference_policy,
        by_provisioner={
            provisioner.name: provisioner.preference_policy
            for provisioner in snapshot.provisioners
            if provisioner.preference_policy is not None
        },
        as_rules=as_rules,
        soft_taints=any(
            taint.effect == Effect.PREFER_NO_SCHEDULE
            for taints in (*table.by_taints(), *(node.taints for node in existing))
            for taint in taints
        ),
    )
    targets = [
        TargetNode(existing_node.name, existing_node.labels, existing_node)
        for existing_node in existing
    ]
    others_placed = [(node, _place_of(node)) for node in others]
    _count_existing_pods(topology_counts, topology_rules, seen, targets, others_placed)
    _expect_daemonset_pods(daemonsets, targets, others_placed)
    topology_counts.save()
    pod_groups = tuple(
        PendingGroup(index, pod_class, topology_rules, offerings, choice)
        for index, pod_class in enumerate(classes)
    )
    for pod_group in pod_groups:
        pod_group.picks = picks[pod_group.index]
        pod_group.lacks_pick = pod_group.index in lacking_picks
        if pod_group.preferences_as_rules:
            topology_rules.allow_preferences(
                pod_group.pod_class.namespace,
                pod_group.pod_class.scheduling,
                pod_group.preferences_as_rules,
            )
    topology_counts.ignore(topology_rules.unused())
    topology_keys = topology_counts.keys()
    for pod_group in pod_groups:
        pod_group.find_suited(topology_keys)
    offerings.leave_out_special(pod_group.suited for pod_group in pod_groups)
    return PlanState(
        offerings=offerings,
        topology_counts=topology_counts,
        pod_groups=pod_groups,
        targets=targets,
        limits=limits,
        settings=settings,
        seed=snapshot.seed,
        daemonsets=daemonsets,
        topology_keys=topology_keys,
        work=work,
        widened_namespaces=wider,
    )


def _hosts(existing: Iterable[ExistingNode], others: Iterable[CountedNode]) -> frozenset[str]:
    """Return the host names of existing nodes; those in flight or being launched are left out."""
    label_sets = [existing_node.labels for existing_node in existing if not existing_node.slot]
    label_sets += [node.labels for node in others if not node.starting]
    return frozenset(labels.get(keys.HOSTNAME, "") for labels in label_sets)


def _place_of(node: CountedNode) -> Place:
    """Return the place of a node that takes no more pods, as far as its labels are known."""
    possible = tuple(Place(node.name, labels, node.taints) for labels in node.possible_labels)
    return Place(
        node.name,
        node.labels,
        node.taints,
        placeholder_keys=node.placeholder_keys,
        possible_places=possible,
    )


class _VisibleLabels:
    """What rules see of pods: their namespace, and the labels that any rule selects by.

    Args:
        rules: Scheduling demands of all pods whose rules may count other pods.
    """

    def __init__(self, rules: Iterable[Scheduling]) -> None:
        self._visible = frozenset(selected_keys({id(rule): rule for rule in rules}.values()))
        self._labels: dict[int, frozenset[tuple[str, str]]] = {}

    def of(self, pod: Pod) -> tuple[str, frozenset[tuple[str, str]]]:
        """Return what rules see of a pod; pods of one workload share their labels."""
        identity = id(pod.labels)
        if identity not in self._labels:
            self._labels[identity] = frozenset(
                [label for label in pod.labels.items() if label[0] in self._visible]
            )
        return pod.namespace, self._labels[identity]

    def differing(self, pods: Iterable[Pod]) -> int:
        """Return how many of these pods differ to the rules; 0 if there are no rules."""
        return len({self.of(pod) for pod in pods}) if self._visible else 0


def _topology_keys(
    table: OfferingTable, nodes: Iterable[ExistingNode | CountedNode]
) -> frozenset[str]:
    """Return the label keys of existing nodes and of nodes that could be launched."""
    labels: list[Mapping[str, str]] = []
    for node in nodes:
        labels += (node.labels, *(node.possible_labels if isinstance(node, CountedNode) else ()))
    return frozenset({keys.HOSTNAME, *PLACE_KEYS, *table.own_keys}.union(*labels))


def _make_topology_rules(
    snapshot: ClusterSnapshot,
    topology_counts: TopologyCounts,
    classes: Sequence[PodClass],
    hosts: frozenset[str],
    existing_pods: Iterable[Pod],
) -> TopologyRules:
    """Return the topology rules, with all rules of pending pods registered."""
    seen = {pod_class.namespace for pod_class in classes} | {pod.namespace for pod in existing_pods}
    seen |= {daemon_set.namespace for daemon_set in snapshot.daemonsets}
    namespaces = namespace_labels(snapshot.namespaces, seen)
    topology_rules = TopologyRules(topology_counts, namespaces, hosts)
    stated = {(entry.namespace, id(entry.scheduling)): entry.scheduling for entry in classes}
    for (namespace, _), scheduling in stated.items():
        topology_rules.register(namespace, scheduling)
    return topology_rules


def _register_existing_pods(
    snapshot: ClusterSnapshot,
    topology_counts: TopologyCounts,
    topology_rules: TopologyRules,
    classes: Sequence[PodClass],
    existing_pods: Iterable[Pod],
    work: Work,
) -> tuple[str, ...]:
    """Register the anti-affinity of pods on nodes and of DaemonSets.

    Return the namespaces whose terms were widened.
    """
    on_nodes = Counter(
        (pod.namespace, id(pod.scheduling)) for pod in existing_pods if pod.scheduling.anti_affinity
    )
    scheduling_of = {id(pod.scheduling): pod.scheduling for pod in existing_pods}
    owners = [
        (namespace, scheduling_of[number], pods) for (namespace, number), pods in on_nodes.items()
    ]
    daemons = [
        (daemon_set.namespace, daemon_set.scheduling, 1)
        for daemon_set in snapshot.daemonsets
        if daemon_set.scheduling.anti_affinity
    ]
    rules = existing_pod_rules(
        (*owners, *daemons),
        classes,
        topology_counts,
        len(snapshot.namespaces),
        work.budget_for_existing,
    )
    work.spend_on_existing(rules.steps)
    topology_rules.widen(rules.wider)
    for namespace, scheduling, _ in owners:
        topology_rules.owned(namespace, scheduling, existing=True)
    for namespace, scheduling, _ in daemons:
        topology_counts.mark_growing(topology_rules.owned(namespace, scheduling, existing=True))
    return tuple(sorted(rules.wider))


def _table(
    snapshot: ClusterSnapshot, classes: Sequence[PodClass], work: Work
) -> tuple[OfferingTable, Counter[int], set[int]]:
    """Return the offering table, how many picks each class added, and classes without a pick."""
    sites = {site.provisioner: site for site in snapshot.sites}
    order = _in_fair_order(classes)
    topology: set[str] = set()
    for scheduling in {
        id(pod_class.scheduling): pod_class.scheduling for pod_class in classes
    }.values():
        topology.update(spread.key for spread in scheduling.spreads)
        for terms in (scheduling.affinity, scheduling.anti_affinity, scheduling.ties):
            topology.update(term.key for term in terms)
    deciding_keys = topology | daemon_keys(snapshot.daemonsets)
    provisioner_picks: list[ProvisionerPicks] = []
    lacking_picks: set[int] = set()
    added: Counter[int] = Counter()
    for provisioner in usable_in_order(snapshot.provisioners):
        if provisioner.name not in sites:
            continue
        picks = Picks(provisioner, deciding_keys)
        # Preferences come last: none takes a pick that a requirement needs.
        for is_preferred, index in product((False, True), order):
            scheduling, checks, size = classes[index].scheduling, picks.checks, len(picks)
            if is_preferred:
                for preferred_node in scheduling.preferred_nodes:
                    picks.pick_for_preference(preferred_node.requirements)
            elif not picks.pick_for(accepted_terms(scheduling)):
                lacking_picks.add(index)
            added[index] += len(picks) - size
            work.spend(picks.checks - checks, index)
        site, listed = sites[provisioner.name], picks.listed(sorted(topology))
        provisioner_picks.append(ProvisionerPicks(provisioner=provisioner, site=site, picks=listed))
    table = offering_table(
        provisioner_picks, snapshot.instance_types, snapshot.daemonsets, snapshot.unavailable
    )
    return table, added, lacking_picks


def _in_fair_order(classes: Sequence[PodClass]) -> list[int]:
    """Return the indexes of classes by priority; within a priority, namespaces take turns."""
    seen: dict[tuple[int, str], int] = {}
    ranked = []
    for index, pod_class in enumerate(classes):
        priority = pod_class.scheduling.priority
        round_number = seen.get((priority, pod_class.namespace), 0)
        seen[priority, pod_class.namespace] = round_number + 1
        ranked.append((-priority, round_number, index))
    return [index for _, _, index in sorted(ranked)]


def _count_existing_pods(
    topology_counts: TopologyCounts,
    topology_rules: TopologyRules,
    seen: _VisibleLabels,
    targets: Sequence[TargetNode],
    others: Sequence[tuple[CountedNode, Place]],
) -> None:
    """Count existing pods in their domains."""
    if not topology_counts:
        return
    profiles: dict[tuple[object, ...], Profile] = {}

    def profile(pod: Pod) -> Profile:
        owner = id(pod.scheduling) if pod.scheduling.anti_affinity else 0
        identity = (*seen.of(pod), owner, pod.is_terminating)
        if identity not in profiles:
            profiles[identity] = topology_rules.profile(
                pod.namespace,
                pod.labels,
                pod.scheduling,
                existing=True,
                terminating=pod.is_terminating,
            )
        return profiles[identity]

    places: list[tuple[Place, tuple[Pod, ...]]] = [
        (target, target.existing.pods) for target in targets if target.existing is not None
    ]
    places += [(place, node.pods) for node, place in others]
    for place, _ in places:
        for known in (place, *place.possible_places):
            topology_counts.open(known)
    for place, pods in places:
        for pod in pods:
            found = profile(pod)
            if pod.node_name or not pod.nominated_node:
                add(found, place)
            else:
                add_uncertain(found, (place,))
            if place.possible_places:
                # The node may start as any of its options: the plan must be right for each.
                add_uncertain(found, place.possible_places, certain=place)


def _expect_daemonset_pods(
    daemonsets: CountedDaemonSets,
    targets: Iterable[TargetNode],
    others: Iterable[tuple[CountedNode, Place]],
) -> None:
    """Count the DaemonSet pods that nodes will still get."""
    if not daemonsets:
        return
    for target, existing_node in [
        (target, target.existing) for target in targets if target.existing is not None
    ]:
        for profile in daemonset_pods(
            daemonsets, existing_node.labels, existing_node.taints, daemons_on(existing_node.pods)
        ):
            add(profile, target)
    for node, place in others:
        if node.starting and not place.possible_places:
            for profile in daemonset_pods(daemonsets, node.labels, node.taints):
                add(profile, place)
        _expect_daemonset_pod(daemonsets, place.possible_places)


def _expect_daemonset_pod(daemonsets: CountedDaemonSets, possible: Iterable[Place]) -> None:
    places: dict[Profile, list[Place]] = {}
    for place in possible:
        for profile in daemonset_pods(daemonsets, place.labels, place.taints):
            places.setdefault(profile, []).append(place)
    for profile, there in places.items():
        add_uncertain(profile, there)
