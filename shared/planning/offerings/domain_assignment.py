"""Dealing: which pods go to which domain, before anything is packed.

Each pod is dealt to a domain in which the judge would accept it at its moment, so that the order of
dealing is an order of binding, too. Among those the least crowded is taken, then the cheapest.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from shared.model import labels as keys
from shared.model.requirements import Requirements
from shared.planning.offerings.offering_index import Wares
from shared.planning.offerings.offering_list import Domain
from shared.planning.offerings.pending_group import Applicant, domain_requirements
from shared.planning.offerings.target_node import Spot
from shared.scheduling.topology.constraints import Kind, accepts
from shared.scheduling.topology.counts import Counter, Place, Profile, add
from shared.scheduling.work import Work

# More domains than pods are never needed, more than these are never looked at.
_MOST_DOMAINS = 256
_FEW_DOMAINS = 32


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """Pods of an applicant that go to one domain (an empty pin: to any)."""

    applicant: Applicant
    pin: Requirements


@dataclass(frozen=True, slots=True)
class Dealt:
    """Shares with their pods, in the order of dealing; the same share may come many times."""

    runs: tuple[tuple[Share, int], ...]


class _Domain(Place):
    """A domain as a place, with what speaks for it."""

    __slots__ = ("load", "price", "share")

    def __init__(self, labels: dict[str, str], price: int, share: Share) -> None:
        super().__init__("", labels, partial=True)
        self.price = price
        self.load = 0
        self.share = share


class Dealer:
    """Deals applicants; counts what it deals and takes all of it back at the end."""

    def __init__(self, wares: Wares, spots: Sequence[Spot], work: Work) -> None:
        self._wares = wares
        self._spots = spots
        self._work = work
        self._log: list[tuple[Profile, Place, int]] = []
        self._runs: list[tuple[Share, int]] = []
        self._clinging: dict[tuple[int, ...], set[Domain]] = {}
        self._wanted: dict[tuple[Counter, str], int] = {}
        self._pins: dict[tuple[tuple[str, ...], Domain], Requirements] = {}
        self._by_domain: dict[tuple[object, ...], dict[Domain, list[Spot]]] = {}

    def deal(self, applicants: Iterable[Applicant]) -> Dealt:
        """Return the shares; pods for which no domain is acceptable are in none."""
        todo = sorted(applicants, key=_turn)
        left = {applicant.index: len(applicant.waiting) for applicant in todo}
        domains: dict[int, list[_Domain]] = {}
        for applicant in todo:
            if any(rule.own for rule in applicant.stance.kind.affinities):
                domains[applicant.index] = self._domains(applicant)
                self._want(applicant, domains[applicant.index])
        while todo:
            stuck = []
            for applicant in todo:
                before = left[applicant.index]
                if applicant.stance.kind.keys and applicant.index not in domains:
                    domains[applicant.index] = self._domains(applicant)
                left[applicant.index] -= self._deal(
                    applicant, domains.get(applicant.index, []), before
                )
                if left[applicant.index]:
                    stuck.append((applicant, before))
            # What others were dealt may have opened a domain: once more while anything moves.
            moved = len(stuck) < len(todo) or any(
                left[applicant.index] < n for applicant, n in stuck
            )
            todo = (
                [applicant for applicant, _ in stuck if applicant.stance.kind.is_ruled]
                if moved
                else []
            )
        for profile, place, count in self._log:
            add(profile, place, -count)
        return Dealt(tuple(self._runs))

    def _deal(self, applicant: Applicant, domains: list[_Domain], count: int) -> int:
        kind = applicant.stance.kind
        looks = 1 + len(domains) * (1 + kind.rules) + 2 * len(kind.profile.adds)
        self._work.spend(looks * (count if domains else 1), applicant.index)
        if not kind.keys:
            self._runs.append((Share(applicant, Requirements()), count))
            return count
        if not domains:
            return 0
        crowds = [c for c in kind.profile.adds if c.scope is not None and c.key != keys.HOSTNAME]
        if not kind.is_ruled and not crowds:
            best = min(domains, key=lambda domain: (domain.price, domain.load))
            self._take(applicant, best, count)
            return count
        groups = [c for rule in kind.affinities if rule.own for c in rule.counters]
        clinging = self._clinging.setdefault(_side(kind), set()) if _clings(kind) else None
        for dealt in range(count):
            best_domain, best_key = None, None
            for domain in domains:
                labels = domain.labels
                if not accepts_domain(kind, labels):
                    continue
                rank = (
                    -sum([self._wanted.get((c, labels.get(c.key, "")), 0) for c in groups]),
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
            self._take(applicant, best_domain, 1)
        return count

    def _want(self, applicant: Applicant, domains: Iterable[_Domain]) -> None:
        """Note which domains the members of a group that stays together can reach."""
        for rule in applicant.stance.kind.affinities:
            for counter in rule.counters:
                for value in {domain.labels.get(counter.key, "") for domain in domains}:
                    known = self._wanted.get((counter, value), 0)
                    self._wanted[counter, value] = known + len(applicant.waiting)

    def _take(self, applicant: Applicant, domain: _Domain, count: int) -> None:
        add(applicant.stance.kind.profile, domain, count)
        self._log.append((applicant.stance.kind.profile, domain, count))
        domain.load += count
        if self._runs and self._runs[-1][0] is domain.share:
            self._runs[-1] = (domain.share, self._runs[-1][1] + count)
        else:
            self._runs.append((domain.share, count))

    def _domains(self, applicant: Applicant) -> list[_Domain]:
        """Return the domains that new nodes or nodes with room are in, the cheapest first."""
        over = applicant.stance.kind.keys
        signature = applicant.stance.signature
        prices = dict(self._wares.domains(signature, over, applicant.requests))
        for domain, spots in self._spots_by_domain(applicant).items():
            if any(spot.fitting(applicant) for spot in spots):
                prices[domain] = 0
        ordered = sorted(prices, key=lambda domain: (prices[domain], str(domain)))
        most = min(max(_FEW_DOMAINS, len(applicant.waiting)), _MOST_DOMAINS)
        found = []
        for domain in ordered[:most]:
            labels = dict(zip(over, domain, strict=True))
            if (over, domain) not in self._pins:
                self._pins[over, domain] = domain_requirements(labels)
            share = Share(applicant, self._pins[over, domain])
            present = {key: value for key, value in labels.items() if value is not None}
            found.append(_Domain(present, prices[domain], share))
        return found

    def _spots_by_domain(self, applicant: Applicant) -> dict[Domain, list[Spot]]:
        over = applicant.stance.kind.keys
        question = (applicant.stance.signature, over)
        if question not in self._by_domain:
            found: dict[Domain, list[Spot]] = {}
            for spot in self._spots:
                if spot.room is not None and applicant.stance.signature.accepts(
                    spot.labels, spot.taints
                ):
                    domain = tuple(spot.labels.get(key) for key in over)
                    found.setdefault(domain, []).append(spot)
            for spots in found.values():
                spots.sort(key=lambda spot: (-spot.free.get("cpu", 0), spot.name))
            self._by_domain[question] = found
        return self._by_domain[question]


def accepts_domain(kind: Kind, labels: Mapping[str, str]) -> bool:
    """Return whether the judge accepts a pod as far as rules over hosts are left out."""
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


def _turn(other_applicant: Applicant) -> tuple[int, bool, bool, int]:
    """Those with higher priority first, then those with rules: who is only counted may wait."""
    kind = other_applicant.stance.kind
    return (-other_applicant.priority, not kind.is_ruled, not kind.by_host, other_applicant.index)


def _clings(kind: Kind) -> bool:
    """Whether anti-affinity between different pods makes few domains better than many."""
    return any(
        counter not in kind.profile.adds for counter in kind.avoids if counter.key in kind.keys
    ) or any(
        counter not in kind.profile.adds for counter in kind.shunned if counter.key in kind.keys
    )


def _side(kind: Kind) -> tuple[int, ...]:
    return tuple(id(avoid) for avoid in (*kind.avoids, *kind.shunned) if avoid.key in kind.keys)


def _values(kind: Kind, domain: _Domain) -> Domain:
    return tuple(domain.labels.get(key) for key in kind.keys)
