"""Domain assignment: which pods go to which domain, before anything is packed.

Each pod is assigned to a domain in which the topology constraints accept it at that moment, so the
order of assignment is also an order of binding. The least crowded of these domains is preferred,
then the cheapest. A pod that others follow (must be near) goes where its followers can run, and
their followers in turn: first to domains whose followers lack such a pod, then to those that suit
most of them.

Pods that are only counted by spreads of other pods are bound after these, so they may go wherever
packing costs least. If kube-scheduler binds some of these, in its own order, the counted pods are
assigned like all others. So are counted pods with rules over hosts, unless the pods bound before
them could only take few of the hosts that they need.
"""

from collections.abc import Iterable, Mapping, Sequence

from shared.model import labels as keys
from shared.model.requirements import Requirements
from shared.planning.offerings.host_limits import find_host_limits
from shared.planning.offerings.offering_index import OfferingIndex
from shared.planning.offerings.offering_table import Domain
from shared.planning.offerings.pending_group import PendingGroup, domain_requirements
from shared.planning.offerings.target_node import TargetNode
from shared.planning.rules.binding import left_to_scheduler
from shared.planning.rules.topology.constraints import TopologyConstraints, accepts
from shared.planning.rules.topology.counts import DomainCounter, Place, Profile, add
from shared.planning.work import Work

# Domains considered for a group: as many as it has pods, within these bounds.
_MOST_DOMAINS = 256
_FEW_DOMAINS = 32
# With fewer groups, pods under rules over hosts never come last: any pod could take their hosts.
_MANY_GROUPS = 150
# A counter is crowded when its pods are more than this part of the hosts needed anyway.
_FEW = 0.5


class DomainShare(Place):
    """Pods of a pending group that go to one domain, as a place.

    Attributes:
        pin: The domain as requirements; empty for any domain.
        price: Of the cheapest node there, in micro-dollars per hour.
        load: Pods assigned so far.
    """

    __slots__ = ("load", "pin", "pod_group", "price")

    def __init__(
        self, pod_group: PendingGroup, labels: Mapping[str, str], pin: Requirements, price: int = 0
    ) -> None:
        super().__init__("", labels, is_domain=True)
        self.pod_group = pod_group
        self.pin = pin
        self.price = price
        self.load = 0


class DomainAssigner:
    """Assigns pending groups to domains; undoes its topology counts at the end."""

    def __init__(self, offerings: OfferingIndex, targets: Sequence[TargetNode], work: Work) -> None:
        self._offerings = offerings
        self._targets = targets
        self._work = work
        self._log: list[tuple[Profile, Place, int]] = []
        self._runs: list[tuple[DomainShare, int]] = []
        self._reused_domains: dict[tuple[int, ...], set[Domain]] = {}
        self._followers: dict[DomainCounter, list[PendingGroup]] = {}
        self._weights: dict[tuple[int, str, str], int] = {}
        self._reached: dict[tuple[int, str], frozenset[str]] = {}
        self._pins: dict[tuple[tuple[str, ...], Domain], Requirements] = {}
        self._by_domain: dict[tuple[object, ...], dict[Domain, list[TargetNode]]] = {}
        self._scheduler_counters: frozenset[DomainCounter] = frozenset()
        self._crowded: frozenset[DomainCounter] | None = None

    def assign(self, pod_groups: Iterable[PendingGroup]) -> list[tuple[DomainShare, int]]:
        """Return shares with pod counts, in the order of assignment; a share may occur many times.

        Pods that no domain accepts are in no share.
        """
        pod_groups_left = list(pod_groups)
        self._scheduler_counters = frozenset(
            spread.counter
            for pod_group in pod_groups_left
            if left_to_scheduler(pod_group.pod_class.scheduling)
            for spread in pod_group.topology.spreads
        )
        self._crowded = _crowded_hosts(pod_groups_left)
        todo = sorted(
            pod_groups_left,
            key=lambda entry: _assignment_rank(entry, last=self._is_assigned_last(entry.topology)),
        )
        left = {pod_group.index: len(pod_group.waiting) for pod_group in todo}
        domains: dict[int, list[DomainShare]] = {}
        for pod_group in todo:
            for rule in pod_group.topology.affinities:
                for counter in rule.counters:
                    self._followers.setdefault(counter, []).append(pod_group)
        while todo:
            before = sum(left.values())
            for pod_group in todo:
                if pod_group.topology.keys and pod_group.index not in domains:
                    domains[pod_group.index] = self._domains(pod_group)
                left[pod_group.index] -= self._assign(
                    pod_group, domains.get(pod_group.index, []), left[pod_group.index]
                )
            # Pods assigned in this pass may let others into a domain: repeat while any were.
            moved = sum(left.values()) < before
            todo = [
                pod_group
                for pod_group in todo
                if moved and left[pod_group.index] and pod_group.topology.has_rules
            ]
        for profile, place, count in self._log:
            add(profile, place, -count)
        return self._runs

    def _assign(self, pod_group: PendingGroup, domains: list[DomainShare], count: int) -> int:
        topology = pod_group.topology
        steps = 1 + len(domains) * (1 + topology.rule_weight) + 2 * len(topology.profile)
        self._work.spend(steps * (count if domains else 1), pod_group.index)
        if not topology.keys or self._is_assigned_last(topology):
            self._runs.append((DomainShare(pod_group, {}, Requirements()), count))
            return count
        if not domains:
            return 0
        crowds = [c for c in topology.profile if c.scope is not None and c.key != keys.HOSTNAME]
        followed = [c for c in topology.profile if c in self._followers and c.key != keys.HOSTNAME]
        if not topology.has_rules and not crowds and not followed:
            best = min(domains, key=lambda domain: (domain.price, domain.load))
            self._assign_to(best, count)
            return count
        reused = self._domains_to_reuse(topology)
        for assigned in range(count):
            best_domain, best_key = None, None
            for domain in domains:
                labels = domain.labels
                if not accepts_domain(topology, labels):
                    continue
                rank = (
                    self._follower_demand(followed, labels) if followed else (),
                    reused is not None and _values(topology, domain) not in reused,
                    sum([c.counts.get(labels.get(c.key, ""), 0) for c in crowds]),
                    domain.price,
                    domain.load,
                )
                if best_key is None or rank < best_key:
                    best_domain, best_key = domain, rank
            if best_domain is None:
                return assigned
            if reused is not None:
                reused.add(_values(topology, best_domain))
            self._assign_to(best_domain, 1)
        return count

    def _domains_to_reuse(self, topology: TopologyConstraints) -> set[Domain] | None:
        """Return the domains of pods that the same others repel; None if many are as good as few.

        Anti-affinity between different pods makes few domains better than many.
        """
        repelling = [
            counter
            for counter in (*topology.avoids, *topology.avoided_by)
            if counter.key in topology.keys
        ]
        if all(counter in topology.profile for counter in repelling):
            return None
        return self._reused_domains.setdefault(tuple(map(id, repelling)), set())

    def _is_assigned_last(self, topology: TopologyConstraints) -> bool:
        """Return whether such pods are only counted by spreads over domains and may come last."""
        judging = {rule.counter for rule in topology.spreads}
        judging.update(counter for rule in topology.affinities for counter in rule.counters)
        judging.update((*topology.avoids, *topology.avoided_by))
        if any(counter.key != keys.HOSTNAME for counter in judging):
            return False
        if judging and (self._crowded is None or not self._crowded.isdisjoint(judging)):
            return False
        return all(
            counter.scope is not None and counter not in self._scheduler_counters
            for counter in topology.profile
            if counter.key != keys.HOSTNAME
        )

    def _follower_demand(
        self, followed: Iterable[DomainCounter], labels: Mapping[str, str]
    ) -> tuple[int, int]:
        """Return the negated followers in a domain: those without a pod to follow, then all."""
        lacking, every = 0, 0
        for counter in followed:
            value = labels.get(counter.key, "")
            for follower in self._followers[counter]:
                weight = self._weight(follower, counter.key, value)
                every += weight
                if not self._is_served(follower, counter, value):
                    lacking += weight
        return -lacking, -every

    def _is_served(self, follower: PendingGroup, counter: DomainCounter, value: str) -> bool:
        """Return whether the followers find a pod to follow where they can run.

        Followers that are spread over the domains need one in each, so also in this one.
        """
        if any(spread.counter.key == counter.key for spread in follower.topology.spreads):
            return counter.counts.get(value, 0) > 0
        reached = self._reach(follower, counter.key)
        return any(count > 0 and domain in reached for domain, count in counter.counts.items())

    def _weight(self, follower: PendingGroup, key: str, value: str) -> int:
        """Return how many pods of a group, and of its followers in turn, can run in a domain."""
        question = (follower.index, key, value)
        if question not in self._weights:
            self._weights[question] = 0  # where groups follow each other in a cycle
            if value in self._reach(follower, key):
                above = dict.fromkeys(
                    other
                    for counter in follower.topology.profile
                    for other in self._followers.get(counter, ())
                )
                more = sum(self._weight(other, key, value) for other in above)
                self._weights[question] = len(follower.waiting) + more
        return self._weights[question]

    def _reach(self, pod_group: PendingGroup, key: str) -> frozenset[str]:
        """Return the domains of a key where a pod finds a new node or room on an existing one."""
        question = (pod_group.index, key)
        if question not in self._reached:
            node_constraints = pod_group.node_constraints
            found = self._offerings.domains(node_constraints, (key,), pod_group.requests)
            there = {
                target.labels.get(key)
                for target in self._targets
                if target.existing is not None
                and target.fitting(pod_group)
                and node_constraints.accepts(target.labels, target.taints)
            }
            self._reached[question] = frozenset(
                value for value in (*there, *(value for (value,) in found)) if value is not None
            )
        return self._reached[question]

    def _assign_to(self, share: DomainShare, count: int) -> None:
        profile = share.pod_group.topology.profile
        add(profile, share, count)
        self._log.append((profile, share, count))
        share.load += count
        if self._runs and self._runs[-1][0] is share:
            self._runs[-1] = (share, self._runs[-1][1] + count)
        else:
            self._runs.append((share, count))

    def _domains(self, pod_group: PendingGroup) -> list[DomainShare]:
        """Return domains with new nodes or with room on existing ones for a pod, cheapest first."""
        topology_keys = pod_group.topology.keys
        node_constraints = pod_group.node_constraints
        prices = dict(self._offerings.domains(node_constraints, topology_keys, pod_group.requests))
        for domain, targets in self._targets_by_domain(pod_group).items():
            if any(target.fitting(pod_group) for target in targets):
                prices[domain] = 0
        ordered = sorted(prices, key=lambda domain: (prices[domain], str(domain)))
        most = min(max(_FEW_DOMAINS, len(pod_group.waiting)), _MOST_DOMAINS)
        found = []
        for domain in ordered[:most]:
            labels = dict(zip(topology_keys, domain, strict=True))
            if (topology_keys, domain) not in self._pins:
                self._pins[topology_keys, domain] = domain_requirements(labels)
            present = {key: value for key, value in labels.items() if value is not None}
            pin = self._pins[topology_keys, domain]
            found.append(DomainShare(pod_group, present, pin, prices[domain]))
        return found

    def _targets_by_domain(self, pod_group: PendingGroup) -> dict[Domain, list[TargetNode]]:
        topology_keys = pod_group.topology.keys
        question = (pod_group.node_constraints, topology_keys)
        if question not in self._by_domain:
            found: dict[Domain, list[TargetNode]] = {}
            for target in self._targets:
                if target.existing is not None and pod_group.node_constraints.accepts(
                    target.labels, target.taints
                ):
                    domain = tuple(target.labels.get(key) for key in topology_keys)
                    found.setdefault(domain, []).append(target)
            for targets in found.values():
                targets.sort(key=lambda target: (-target.available.get("cpu", 0), target.name))
            self._by_domain[question] = found
        return self._by_domain[question]


def accepts_domain(topology: TopologyConstraints, labels: Mapping[str, str]) -> bool:
    """Return whether the topology constraints accept a pod when rules over hosts are left out."""
    if not topology.has_host_rules:
        return accepts(topology, labels)
    for counter in (*topology.avoids, *topology.avoided_by):
        if counter.highest_count(labels.get(counter.key, "")) > 0:
            return False
    if any(
        rule.refuses(labels)
        for rule in topology.affinities
        if not any(counter.key == keys.HOSTNAME for counter in rule.counters)
    ):
        return False
    return not any(
        rule.refuses(labels) for rule in topology.spreads if rule.counter.key != keys.HOSTNAME
    )


def _assignment_rank(pod_group: PendingGroup, *, last: bool) -> tuple[int, bool, bool, bool, int]:
    """Sort key: priority, then groups with rules; groups that are only counted come last."""
    topology = pod_group.topology
    return (
        -pod_group.priority,
        last and bool(topology.keys),
        not topology.has_rules,
        not topology.has_host_rules,
        pod_group.index,
    )


def _crowded_hosts(pod_groups: Sequence[PendingGroup]) -> frozenset[DomainCounter] | None:
    """Return the crowded counters over hosts: pods assigned early could take many of the hosts.

    None if there are too few pending groups to tell.
    """
    if len(pod_groups) < _MANY_GROUPS:
        return None
    waiting = {pod_group.index: len(pod_group.waiting) for pod_group in pod_groups}
    nodes = max(
        (
            sum(waiting[index] * take for index, take in host_limit.takes.items())
            / host_limit.capacity
            for host_limit in find_host_limits(pod_groups)
        ),
        default=0.0,
    )
    before: dict[DomainCounter, int] = {}
    for pod_group in pod_groups:
        if pod_group.topology.has_rules and pod_group.topology.keys:
            for counter in pod_group.topology.profile:
                if counter.key == keys.HOSTNAME:
                    before[counter] = before.get(counter, 0) + waiting[pod_group.index]
    return frozenset(counter for counter, pods in before.items() if pods > _FEW * nodes)


def _values(topology: TopologyConstraints, domain: DomainShare) -> Domain:
    return tuple(domain.labels.get(key) for key in topology.keys)
