"""Demands: classes of pods after topology rules have pinned some of them to domains."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shared.model import labels as keys
from shared.model.pods import AffinityTerm, LabelSelector, TopologySpread
from shared.model.requirements import Requirement, Requirements
from shared.model.resources import Resources
from shared.scheduling.classes import PodClass
from shared.scheduling.existing import Room
from shared.scheduling.offers import Offer, place_labels
from shared.scheduling.signatures import SignatureMatcher, signature_of
from shared.scheduling.topology import (
    HostRule,
    domain_spread,
    domain_term,
    slots_taken,
    unsupported_rule,
    water_fill,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Some pods of one class, to be placed in one domain.

    Attributes:
        class_index: Of the class it belongs to.
        pinned: Domain the pods must go to, empty for any.
        requests: Of one pod, slots of host rules included.
    """

    class_index: int
    count: int
    pinned: Requirements
    requests: Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Pods of a class that cannot be planned for at all, with the reason."""

    class_index: int
    count: int
    reason: str


class _Domains:
    """Counts of pods by domain, growing as demands are pinned."""

    def __init__(
        self, classes: Sequence[PodClass], offers: Sequence[Offer], rooms: Sequence[Room]
    ) -> None:
        self._classes = classes
        self._offers = offers
        self._rooms = rooms
        self._pinned: list[tuple[PodClass, str, str, int]] = []

    @functools.cached_property
    def _reachable(self) -> dict[tuple[str, int], set[str]]:
        """Domains by key and class index; only worked out when some class has a rule."""
        signatures = [signature_of(one.scheduling, Requirements()) for one in self._classes]
        matcher = SignatureMatcher(signatures)
        reachable: dict[tuple[str, int], set[str]] = {}
        for offer in self._offers:
            for mask, offerings in matcher.by_offering(offer):
                places = [place_labels(offering) for offering in offerings]
                for index in range(len(self._classes)):
                    if mask >> index & 1:
                        for key in (keys.ZONE, keys.CAPACITY_TYPE):
                            values = reachable.setdefault((key, index), set())
                            values.update(place[key] for place in places)
        return reachable

    def of(self, key: str, index: int, one: PodClass) -> tuple[str, ...]:
        """Return the domains the class can reach, by new or by existing nodes, sorted."""
        found = set(self._reachable.get((key, index), ()))
        for room in self._rooms:
            if key in room.labels and room.accepts(one.scheduling):
                found.add(room.labels[key])
        return tuple(sorted(found))

    def counts(
        self, key: str, namespaces: Sequence[str], selector: LabelSelector
    ) -> dict[str, int]:
        """Return how many pods that the selector counts are, or will be, in each domain."""
        counts: dict[str, int] = {}
        for room in self._rooms:
            domain = room.labels.get(key)
            if domain is not None:
                counts[domain] = counts.get(domain, 0) + sum(
                    1
                    for pod in room.pods
                    if pod.namespace in namespaces and selector.selects(pod.labels)
                )
        for one, pinned_key, domain, pods in self._pinned:
            if pinned_key == key and one.namespace in namespaces and selector.selects(one.labels):
                counts[domain] = counts.get(domain, 0) + pods
        return counts

    def pin(self, one: PodClass, key: str, domain: str, pods: int) -> None:
        self._pinned.append((one, key, domain, pods))


def demands(
    classes: Sequence[PodClass],
    offers: Sequence[Offer],
    rooms: Sequence[Room],
    rules: Sequence[HostRule],
    *,
    soft: bool,
) -> tuple[tuple[Demand, ...], tuple[Refusal, ...]]:
    """Return the demands of the classes and the pods that cannot be planned for.

    Args:
        soft: Whether host preferences are kept too.
    """
    domains = _Domains(classes, offers, rooms)
    found: list[Demand] = []
    refused: list[Refusal] = []
    for index, one in enumerate(classes):
        reason = "; ".join(filter(None, (*one.scheduling.refusals, unsupported_rule(one))))
        if reason:
            refused.append(Refusal(class_index=index, count=len(one.pods), reason=reason))
            continue
        requests = one.scheduling.requests + slots_taken(rules, one, soft=soft)
        shares, left, why = _shares(index, one, domains)
        for pinned, count in shares:
            if count:
                found.append(
                    Demand(class_index=index, count=count, pinned=pinned, requests=requests)
                )
        if left:
            refused.append(Refusal(class_index=index, count=left, reason=why))
    return tuple(found), tuple(refused)


def _shares(
    index: int, one: PodClass, domains: _Domains
) -> tuple[list[tuple[Requirements, int]], int, str]:
    """Return how many pods go to which domain, how many to none, and why."""
    affinity = domain_term(one.scheduling.affinity)
    if affinity is not None:
        return _with_affinity(index, one, domains, affinity)
    apart = domain_term(one.scheduling.anti_affinity)
    if apart is not None:
        return _with_anti_affinity(index, one, domains, apart)
    spread = domain_spread(one)
    if spread is not None:
        return _with_spread(index, one, domains, spread)
    return [(Requirements(), len(one.pods))], 0, ""


def _with_spread(
    index: int, one: PodClass, domains: _Domains, spread: TopologySpread
) -> tuple[list[tuple[Requirements, int]], int, str]:
    total = len(one.pods)
    reach = domains.of(spread.key, index, one)
    counts = domains.counts(spread.key, (one.namespace,), spread.selector or LabelSelector())
    given = water_fill({domain: counts.get(domain, 0) for domain in reach}, total)
    return _pin(one, domains, spread.key, given), 0 if given else total, "no domain to spread over"


def _with_affinity(
    index: int, one: PodClass, domains: _Domains, term: AffinityTerm
) -> tuple[list[tuple[Requirements, int]], int, str]:
    total = len(one.pods)
    selector = term.selector or LabelSelector()
    namespaces = term.namespaces or (one.namespace,)
    reach = domains.of(term.key, index, one)
    counts = domains.counts(term.key, namespaces, selector)
    matched = [domain for domain in reach if counts.get(domain)]
    selects_itself = one.namespace in namespaces and selector.selects(one.labels)
    if matched:
        chosen = max(matched, key=lambda domain: (counts[domain], domain))
    elif selects_itself and reach and not any(counts.values()):
        chosen = reach[0]
    else:
        return [], total, f"no pod that its affinity over {term.key} asks for can be reached"
    return _pin(one, domains, term.key, {chosen: total}), 0, ""


def _with_anti_affinity(
    index: int, one: PodClass, domains: _Domains, term: AffinityTerm
) -> tuple[list[tuple[Requirements, int]], int, str]:
    total = len(one.pods)
    selector = term.selector or LabelSelector()
    namespaces = term.namespaces or (one.namespace,)
    counts = domains.counts(term.key, namespaces, selector)
    free = [d for d in domains.of(term.key, index, one) if not counts.get(d)]
    if one.namespace in namespaces and selector.selects(one.labels):
        given = dict.fromkeys(free[:total], 1)
    else:
        given = {free[0]: total} if free else {}
    left = total - sum(given.values())
    return (
        _pin(one, domains, term.key, given),
        left,
        f"every domain of {term.key} holds a pod that its anti-affinity avoids",
    )


def _pin(
    one: PodClass, domains: _Domains, key: str, given: Mapping[str, int]
) -> list[tuple[Requirements, int]]:
    shares = []
    for domain, count in sorted(given.items()):
        domains.pin(one, key, domain, count)
        shares.append((Requirements.of((Requirement.of(key, domain),)), count))
    return shares
