"""The initial state: what a decision starts from, made of a snapshot."""

from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from shared.model import labels as keys
from shared.model.kubernetes.pods import Pod, Scheduling
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.snapshot import ClusterSnapshot
from shared.packing.problem import PackingSettings
from shared.planning.offerings.offering_index import OfferingIndex
from shared.planning.offerings.offering_table import OfferingTable, Seller, offering_table
from shared.planning.offerings.pending_group import PendingGroup, PreferenceChoice, Wish
from shared.planning.offerings.picks import Picks
from shared.planning.offerings.target_node import TargetNode
from shared.planning.standing_rules import standing_rules
from shared.planning.state import PlanState, sold_out
from shared.planning.work import Work, estimates
from shared.scheduling.compatibility import accepted_terms
from shared.scheduling.daemon_overhead import daemon_keys
from shared.scheduling.existing_nodes import (
    CountedNode,
    ExistingNode,
    counted_nodes,
    daemons_on,
    nominated,
    rooms,
)
from shared.scheduling.limits import remaining
from shared.scheduling.pod_classes import PodClass, group, selected_keys
from shared.scheduling.provisioner_offerings import PLACE_KEYS, in_order
from shared.scheduling.topology.compile import TopologyRules
from shared.scheduling.topology.counts import Place, Profile, TopologyCounts, add, expect
from shared.scheduling.topology.daemonset_pods import (
    CountedDaemonSets,
    counted_daemonsets,
    daemonset_pods,
)
from shared.scheduling.topology.selector import namespace_labels


def asking(snapshot: ClusterSnapshot) -> list[Pod]:
    """Return the pending pods that a decision is for: those with a place in sight are not asked."""
    placed = nominated(snapshot.slots) | snapshot.promised
    return [pod for pod in snapshot.pending if pod.is_provisionable and pod.uid not in placed]


def initial_state(
    snapshot: ClusterSnapshot,
    waiting: Sequence[Pod],
    settings: PackingSettings,
    work: Work,
    weighed: AbstractSet[Wish] | None = None,
) -> PlanState:
    """Return the state before anything is decided: pods, nodes, and what can be bought.

    Args:
        snapshot: What is known of the cluster.
        waiting: The pods that are decided for.
        settings: What a good plan is.
        work: What the decision costs is counted in it.
        weighed: Of the preferences that are weighed, those that are rules; None for all.

    Raises:
        OverBudgetError: If that takes more steps than the decision may take.
    """
    existing = rooms(snapshot)
    others = counted_nodes(snapshot, existing)
    standing = _pods(existing, others)
    rules = [pod.scheduling for pod in standing]
    rules += [daemon_set.scheduling for daemon_set in snapshot.daemonsets]
    classes = work.classes = group(waiting, rules)
    seen = _Seen([*(pod_class.scheduling for pod_class in classes), *rules])
    nodes, named = len(existing) + len(others), len(snapshot.namespaces)
    work.expect(estimates(classes, nodes, seen.differing(standing), named))
    table, cut, brought = _table(snapshot, classes, work)
    topology_counts = TopologyCounts(_topology_keys(table, existing, others))
    book = _rulebook(snapshot, topology_counts, classes, _hosts(existing, others), standing)
    wider = _stand(snapshot, topology_counts, book, classes, standing, work)
    daemonsets = counted_daemonsets(snapshot.daemonsets, book)
    limits = remaining(snapshot)
    launchables = OfferingIndex(table, existing, sold_out(table, limits))
    taints = [*table.by_taints(), *(room.taints for room in existing)]
    choice = PreferenceChoice(
        policy=settings.preference_policy,
        by_provisioner={
            provisioner.name: provisioner.preference_policy
            for provisioner in snapshot.provisioners
            if provisioner.preference_policy is not None
        },
        weighed=weighed,
        soft_taints=_soft(taints),
    )
    spots = [TargetNode(room.name, room.labels, room) for room in existing]
    aside = [(node, _place_of(node)) for node in others]
    _count(topology_counts, book, seen, spots, aside)
    _expect_companions(daemonsets, spots, aside)
    topology_counts.mark()
    pod_groups = tuple(
        PendingGroup(index, pod_class, book, launchables, choice)
        for index, pod_class in enumerate(classes)
    )
    for pod_group in pod_groups:
        if pod_group.wanted:
            book.keep_to(pod_group.one.namespace, pod_group.one.scheduling, pod_group.wanted)
    topology_counts.leave_out(book.unused())
    topology_keys = topology_counts.keys()
    suited = tuple(pod_group.suited(topology_keys) for pod_group in pod_groups)
    launchables.leave_out_special(suited)
    return PlanState(
        launchables=launchables,
        topology_counts=topology_counts,
        pod_groups=pod_groups,
        spots=spots,
        limits=limits,
        settings=settings,
        seed=snapshot.seed,
        daemonsets=daemonsets,
        topology_keys=topology_keys,
        work=work,
        cut=cut,
        brought=brought,
        suited=suited,
        wider=wider,
    )


def _pods(existing: Iterable[ExistingNode], others: Iterable[CountedNode]) -> list[Pod]:
    found = [pod for room in existing for pod in room.pods]
    return found + [pod for other in others for pod in other.pods]


def _hosts(existing: Iterable[ExistingNode], others: Iterable[CountedNode]) -> frozenset[str]:
    """Return the names of the hosts that stand, those that are on their way left out."""
    standing = [room.labels for room in existing if not room.slot]
    standing += [node.labels for node in others if not node.starting]
    return frozenset(labels.get(keys.HOSTNAME, "") for labels in standing)


def _place_of(node: CountedNode) -> Place:
    """Return where the pods of a node are that takes no more, as far as that is known."""
    maybe = tuple(Place(node.name, labels, node.taints) for labels in node.possible)
    return Place(node.name, node.labels, node.taints, unsettled=node.unsettled, maybe=maybe)


class _Seen:
    """What rules see of pods: their namespace, and the labels that any rule looks at.

    Args:
        rules: What all pods ask for that may count others.
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
        """Return how many of some pods differ in that, none when there are no rules."""
        return len({self.of(pod) for pod in pods}) if self._visible else 0


def _topology_keys(
    table: OfferingTable, existing: Iterable[ExistingNode], others: Iterable[CountedNode]
) -> frozenset[str]:
    """Return the keys of the labels that nodes have which are there or could be bought."""
    labels = [*(room.labels for room in existing), *(node.labels for node in others)]
    labels += [possible for node in others for possible in node.possible]
    return frozenset({keys.HOSTNAME, *PLACE_KEYS, *table.own_keys}.union(*labels))


def _rulebook(
    snapshot: ClusterSnapshot,
    topology_counts: TopologyCounts,
    classes: Iterable[PodClass],
    hosts: frozenset[str],
    standing: Iterable[Pod],
) -> TopologyRules:
    """Return the rule book, all rules of pods that wait registered."""
    listed = tuple(classes)
    seen = {pod_class.namespace for pod_class in listed} | {pod.namespace for pod in standing}
    seen |= {daemon_set.namespace for daemon_set in snapshot.daemonsets}
    namespaces = namespace_labels(snapshot.namespaces, seen)
    book = TopologyRules(topology_counts, namespaces, hosts)
    registered: set[tuple[str, int]] = set()
    for pod_class in listed:
        if (pod_class.namespace, id(pod_class.scheduling)) not in registered:
            registered.add((pod_class.namespace, id(pod_class.scheduling)))
            book.register(pod_class.namespace, pod_class.scheduling)
    return book


def _stand(
    snapshot: ClusterSnapshot,
    topology_counts: TopologyCounts,
    book: TopologyRules,
    classes: Sequence[PodClass],
    standing: Iterable[Pod],
    work: Work,
) -> tuple[str, ...]:
    """Register the rules of pods that stand or come with nodes; return namespaces widened."""
    on_nodes = Counter(
        (pod.namespace, id(pod.scheduling)) for pod in standing if pod.scheduling.anti_affinity
    )
    asked = {id(pod.scheduling): pod.scheduling for pod in standing}
    owners = [(namespace, asked[number], pods) for (namespace, number), pods in on_nodes.items()]
    daemons = [
        (daemon_set.namespace, daemon_set.scheduling, 1)
        for daemon_set in snapshot.daemonsets
        if daemon_set.scheduling.anti_affinity
    ]
    rules = standing_rules(
        (*owners, *daemons), classes, topology_counts, len(snapshot.namespaces), work.of_standing
    )
    work.stand(rules.steps)
    book.widen(rules.wider)
    for namespace, scheduling, _ in owners:
        book.owned(namespace, scheduling, standing=True)
    for namespace, scheduling, _ in daemons:
        topology_counts.grow(book.owned(namespace, scheduling, standing=True))
    return tuple(sorted(rules.wider))


def _table(
    snapshot: ClusterSnapshot, classes: Sequence[PodClass], work: Work
) -> tuple[OfferingTable, frozenset[int], dict[int, int]]:
    """Return what could be bought, the classes without a pick, and who asked for how many first."""
    sites = {site.provisioner: site for site in snapshot.sites}
    order = _in_turn(classes)
    topology: set[str] = set()
    for scheduling in {
        id(pod_class.scheduling): pod_class.scheduling for pod_class in classes
    }.values():
        topology.update(spread.key for spread in scheduling.spreads)
        topology.update(term.key for term in scheduling.affinity)
        topology.update(term.key for term in scheduling.anti_affinity)
        topology.update(tie.key for tie in scheduling.ties)
    telling = topology | daemon_keys(snapshot.daemonsets)
    sellers: list[Seller] = []
    cut: set[int] = set()
    brought: dict[int, int] = {}
    for provisioner in in_order(snapshot.provisioners):
        if provisioner.name not in sites:
            continue
        picks = Picks(provisioner, telling)
        for index in order:
            looks, size = picks.looks, len(picks)
            if not picks.want(accepted_terms(classes[index].scheduling)):
                cut.add(index)
            brought[index] = brought.get(index, 0) + len(picks) - size
            work.spend(picks.looks - looks, index)
        for index in order:
            looks, size = picks.looks, len(picks)
            for preferred_node in classes[index].scheduling.preferred_nodes:
                picks.prefer(preferred_node.requirements)
            brought[index] = brought.get(index, 0) + len(picks) - size
            work.spend(picks.looks - looks, index)
        site, listed = sites[provisioner.name], picks.listed(sorted(topology))
        sellers.append(Seller(provisioner=provisioner, site=site, picks=listed))
    table = offering_table(
        sellers, snapshot.instance_types, snapshot.daemonsets, snapshot.unavailable
    )
    return table, frozenset(cut), {index: many for index, many in brought.items() if many}


def _in_turn(classes: Sequence[PodClass]) -> list[int]:
    """Return the classes by priority; of equal ones each namespace's first, then its second."""
    seen: dict[tuple[int, str], int] = {}
    turns = []
    for index, pod_class in enumerate(classes):
        priority = pod_class.scheduling.priority
        turn = seen.get((priority, pod_class.namespace), 0)
        seen[priority, pod_class.namespace] = turn + 1
        turns.append((-priority, turn, index))
    return [index for _, _, index in sorted(turns)]


def _soft(taints: Iterable[Sequence[Taint]]) -> bool:
    return any(
        taint.effect == Effect.PREFER_NO_SCHEDULE
        for many in {id(taint): taint for taint in taints}.values()
        for taint in many
    )


def _count(
    topology_counts: TopologyCounts,
    book: TopologyRules,
    seen: _Seen,
    spots: Sequence[TargetNode],
    others: Sequence[tuple[CountedNode, Place]],
) -> None:
    """Count who stands where already."""
    if not topology_counts:
        return
    profiles: dict[tuple[object, ...], Profile] = {}

    def profile(pod: Pod) -> Profile:
        owner = id(pod.scheduling) if pod.scheduling.anti_affinity else 0
        identity = (*seen.of(pod), owner, pod.is_terminating)
        if identity not in profiles:
            profiles[identity] = book.profile(
                pod.namespace,
                pod.labels,
                pod.scheduling,
                standing=True,
                terminating=pod.is_terminating,
            )
        return profiles[identity]

    places: list[tuple[Place, tuple[Pod, ...]]] = [
        (spot, spot.room.pods) for spot in spots if spot.room is not None
    ]
    places += [(place, node.pods) for node, place in others]
    for place, _ in places:
        for known in (place, *place.maybe):
            topology_counts.open(known)
    for place, pods in places:
        for pod in pods:
            if pod.node_name or not pod.nominated_node:
                add(profile(pod), place)
            else:
                expect(profile(pod), (place,))
            # The node may come up as any of several: what is planned must be right with each.
            expect(profile(pod), place.maybe, sure=place)


def _expect_companions(
    daemonsets: CountedDaemonSets,
    spots: Iterable[TargetNode],
    others: Iterable[tuple[CountedNode, Place]],
) -> None:
    """Count the pods of DaemonSets that nodes will still get."""
    if not daemonsets:
        return
    for spot, room in [(spot, spot.room) for spot in spots if spot.room is not None]:
        for profile in daemonset_pods(daemonsets, room.labels, room.taints, daemons_on(room.pods)):
            add(profile, spot)
    for node, place in others:
        if node.starting and not place.maybe:
            for profile in daemonset_pods(daemonsets, node.labels, node.taints):
                add(profile, place)
        _expect_somewhere(daemonsets, place.maybe)


def _expect_somewhere(daemonsets: CountedDaemonSets, maybe: Iterable[Place]) -> None:
    places: dict[Profile, list[Place]] = {}
    for place in maybe:
        for profile in daemonset_pods(daemonsets, place.labels, place.taints):
            places.setdefault(profile, []).append(place)
    for profile, there in places.items():
        expect(profile, there)
