"""Signatures: what a demand asks of a node's labels and taints, apart from resources.

Demands are many, signatures few; every check of labels is made once per signature.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from shared.model import labels as keys
from shared.model.instance_types import Offering
from shared.model.pods import Scheduling
from shared.model.requirements import Requirements
from shared.model.taints import Taint, Toleration
from shared.scheduling.compatibility import Port, accepted_terms, conflict, tolerated
from shared.scheduling.offers import PLACE_KEYS, Offer, place_labels

# A new node has a host name; nobody knows it yet, so no pod can have asked for it.
_UNKNOWN_HOST: Final = "\x00"


@dataclass(frozen=True, slots=True, eq=False)
class Signature:
    """The label terms, OR-ed, and the tolerations of a demand.

    Attributes:
        strict: Whether nodes with a PreferNoSchedule taint are kept away from.
        ports: Host ports that must be free of DaemonSets.
    """

    terms: tuple[Requirements, ...]
    tolerations: tuple[Toleration, ...]
    strict: bool = False
    ports: tuple[Port, ...] = ()
    _hash: int = field(init=False, repr=False, default=0)

    def __post_init__(self) -> None:
        value = hash((self.terms, self.tolerations, self.strict, self.ports))
        object.__setattr__(self, "_hash", value)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Signature)
            and self._hash == other._hash
            and self.terms == other.terms
            and self.tolerations == other.tolerations
            and self.strict == other.strict
            and self.ports == other.ports
        )

    def accepts(self, labels: Mapping[str, str], taints: Sequence[Taint]) -> bool:
        """Return whether it accepts a node with these labels and taints."""
        return tolerated(taints, self.tolerations, strict=self.strict) and any(
            term.allow_labels(labels) for term in self.terms
        )

    def pinned(self, domain: Requirements) -> "Signature":
        """Return the signature of pods that must also go to a domain."""
        if not domain:
            return self
        terms = tuple(term.merge(domain) for term in self.terms)
        return Signature(
            terms=terms, tolerations=self.tolerations, strict=self.strict, ports=self.ports
        )


def signature_of(scheduling: Scheduling, pinned: Requirements) -> Signature:
    """Return the signature of pods that were also pinned to a domain (empty: to none)."""
    terms = accepted_terms(scheduling)
    return Signature(terms=terms, tolerations=scheduling.tolerations).pinned(pinned)


class SignatureMatcher:
    """Answers which of some signatures an offer satisfies, as bit masks.

    Holds nothing but caches: the same question always has the same answer.
    """

    def __init__(self, signatures: Sequence[Signature]) -> None:
        """Prepare for these signatures; bit i of every mask is signatures[i]."""
        self._signatures = tuple(signatures)
        self._terms = [
            tuple((_without_place(term), _only_place(term)) for term in one.terms)
            for one in signatures
        ]
        self._places: dict[tuple[str, str, int, int], bool] = {}
        self._tolerated: dict[tuple[Taint, ...], int] = {}

    def by_offering(self, offer: Offer) -> tuple[tuple[int, tuple[Offering, ...]], ...]:
        """Return the offer's offerings grouped by the mask of signatures they satisfy.

        Groups that satisfy none are left out; within a group the order is kept.
        """
        tolerating = self._tolerating(offer.provisioner.taints)
        labels = {**offer.labels, keys.HOSTNAME: _UNKNOWN_HOST}
        live = [
            (index, live_terms)
            for index in range(len(self._terms))
            if tolerating >> index & 1
            and not _ports_taken(self._signatures[index].ports, offer.ports)
            and (live_terms := self._live_terms(index, labels, offer.undecided))
        ]
        everywhere = 0
        somewhere = []
        for index, terms in live:
            if any(not self._terms[index][term][1] for term in terms):
                everywhere |= 1 << index
            else:
                somewhere.append((index, terms))
        if not somewhere:
            return ((everywhere, offer.offerings),) if everywhere else ()
        groups: dict[int, list[Offering]] = {}
        for offering in offer.offerings:
            mask = everywhere
            for index, terms in somewhere:
                if any(self._place_accepted(offering, index, term) for term in terms):
                    mask |= 1 << index
            if mask:
                groups.setdefault(mask, []).append(offering)
        return tuple((mask, tuple(group)) for mask, group in sorted(groups.items()))

    def _tolerating(self, taints: tuple[Taint, ...]) -> int:
        if taints not in self._tolerated:
            mask = 0
            for index, one in enumerate(self._signatures):
                if tolerated(taints, one.tolerations, strict=one.strict):
                    mask |= 1 << index
            self._tolerated[taints] = mask
        return self._tolerated[taints]

    def _live_terms(
        self, index: int, labels: Mapping[str, str], undecided: frozenset[str]
    ) -> tuple[int, ...]:
        """A term about a label whose value is still open needs a pick of that value."""
        return tuple(
            number
            for number, (of_node, _) in enumerate(self._terms[index])
            if (not of_node or of_node.allow_labels(labels))
            and not (undecided and any(one.key in undecided for one in of_node))
        )

    def _place_accepted(self, offering: Offering, index: int, term: int) -> bool:
        question = (offering.zone, offering.capacity_type.value, index, term)
        if question not in self._places:
            of_place = self._terms[index][term][1]
            self._places[question] = of_place.allow_labels(place_labels(offering))
        return self._places[question]


def _ports_taken(wanted: Sequence[Port], taken: Sequence[Port]) -> bool:
    return any(conflict(one, other) for one in wanted for other in taken)


def _without_place(term: Requirements) -> Requirements:
    return Requirements(tuple(one for one in term if one.key not in PLACE_KEYS))


def _only_place(term: Requirements) -> Requirements:
    return Requirements(tuple(one for one in term if one.key in PLACE_KEYS))
