"""The board: everything one decision changes while it is made."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from shared.model import labels as keys
from shared.model.ec2.launches import PodRef
from shared.model.resources import Resources
from shared.packing.problem import PackingSettings
from shared.planning.offerings.offering_index import Wares
from shared.planning.offerings.offering_list import Ware
from shared.planning.offerings.pending_group import Applicant
from shared.planning.offerings.target_node import Group, Spot, group_of
from shared.scheduling.topology.counts import Census, Profile, add
from shared.scheduling.topology.daemonset_pods import Companions
from shared.scheduling.work import Work


@dataclass(slots=True, kw_only=True, eq=False)
class Board:
    """Spots being filled, pods in the order they were admitted, and what they are judged by.

    Attributes:
        applicants: By index.
        spots: Rooms first, then nodes to be bought.
        limits: By provisioner, what its limits had left before this decision; absent for none.
        companions: Pods of DaemonSets that come with nodes and are counted.
        topology_keys: Keys but the host's that any rule is over, sorted.
        work: What the decision has cost so far.
        cut: Applicants, by index, for whose labels no pick was left.
        brought: Picks of labels that applicants asked for first, by index.
        order: Pods in binding order.
        loose: Nodes to be bought that got fewer pods than they were packed for.
        late: Whether a node opened after pods were admitted may have changed what counts for them.
        hosts_count: Whether a pod was admitted whose place a further empty host could make wrong.
    """

    wares: Wares
    census: Census
    applicants: tuple[Applicant, ...]
    spots: list[Spot]
    limits: Mapping[str, Resources]
    settings: PackingSettings
    seed: int
    companions: Companions
    topology_keys: tuple[str, ...]
    work: Work
    cut: frozenset[int]
    brought: Mapping[int, int]
    order: list[tuple[Applicant, PodRef, Spot]] = field(default_factory=list)
    loose: list[Spot] = field(default_factory=list)
    late: bool = False
    hosts_count: bool = False
    _opened: int = 0
    _sold_out: frozenset[str] | None = None
    _groups: dict[tuple[int, int], tuple[Group, object, object]] = field(default_factory=dict)

    def admit(self, applicant: Applicant, spot: Spot, count: int) -> None:
        """Place the next pods of an applicant, which the judge has accepted."""
        pods = [applicant.waiting.pop() for _ in range(count)]
        kind = applicant.stance.kind
        profile = kind.profile
        self.hosts_count = self.hosts_count or kind.counts_hosts
        if profile.adds:
            self.work.spend(2 * len(profile.adds), applicant.index)
            if spot.room is None:
                self._settle(spot, kind.keys, profile)
            add(profile, spot, count)
        spot.put(applicant, pods)
        self.order.extend((applicant, ref, spot) for ref in pods)

    def open_node(self, ways: Sequence[Ware], fallback: Sequence[Ware]) -> Spot:
        """Return a new node to be bought; all options must carry the same labels of ours."""
        self._opened += 1
        spot = Spot(f"\x00{self._opened}", {})
        self.set_ways(spot, ways, fallback)
        self.spots.append(spot)
        before = self.census.eligible_domains() if self.order else 0
        self.census.open(spot)
        if self.order and (self.hosts_count or self.census.eligible_domains() != before):
            self.late = True
        self._accompany(spot)
        return spot

    def set_ways(self, spot: Spot, ways: Sequence[Ware], fallback: Sequence[Ware]) -> None:
        """Give a node to be bought other options; labels that are settled must stay so."""
        if self.companions:
            ways, fallback = self._of_one_company(ways, fallback)
        group = self._group(ways, fallback)
        spot.take(group)
        self._sold_out = None
        host = {keys.HOSTNAME: spot.name}
        self.late = spot.become({**group.full, **host}) or self.late
        if not spot.labels:
            spot.settle({**group.settled, **host})
        elif len(spot.labels) <= len(group.settled):
            self.census.settle(spot, group.settled)
        if spot.companions:
            self._accompany(spot)

    def _of_one_company(
        self, ways: Sequence[Ware], fallback: Sequence[Ware]
    ) -> tuple[tuple[Ware, ...], tuple[Ware, ...]]:
        """Leave out options that would have other companions, or have them elsewhere."""

        def company(ware: Ware) -> tuple[object, ...]:
            labels = self.wares.labels(ware)
            found = self.company(ware)
            counting = [
                (counter.scope is None or counter.scope.allows(labels), labels.get(counter.key))
                for profile in found
                for counter in profile.adds
            ]
            return (*found, *counting)

        first = company(ways[0])
        return (
            tuple(way for way in ways if company(way) == first),
            tuple(other_ware for other_ware in fallback if company(other_ware) == first),
        )

    def company(self, ware: Ware) -> tuple[Profile, ...]:
        """Return what pods of DaemonSets add to the census on a node bought this way."""
        taints = self.wares.offers[ware.offer].provisioner.taints
        return self.companions.of(self.wares.labels(ware), taints)

    def _accompany(self, spot: Spot) -> None:
        """Count the pods of DaemonSets that come with a node to be bought."""
        if not self.companions:
            return
        for profile in spot.companions:
            add(profile, spot, -1)
        spot.companions = self.companions.of(spot.full, spot.taints)
        for profile in spot.companions:
            add(profile, spot)
        self.late = self.late or bool(spot.companions and self.order)

    def _group(self, ways: Sequence[Ware], fallback: Sequence[Ware]) -> Group:
        """Return what is known of a list of options; the same lists come many times."""
        question = (id(ways), id(fallback))
        if question not in self._groups:
            made = group_of(self.wares, ways, fallback, self.topology_keys)
            # The lists are kept so that nothing else gets their identities.
            self._groups[question] = (made, ways, fallback)
        return self._groups[question][0]

    def left(self, provisioner: str, without: Spot | None = None) -> Resources | None:
        """Return what a provisioner's limits leave for one more node, None for no limit."""
        limit = self.limits.get(provisioner)
        if limit is None:
            return None
        taken = [
            spot.reserved
            for spot in self.spots
            if spot.ways
            and spot is not without
            and self.wares.offers[spot.ways[0].offer].provisioner.name == provisioner
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
                known = self.census.known_domains(key, spot)
                if known is None:
                    continue
                if spot.full.get(key) not in known:
                    known = frozenset((spot.full.get(key, ""),))
                    self.late = True
                ways = self._within(spot.ways, key, known)
                fallback = self._within(spot.fallback, key, known)
                if len(ways) < len(spot.ways) or len(fallback) < len(spot.fallback):
                    self.set_ways(spot, ways, fallback)

    def _within(
        self, ways: tuple[Ware, ...], key: str, domains: frozenset[str]
    ) -> tuple[Ware, ...]:
        return tuple(way for way in ways if (self.wares.label(way, key) or "") in domains)

    def drop_empty(self) -> None:
        """Forget nodes to be bought that nobody was placed on."""
        for spot in self.spots:
            if spot.companions and not spot.contents:
                for profile in spot.companions:
                    add(profile, spot, -1)
        self.spots = [spot for spot in self.spots if spot.room is not None or spot.contents]
        self._sold_out = None

    def sold_out(self) -> frozenset[str]:
        """Return the provisioners whose limits leave no room for any of their machines."""
        if self._sold_out is None:
            left = self.all_left()
            able = {
                offer.provisioner.name
                for offer in self.wares.offers
                if offer.provisioner.name not in left
                or within(offer.instance_type.capacity, left[offer.provisioner.name])
            }
            self._sold_out = frozenset(left.keys() - able)
        return self._sold_out

    def unplaced(self) -> list[Applicant]:
        """Return the applicants with pods that have no place."""
        return [applicant for applicant in self.applicants if applicant.waiting]

    def _settle(self, spot: Spot, concerned: Iterable[str], profile: Profile) -> None:
        """Settle what decides where the pod counts, on a node to be bought, before it does."""
        scopes = [
            counter.scope
            for counter in profile.adds
            if counter.scope is not None and any(counter.scope.terms or ())
        ]
        open_keys = spot.undecided.intersection(concerned) if spot.undecided else ()
        if not open_keys and not scopes:
            return
        wanted = [scope.allows(spot.full) for scope in scopes]

        def same(ware: Ware) -> bool:
            labels = {**self.wares.labels(ware), keys.HOSTNAME: spot.name}
            return all(labels.get(key) == spot.full.get(key) for key in open_keys) and (
                [scope.allows(labels) for scope in scopes] == wanted
            )

        ways = tuple(way for way in spot.ways if same(way))
        fallback = tuple(other_ware for other_ware in spot.fallback if same(other_ware))
        if len(ways) < len(spot.ways) or len(fallback) < len(spot.fallback):
            self.set_ways(spot, ways, fallback)


def within(capacity: Resources, left: Resources | None) -> bool:
    """Return whether limits leave room for a machine; None for no limits."""
    return left is None or all(capacity[name] <= max(amount, 0) for name, amount in left.items)
