"""The plan state: everything that one decision changes while it is made."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec import Struct, field

from shared.model import labels as keys
from shared.model.ec2.launches import PodRef
from shared.model.resources import Resources
from shared.packing.problem import PackingSettings
from shared.planning.offerings.offering_index import OfferingIndex
from shared.planning.offerings.offering_table import (
    LaunchableOffering,
    OfferingTable,
    bit_mask,
)
from shared.planning.offerings.pending_group import PendingGroup
from shared.planning.offerings.target_node import TargetNode, TargetOptions, target_options
from shared.planning.rules.topology.counts import Profile, TopologyCounts, add
from shared.planning.rules.topology.daemonset_pods import CountedDaemonSets, daemonset_pods
from shared.planning.work import Work

# A placed pod, with its group and node.
PlacedPod = tuple[PendingGroup, PodRef, TargetNode]


class PlanState(Struct, kw_only=True, eq=False):
    """Target nodes being filled, pods in binding order, and what they are checked against.

    Attributes:
        pod_groups: The pending groups, by index.
        targets: Existing nodes first, then nodes to be launched.
        limits: By Provisioner, what its limits left before this decision; absent if it has none.
        daemonsets: DaemonSets whose pods come with nodes and are counted by rules.
        topology_keys: Topology keys of all rules, without the host's, sorted.
        work: What the decision has cost so far.
        widened_namespaces: Namespaces whose existing pods are checked by wider terms: theirs cost
            too much.
        binding_order: The placed pods in binding order, each with its group and node.
        underfilled: Nodes to be launched that got fewer pods than were packed.
        recheck: Whether the order must be checked again, because a node was opened or changed after
            pods were placed.
        host_rules_admitted: Whether a pod was placed whose spread over hosts a further, empty host
            could violate.
        remark: Why the packer took a simpler plan or nodes above the cap; empty where it did not.
    """

    offerings: OfferingIndex
    topology_counts: TopologyCounts
    pod_groups: tuple[PendingGroup, ...]
    targets: list[TargetNode]
    limits: Mapping[str, Resources]
    settings: PackingSettings
    seed: int
    daemonsets: CountedDaemonSets
    topology_keys: tuple[str, ...]
    work: Work
    widened_namespaces: tuple[str, ...] = ()
    binding_order: list[PlacedPod] = field(default_factory=list)
    underfilled: list[TargetNode] = field(default_factory=list)
    recheck: bool = False
    host_rules_admitted: bool = False
    remark: str = ""
    _opened: int = 0
    _at_limit: tuple[Mapping[str, Resources], frozenset[str]] | None = None
    _by_daemonsets: dict[tuple[Profile, ...], int] = field(default_factory=dict)
    _target_options: dict[tuple[int, int], tuple[TargetOptions, object, object]] = field(
        default_factory=dict
    )

    @property
    def table(self) -> OfferingTable:
        """What can be launched."""
        return self.offerings.table

    @property
    def new_nodes(self) -> list[TargetNode]:
        """The nodes to be launched."""
        return [target for target in self.targets if target.existing is None]

    def admit(self, pod_group: PendingGroup, target: TargetNode, count: int) -> None:
        """Place the next pods of a pending group, which the topology constraints accept."""
        pods = [pod_group.waiting.pop() for _ in range(count)]
        topology = pod_group.topology
        profile = topology.profile
        self.host_rules_admitted = self.host_rules_admitted or topology.depends_on_new_hosts(
            target.labels.get(keys.HOSTNAME, "")
        )
        if profile:
            self.work.spend(2 * len(profile), pod_group.index)
            if target.existing is None:
                self._decide_labels(target, topology.keys, profile)
            add(profile, target, count)
        target.add_pods(pod_group, pods)
        self.binding_order.extend((pod_group, ref, target) for ref in pods)

    def open_node(
        self, options: Sequence[LaunchableOffering], fallback: Sequence[LaunchableOffering]
    ) -> TargetNode:
        """Add a node to be launched; Provisioner labels must be the same for all options."""
        self._opened += 1
        target = TargetNode(f"\x00{self._opened}", {})
        self.set_options(target, options, fallback)
        self.targets.append(target)
        before = self.topology_counts.eligible_domains() if self.binding_order else 0
        self.topology_counts.open(target)
        if self.binding_order and (
            self.host_rules_admitted or self.topology_counts.eligible_domains() != before
        ):
            self.recheck = True
        self._count_daemonset_pods(target)
        return target

    def set_options(
        self,
        target: TargetNode,
        options: Sequence[LaunchableOffering],
        fallback: Sequence[LaunchableOffering],
    ) -> None:
        """Replace the options of a node to be launched; its settled labels must not change."""
        if self.daemonsets:
            of_first = self._daemonsets_of(options[0])
            options, fallback = (
                tuple(option for option in some if self._daemonsets_of(option) == of_first)
                for some in (options, fallback)
            )
        target_options = self._options_of(options, fallback)
        target.set_options(target_options)
        host = {keys.HOSTNAME: target.name}
        self.recheck |= target.update_labels({**target_options.cheapest_labels, **host})
        if not target.labels:
            target.add_labels({**target_options.decided_labels, **host})
        elif len(target.labels) <= len(target_options.decided_labels):
            self.topology_counts.add_labels(target, target_options.decided_labels)
        if target.daemon_set_pods:
            self._count_daemonset_pods(target)

    def _daemonsets_of(self, option: LaunchableOffering) -> Sequence[object]:
        """Return the DaemonSet pods of nodes with an option, and in which domains they count."""
        labels = self.table.labels(option)
        found = self.daemonset_profiles(option)
        counting = [
            (counter.scope is None or counter.scope.allows(labels), labels.get(counter.key))
            for profile in found
            for counter in profile
        ]
        return (*found, *counting)

    def daemonset_profiles(self, option: LaunchableOffering) -> tuple[Profile, ...]:
        """Return what DaemonSet pods add to the topology counts on a node with this option."""
        taints = self.table.offers[option.offer].provisioner.taints
        return daemonset_pods(self.daemonsets, self.table.labels(option), taints)

    def with_same_daemonsets(self, option: LaunchableOffering) -> int:
        """Return a bit mask of the offerings whose nodes get the same DaemonSet pods."""
        if not self._by_daemonsets:
            numbers: dict[tuple[Profile, ...], list[int]] = {}
            for number, other in enumerate(self.table.listed):
                numbers.setdefault(self.daemonset_profiles(other), []).append(number)
            size = len(self.table.listed)
            self._by_daemonsets = {some: bit_mask(found, size) for some, found in numbers.items()}
        return self._by_daemonsets[self.daemonset_profiles(option)]

    def _count_daemonset_pods(self, target: TargetNode) -> None:
        """Count the DaemonSet pods that come with a node to be launched."""
        if not self.daemonsets:
            return
        for profile in target.daemon_set_pods:
            add(profile, target, -1)
        target.daemon_set_pods = daemonset_pods(self.daemonsets, target.all_labels, target.taints)
        for profile in target.daemon_set_pods:
            add(profile, target)
        if target.daemon_set_pods and self.binding_order:
            self.recheck = True

    def _options_of(
        self, options: Sequence[LaunchableOffering], fallback: Sequence[LaunchableOffering]
    ) -> TargetOptions:
        """Return the target options of these lists, cached by identity: the same lists recur."""
        question = (id(options), id(fallback))
        if question not in self._target_options:
            made = target_options(self.offerings, options, fallback, self.topology_keys)
            # The lists are kept so that no other object gets their identities.
            self._target_options[question] = (made, options, fallback)
        return self._target_options[question][0]

    def limits_left(self, provisioner: str, without: TargetNode | None = None) -> Resources | None:
        """Return what a provisioner's limits leave for one more node, None for no limit."""
        limit = self.limits.get(provisioner)
        if limit is None:
            return None
        used = Resources.total(
            target.reserved
            for target in self.new_nodes
            if target is not without
            and self.table.offers[target.options[0].offer].provisioner.name == provisioner
        )
        return Resources(tuple((name, amount - used[name]) for name, amount in limit.items))

    def all_limits_left(self) -> dict[str, Resources]:
        """Return what all limits leave, by provisioner."""
        left = ((name, self.limits_left(name)) for name in self.limits)
        return {name: amounts for name, amounts in left if amounts is not None}

    def suited_to(self, target: TargetNode) -> int:
        """Return a bit mask of the offerings that suit any of the pods on a node to be launched."""
        mask = 0
        for index in target.contents:
            mask |= self.pod_groups[index].suited
        return mask

    def keep_options(
        self, target: TargetNode, is_wanted: Callable[[LaunchableOffering], bool]
    ) -> None:
        """Keep only the wanted options of a node to be launched."""
        options = tuple(filter(is_wanted, target.options))
        fallback = tuple(filter(is_wanted, target.fallback))
        if len(options) < len(target.options) or len(fallback) < len(target.fallback):
            self.set_options(target, options, fallback)

    def take_back(self, lost: Collection[PlacedPod]) -> list[PendingGroup]:
        """Return placed pods to pending, and the groups that they are of, by index.

        The caller has taken them out of the topology counts.
        """
        if not lost:
            return []
        gone = {ref for _, ref, _ in lost}
        self.binding_order = [entry for entry in self.binding_order if entry[1] not in gone]
        for pod_group, ref, target in lost:
            target.remove_pod(pod_group, ref)
            pod_group.waiting.append(ref)
        groups = sorted({pod_group for pod_group, _, _ in lost}, key=lambda entry: entry.index)
        for pod_group in groups:
            pod_group.waiting.sort(reverse=True)
        return groups

    def drop_empty(self) -> None:
        """Drop nodes to be launched on which no pod was placed."""
        for target in self.targets:
            if target.daemon_set_pods and not target.contents:
                for profile in target.daemon_set_pods:
                    add(profile, target, -1)
        self.targets = [
            target for target in self.targets if target.existing is not None or target.contents
        ]

    def provisioners_at_limit(self) -> frozenset[str]:
        """Return the Provisioners whose limits allow none of their instance types."""
        left = self.all_limits_left()
        if self._at_limit is None or self._at_limit[0] != left:
            self._at_limit = (left, provisioners_at_limit(self.table, left))
        return self._at_limit[1]

    def cost(self) -> int:
        """Return the price of the nodes to be launched, in micro-dollars per hour."""
        return sum(target.options[0].offering.price_micros_per_hour for target in self.new_nodes)

    def unplaced(self) -> list[PendingGroup]:
        """Return the pending groups with unplaced pods."""
        return [pod_group for pod_group in self.pod_groups if pod_group.waiting]

    def unplaced_by_priority(self) -> list[tuple[int, int]]:
        """Return (negated priority, unplaced pods), highest priority first; less is better."""
        found: dict[int, int] = {}
        for pod_group in self.pod_groups:
            rank = -pod_group.priority
            found[rank] = found.get(rank, 0) + len(pod_group.waiting)
        return sorted(found.items())

    def _decide_labels(
        self, target: TargetNode, concerned: Iterable[str], profile: Profile
    ) -> None:
        """Keep options that agree on the labels that decide where the pod counts."""
        scopes = [
            counter.scope
            for counter in profile
            if counter.scope is not None and any(counter.scope.terms or ())
        ]
        open_keys = target.undecided.intersection(concerned) if target.undecided else ()
        if not open_keys and not scopes:
            return
        wanted = [scope.allows(target.all_labels) for scope in scopes]

        def same(option: LaunchableOffering) -> bool:
            labels = {**self.table.labels(option), keys.HOSTNAME: target.name}
            return all(labels.get(key) == target.all_labels.get(key) for key in open_keys) and (
                [scope.allows(labels) for scope in scopes] == wanted
            )

        self.keep_options(target, same)


def provisioners_at_limit(table: OfferingTable, left: Mapping[str, Resources]) -> frozenset[str]:
    """Return the Provisioners whose limits allow none of their instance types.

    Args:
        table: What could be launched without limits.
        left: What limits leave, by provisioner; absent for no limits.
    """
    able = {
        name
        for name, own in table.by_provisioner().items()
        if name not in left or own & table.within_limits(left[name])
    }
    return frozenset(left.keys() - able)
