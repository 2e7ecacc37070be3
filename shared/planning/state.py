"""The plan state: everything that one decision changes while it is made."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

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
from shared.planning.offerings.target_node import TargetGroup, TargetNode, group_of
from shared.planning.work import Work
from shared.scheduling.topology.counts import Profile, TopologyCounts, add
from shared.scheduling.topology.daemonset_pods import CountedDaemonSets, daemonset_pods


@dataclass(slots=True, kw_only=True, eq=False)
class PlanState:
    """Target nodes being filled, pods in the order of admission, and what they are checked against.

    Attributes:
        pod_groups: By index.
        spots: Rooms first, then nodes to be bought.
        limits: By provisioner, what its limits had left before this decision; absent for none.
        daemonsets: Those whose pods come with nodes and are counted.
        topology_keys: Keys but the host's that any rule is over, sorted.
        work: What the decision has cost so far.
        cut: Pending groups, by index, for whose labels no pick was left.
        brought: Picks of labels that pending groups asked for first, by index.
        suited: By pending group, the launchable offerings that are for its pods, as a bit mask.
        wider: Namespaces whose pods on nodes have more rules than are weighed one by one.
        order: Pods in binding order.
        loose: Nodes to be bought that got fewer pods than they were packed for.
        late: Whether a node opened after pods were admitted may have changed what counts for them.
        hosts_count: Whether a pod was admitted whose place a further empty host could make wrong.
        remark: Why the packer took a simpler plan or nodes above the cap; empty where it did not.
    """

    launchables: OfferingIndex
    topology_counts: TopologyCounts
    pod_groups: tuple[PendingGroup, ...]
    spots: list[TargetNode]
    limits: Mapping[str, Resources]
    settings: PackingSettings
    seed: int
    daemonsets: CountedDaemonSets
    topology_keys: tuple[str, ...]
    work: Work
    cut: frozenset[int]
    brought: Mapping[int, int]
    suited: tuple[int, ...]
    wider: tuple[str, ...] = ()
    order: list[tuple[PendingGroup, PodRef, TargetNode]] = field(default_factory=list)
    loose: list[TargetNode] = field(default_factory=list)
    late: bool = False
    hosts_count: bool = False
    remark: str = ""
    _opened: int = 0
    _sold_out: frozenset[str] | None = None
    _companies: dict[tuple[Profile, ...], int] = field(default_factory=dict)
    _groups: dict[tuple[int, int], tuple[TargetGroup, object, object]] = field(default_factory=dict)

    @property
    def table(self) -> OfferingTable:
        """What can be bought."""
        return self.launchables.table

    def admit(self, pod_group: PendingGroup, spot: TargetNode, count: int) -> None:
        """Place the next pods of a pending group, which the topology constraints accept."""
        pods = [pod_group.waiting.pop() for _ in range(count)]
        kind = pod_group.kind
        profile = kind.profile
        self.hosts_count = self.hosts_count or kind.counts_hosts(spot.labels.get(keys.HOSTNAME, ""))
        if profile:
            self.work.spend(2 * len(profile), pod_group.index)
            if spot.room is None:
                self._settle(spot, kind.keys, profile)
            add(profile, spot, count)
        spot.put(pod_group, pods)
        self.order.extend((pod_group, ref, spot) for ref in pods)

    def open_node(
        self, ways: Sequence[LaunchableOffering], fallback: Sequence[LaunchableOffering]
    ) -> TargetNode:
        """Return a new node to be bought; Dovetail's labels must be the same for all options."""
        self._opened += 1
        spot = TargetNode(f"\x00{self._opened}", {})
        self.set_ways(spot, ways, fallback)
        self.spots.append(spot)
        before = self.topology_counts.eligible_domains() if self.order else 0
        self.topology_counts.open(spot)
        if self.order and (self.hosts_count or self.topology_counts.eligible_domains() != before):
            self.late = True
        self._accompany(spot)
        return spot

    def set_ways(
        self,
        spot: TargetNode,
        ways: Sequence[LaunchableOffering],
        fallback: Sequence[LaunchableOffering],
    ) -> None:
        """Give a node to be bought other options; labels that are settled must stay so."""
        if self.daemonsets:
            ways, fallback = self._of_one_company(ways, fallback)
        group = self._group(ways, fallback)
        spot.take(group)
        self._sold_out = None
        host = {keys.HOSTNAME: spot.name}
        self.late = spot.become({**group.full, **host}) or self.late
        if not spot.labels:
            spot.settle({**group.settled, **host})
        elif len(spot.labels) <= len(group.settled):
            self.topology_counts.settle(spot, group.settled)
        if spot.daemon_set_pods:
            self._accompany(spot)

    def _of_one_company(
        self, ways: Sequence[LaunchableOffering], fallback: Sequence[LaunchableOffering]
    ) -> tuple[tuple[LaunchableOffering, ...], tuple[LaunchableOffering, ...]]:
        """Leave out options that would have other companions, or have them elsewhere."""

        def company(launchable: LaunchableOffering) -> tuple[object, ...]:
            labels = self.table.labels(launchable)
            found = self.company(launchable)
            counting = [
                (counter.scope is None or counter.scope.allows(labels), labels.get(counter.key))
                for profile in found
                for counter in profile
            ]
            return (*found, *counting)

        first = company(ways[0])
        return (
            tuple(way for way in ways if company(way) == first),
            tuple(launchable for launchable in fallback if company(launchable) == first),
        )

    def company(self, launchable: LaunchableOffering) -> tuple[Profile, ...]:
        """Return what pods of DaemonSets add to the topology counts on a node bought this way."""
        taints = self.table.offers[launchable.offer].provisioner.taints
        return daemonset_pods(self.daemonsets, self.table.labels(launchable), taints)

    def with_company_of(self, launchable: LaunchableOffering) -> int:
        """Return the offerings, a bit mask, whose nodes get the same pods of DaemonSets."""
        if not self._companies:
            numbers: dict[tuple[Profile, ...], list[int]] = {}
            for number, way in enumerate(self.table.listed):
                numbers.setdefault(self.company(way), []).append(number)
            size = len(self.table.listed)
            self._companies = {some: bit_mask(found, size) for some, found in numbers.items()}
        return self._companies[self.company(launchable)]

    def _accompany(self, spot: TargetNode) -> None:
        """Count the pods of DaemonSets that come with a node to be bought."""
        if not self.daemonsets:
            return
        for profile in spot.daemon_set_pods:
            add(profile, spot, -1)
        spot.daemon_set_pods = daemonset_pods(self.daemonsets, spot.full, spot.taints)
        for profile in spot.daemon_set_pods:
            add(profile, spot)
        self.late = self.late or bool(spot.daemon_set_pods and self.order)

    def _group(
        self, ways: Sequence[LaunchableOffering], fallback: Sequence[LaunchableOffering]
    ) -> TargetGroup:
        """Return what is known of a list of options; the same lists come many times."""
        question = (id(ways), id(fallback))
        if question not in self._groups:
            made = group_of(self.launchables, ways, fallback, self.topology_keys)
            # The lists are kept so that nothing else gets their identities.
            self._groups[question] = (made, ways, fallback)
        return self._groups[question][0]

    def left(self, provisioner: str, without: TargetNode | None = None) -> Resources | None:
        """Return what a provisioner's limits leave for one more node, None for no limit."""
        limit = self.limits.get(provisioner)
        if limit is None:
            return None
        taken = [
            spot.reserved
            for spot in self.spots
            if spot.ways
            and spot is not without
            and self.table.offers[spot.ways[0].offer].provisioner.name == provisioner
        ]
        used = Resources.total(taken)
        return Resources(tuple((name, amount - used[name]) for name, amount in limit.items))

    def all_left(self) -> dict[str, Resources]:
        """Return what all limits leave, by provisioner."""
        found = {}
        for name in self.limits:
            left = self.left(name)
            assert left is not None
            found[name] = left
        return found

    def keep_domains(self) -> None:
        """Leave out options by which a node would open a domain that no spread has counted."""
        for spot in self.spots:
            for key in sorted(spot.undecided):
                known = self.topology_counts.known_domains(key, spot)
                if known is None:
                    continue
                if spot.full.get(key) not in known:
                    known = frozenset((spot.full.get(key, ""),))
                    self.late = True
                ways = self._within(spot.ways, key, known)
                fallback = self._within(spot.fallback, key, known)
                if len(ways) < len(spot.ways) or len(fallback) < len(spot.fallback):
                    self.set_ways(spot, ways, fallback)

    def suited_to(self, spot: TargetNode) -> int:
        """Return the offerings that are for any of the pods on a node to be bought."""
        mask = 0
        for index in spot.contents:
            mask |= self.suited[index]
        return mask

    def _within(
        self, ways: tuple[LaunchableOffering, ...], key: str, domains: frozenset[str]
    ) -> tuple[LaunchableOffering, ...]:
        return tuple(way for way in ways if (self.table.label(way, key) or "") in domains)

    def drop_empty(self) -> None:
        """Drop nodes to be bought on which no pod was placed."""
        for spot in self.spots:
            if spot.daemon_set_pods and not spot.contents:
                for profile in spot.daemon_set_pods:
                    add(profile, spot, -1)
        self.spots = [spot for spot in self.spots if spot.room is not None or spot.contents]
        self._sold_out = None

    def sold_out(self) -> frozenset[str]:
        """Return the provisioners whose limits leave no room for any of their machines."""
        if self._sold_out is None:
            self._sold_out = sold_out(self.table, self.all_left())
        return self._sold_out

    def cost(self) -> int:
        """Return the price of the nodes to be bought, in micro-dollars an hour."""
        return sum(spot.ways[0].offering.price_micros_per_hour for spot in self.spots if spot.ways)

    def unplaced(self) -> list[PendingGroup]:
        """Return the pending groups with pods that have no place."""
        return [pod_group for pod_group in self.pod_groups if pod_group.waiting]

    def left_over(self) -> list[tuple[int, int]]:
        """Return how many pods have no place, highest priority first; less is better."""
        found: dict[int, int] = {}
        for pod_group in self.pod_groups:
            rank = -pod_group.priority
            found[rank] = found.get(rank, 0) + len(pod_group.waiting)
        return sorted(found.items())

    def _settle(self, spot: TargetNode, concerned: Iterable[str], profile: Profile) -> None:
        """Settle what decides where the pod counts, on a node to be bought, before it does."""
        scopes = [
            counter.scope
            for counter in profile
            if counter.scope is not None and any(counter.scope.terms or ())
        ]
        open_keys = spot.undecided.intersection(concerned) if spot.undecided else ()
        if not open_keys and not scopes:
            return
        wanted = [scope.allows(spot.full) for scope in scopes]

        def same(launchable: LaunchableOffering) -> bool:
            labels = {**self.table.labels(launchable), keys.HOSTNAME: spot.name}
            return all(labels.get(key) == spot.full.get(key) for key in open_keys) and (
                [scope.allows(labels) for scope in scopes] == wanted
            )

        ways = tuple(way for way in spot.ways if same(way))
        fallback = tuple(launchable for launchable in spot.fallback if same(launchable))
        if len(ways) < len(spot.ways) or len(fallback) < len(spot.fallback):
            self.set_ways(spot, ways, fallback)


def within(capacity: Resources, left: Resources | None) -> bool:
    """Return whether limits leave room for a machine; None for no limits."""
    return left is None or all(capacity[name] <= max(amount, 0) for name, amount in left.items)


def sold_out(table: OfferingTable, left: Mapping[str, Resources]) -> frozenset[str]:
    """Return the provisioners whose limits leave no room for any of their machines.

    Args:
        table: What could be bought without limits.
        left: What limits leave, by provisioner; absent for no limits.
    """
    able = {
        offer.provisioner.name
        for offer in table.offers
        if within(offer.instance_type.capacity, left.get(offer.provisioner.name))
    }
    return frozenset(left.keys() - able)
