"""Domain assignment: which pods go to which domain, before anything is packed.

Each pod is assigned to a domain in which the topology constraints accept it at that moment, so the
order of assignment is also an order of binding. The least crowded of these domains is preferred,
then the cheapest. Pods that others must be near go where those can be, and those that must be near
them in turn: first to domains that lack such a pod, then to those that suit most.

Pods that spreads of others only count are bound after those, so they may go wherever packing them
costs least; where kube-scheduler binds some of those, in an order of its own, they are assigned
like the others. So are pods with rules over hosts of their own, unless few of those bound before
could be on a host that they need.
"""

from collections.abc import Iterable, Mapping, Sequence

from shared.model import labels as keys
from shared.model.requirements import Requirements
from shared.planning.offerings.host_limits import host_limits
from shared.planning.offerings.offering_index import OfferingIndex
from shared.planning.offerings.offering_table import Domain
from shared.planning.offerings.pending_group import PendingGroup, domain_requirements
from shared.planning.offerings.target_node import TargetNode
from shared.planning.work import Work
from shared.scheduling.binding import left_to_scheduler
from shared.scheduling.topology.constraints import ConstraintKind, accepts
from shared.scheduling.topology.counts import DomainCounter, Place, Profile, add

# More domains than pods are never needed, more than these are never looked at.
_MOST_DOMAINS = 256
_FEW_DOMAINS = 32
# Of fewer groups, the pods under a rule over hosts come first: each other pod may be in their way.
_MANY_GROUPS = 150
# Part of the hosts that are needed anyway: so many pods find one each, or nearly.
_FEW = 0.5


class DomainShare(Place):
    """Pods of a pending group that go to one domain, which is a place with their figures.

    Attributes:
        pin: The domain as requirements; empty for any domain.
        price: Of the cheapest node there, in micro-dollars per hour.
        load: Pods assigned so far.
    """

    __slots__ = ("load", "pin", "pod_group", "price")

    def __init__(
        self, pod_group: PendingGroup, labels: Mapping[str, str], pin: Requirements, price: int = 0
    ) -> None:
        super().__init__("", labels, partial=True)
        self.pod_group = pod_group
        self.pin = pin
        self.price = price
        self.load = 0


class DomainAssigner:
    """Assigns pending groups to domains; undoes its topology counts at the end."""

    def __init__(self, launchables: OfferingIndex, spots: Sequence[TargetNode], work: Work) -> None:
        self._launchables = launchables
        self._spots = spots
        self._work = work
        self._log: list[tuple[Profile, Place, int]] = []
        self._runs: list[tuple[DomainShare, int]] = []
        self._clinging: dict[tuple[int, ...], set[Domain]] = {}
        self._followers: dict[DomainCounter, list[PendingGroup]] = {}
        self._weights: dict[tuple[int, str, str], int] = {}
        self._reached: dict[tuple[int, str], frozenset[str]] = {}
        self._pins: dict[tuple[tuple[str, ...], Domain], Requirements] = {}
        self._by_domain: dict[tuple[object, ...], dict[Domain, list[TargetNode]]] = {}
        self._watched: frozenset[DomainCounter] = frozenset()
        self._crowded: frozenset[DomainCounter] | None = None

    def assign(self, pod_groups: Iterable[PendingGroup]) -> list[tuple[DomainShare, int]]:
        """Return shares with their pods, in the order of assignment; a share may occur many times.

        Pods for which no domain is acceptable are in no share.
        """
        asked = list(pod_groups)
        self._watched = frozenset(
            spread.counter
            for pod_group in asked
            if left_to_scheduler(pod_group.one.scheduling)
            for spread in pod_group.kind.spreads
        )
        self._crowded = _crowded_hosts(asked)
        todo = sorted(asked, key=lambda entry: _turn(entry, last=self._may_be_anywhere(entry.kind)))
        left = {pod_group.index: len(pod_group.waiting) for pod_group in todo}
        domains: dict[int, list[DomainShare]] = {}
        for pod_group in todo:
            for rule in pod_group.kind.affinities:
                for counter in rule.counters:
                    self._followers.setdefault(counter, []).append(pod_group)
        while todo:
            stuck = []
            for pod_group in todo:
                before = left[pod_group.index]
                if pod_group.kind.keys and pod_group.index not in domains:
                    domains[pod_group.index] = self._domains(pod_group)
                left[pod_group.index] -= self._assign(
                    pod_group, domains.get(pod_group.index, []), before
                )
                if left[pod_group.index]:
                    stuck.append((pod_group, before))
            # What others were dealt may have opened a domain: once more while anything moves.
            moved = len(stuck) < len(todo) or any(
                left[pod_group.index] < n for pod_group, n in stuck
            )
            todo = [pod_group for pod_group, _ in stuck if pod_group.kind.is_ruled] if moved else []
        for profile, place, count in self._log:
            add(profile, place, -count)
        return self._runs

    def _assign(self, pod_group: PendingGroup, domains: list[DomainShare], count: int) -> int:
        kind = pod_group.kind
        looks = 1 + len(domains) * (1 + kind.rules) + 2 * len(kind.profile)
        self._work.spend(looks * (count if domains else 1), pod_group.index)
        if not kind.keys or self._may_be_anywhere(kind):
            self._runs.append((DomainShare(pod_group, {}, Requirements()), count))
            return count
        if not domains:
            return 0
        crowds = [c for c in kind.profile if c.scope is not None and c.key != keys.HOSTNAME]
        followed = [c for c in kind.profile if c in self._followers and c.key != keys.HOSTNAME]
        if not kind.is_ruled and not crowds and not followed:
            best = min(domains, key=lambda domain: (domain.price, domain.load))
            self._take(best, count)
            return count
        clinging = self._clinging.setdefault(_side(kind), set()) if _clings(kind) else None
        for dealt in range(count):
            best_domain, best_key = None, None
            for domain in domains:
                labels = domain.labels
                if not accepts_domain(kind, labels):
                    continue
                rank = (
                    self._pull(followed, labels) if followed else (),
                    clinging is not None and _values(kind, domain) not in clinging,
                    sum([c.counts.get(labels.get(c.key, ""), 0) for c in crowds]),
                    domain.price,
                    domain.load,
                )
                if best_key is None or rank < best_key:
                    best_domain, best_key = domain, rank
            if best_domain is None:
                return dealt
            if clinging is not None:
                clinging.add(_values(kind, best_domain))
            self._take(best_domain, 1)
        return count

    def _may_be_anywhere(self, kind: ConstraintKind) -> bool:
        """Return whether such a pod, over domains, is only counted by spreads, and may be last."""
        judging = {rule.counter for rule in kind.spreads}
        judging.update(counter for rule in kind.affinities for counter in rule.counters)
        judging.update((*kind.avoids, *kind.shunned))
        if any(counter.key != keys.HOSTNAME for counter in judging):
            return False
        if judging and (self._crowded is None or not self._crowded.isdisjoint(judging)):
            return False
        return all(
            counter.scope is not None and counter not in self._watched
            for counter in kind.profile
            if counter.key != keys.HOSTNAME
        )

    def _pull(
        self, followed: Iterable[DomainCounter], labels: Mapping[str, str]
    ) -> tuple[int, int]:
        """Return, negative, how many pods want such a pod in a domain: those without one, all."""
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
        """Return whether pods that must be near others find one where they can be.

        Those that are spread over the domains need one in each.
        """
        if any(spread.counter.key == counter.key for spread in follower.kind.spreads):
            return counter.counts.get(value, 0) > 0
        reached = self._reach(follower, counter.key)
        return any(count > 0 and domain in reached for domain, count in counter.counts.items())

    def _weight(self, follower: PendingGroup, key: str, value: str) -> int:
        """Return how many pods a domain suits of a group and, if any, of those that follow it."""
        question = (follower.index, key, value)
        if question not in self._weights:
            self._weights[question] = 0  # where groups follow each other in a circle
            if value in self._reach(follower, key):
                above = dict.fromkeys(
                    other
                    for counter in follower.kind.profile
                    for other in self._followers.get(counter, ())
                )
                more = sum(self._weight(other, key, value) for other in above)
                self._weights[question] = len(follower.waiting) + more
        return self._weights[question]

    def _reach(self, pod_group: PendingGroup, key: str) -> frozenset[str]:
        """Return the domains of a key that new nodes or nodes with room for a pod are in."""
        question = (pod_group.index, key)
        if question not in self._reached:
            signature = pod_group.signature
            found = self._launchables.domains(signature, (key,), pod_group.requests)
            there = {
                spot.labels.get(key)
                for spot in self._spots
                if spot.room is not None
                and spot.fitting(pod_group)
                and signature.accepts(spot.labels, spot.taints)
            }
            self._reached[question] = frozenset(
                value for value in (*there, *(value for (value,) in found)) if value is not None
            )
        return self._reached[question]

    def _take(self, share: DomainShare, count: int) -> None:
        profile = share.pod_group.kind.profile
        add(profile, share, count)
        self._log.append((profile, share, count))
        share.load += count
        if self._runs and self._runs[-1][0] is share:
            self._runs[-1] = (share, self._runs[-1][1] + count)
        else:
            self._runs.append((share, count))

    def _domains(self, pod_group: PendingGroup) -> list[DomainShare]:
        """Return the domains that new nodes or nodes with room are in, the cheapest first."""
        over = pod_group.kind.keys
        signature = pod_group.signature
        prices = dict(self._launchables.domains(signature, over, pod_group.requests))
        for domain, spots in self._spots_by_domain(pod_group).items():
            if any(spot.fitting(pod_group) for spot in spots):
                prices[domain] = 0
        ordered = sorted(prices, key=lambda domain: (prices[domain], str(domain)))
        most = min(max(_FEW_DOMAINS, len(pod_group.waiting)), _MOST_DOMAINS)
        found = []
        for domain in ordered[:most]:
            labels = dict(zip(over, domain, strict=True))
            if (over, domain) not in self._pins:
                self._pins[over, domain] = domain_requirements(labels)
            present = {key: value for key, value in labels.items() if value is not None}
            pin = self._pins[over, domain]
            found.append(DomainShare(pod_group, present, pin, prices[domain]))
        return found

    def _spots_by_domain(self, pod_group: PendingGroup) -> dict[Domain, list[TargetNode]]:
        over = pod_group.kind.keys
        question = (pod_group.signature, over)
        if question not in self._by_domain:
            found: dict[Domain, list[TargetNode]] = {}
            for spot in self._spots:
                if spot.room is not None and pod_group.signature.accepts(spot.labels, spot.taints):
                    domain = tuple(spot.labels.get(key) for key in over)
                    found.setdefault(domain, []).append(spot)
            for spots in found.values():
                spots.sort(key=lambda spot: (-spot.free.get("cpu", 0), spot.name))
            self._by_domain[question] = found
        return self._by_domain[question]


def accepts_domain(kind: ConstraintKind, labels: Mapping[str, str]) -> bool:
    """Return whether the topology constraints accept a pod when rules over hosts are left out."""
    if not kind.by_host:
        return accepts(kind, labels)
    for counter in (*kind.avoids, *kind.shunned):
        if counter.most(labels.get(counter.key, "")) > 0:
            return False
    if any(
        rule.refuses(labels)
        for rule in kind.affinities
        if not any(counter.key == keys.HOSTNAME for counter in rule.counters)
    ):
        return False
    return not any(
        rule.refuses(labels) for rule in kind.spreads if rule.counter.key != keys.HOSTNAME
    )


def _turn(other_pod_group: PendingGroup, *, last: bool) -> tuple[int, bool, bool, bool, int]:
    """Those with higher priority first, then those with rules: who is only counted may wait."""
    kind = other_pod_group.kind
    return (
        -other_pod_group.priority,
        last and bool(kind.keys),
        not kind.is_ruled,
        not kind.by_host,
        other_pod_group.index,
    )


def _crowded_hosts(pod_groups: Sequence[PendingGroup]) -> frozenset[DomainCounter] | None:
    """Return the counters over hosts of which many hosts would have pods that come before others.

    None where there are too few pending groups to tell.
    """
    if len(pod_groups) < _MANY_GROUPS:
        return None
    waiting = {pod_group.index: len(pod_group.waiting) for pod_group in pod_groups}
    nodes = max(
        (
            sum(waiting[index] * take for index, take in slot.takes.items()) / slot.capacity
            for slot in host_limits(pod_groups)
        ),
        default=0.0,
    )
    before: dict[DomainCounter, int] = {}
    for pod_group in pod_groups:
        if pod_group.kind.is_ruled and pod_group.kind.keys:
            for counter in pod_group.kind.profile:
                if counter.key == keys.HOSTNAME:
                    before[counter] = before.get(counter, 0) + waiting[pod_group.index]
    return frozenset(counter for counter, pods in before.items() if pods > _FEW * nodes)


def _clings(kind: ConstraintKind) -> bool:
    """Whether anti-affinity between different pods makes few domains better than many."""
    return any(
        counter not in kind.profile for counter in kind.avoids if counter.key in kind.keys
    ) or any(counter not in kind.profile for counter in kind.shunned if counter.key in kind.keys)


def _side(kind: ConstraintKind) -> tuple[int, ...]:
    return tuple(id(avoid) for avoid in (*kind.avoids, *kind.shunned) if avoid.key in kind.keys)


def _values(kind: ConstraintKind, domain: DomainShare) -> Domain:
    return tuple(domain.labels.get(key) for key in kind.keys)
