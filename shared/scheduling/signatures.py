"""Signatures: what a demand asks of a node's labels and taints, apart from resources.

Demands are many, signatures few; every check of labels is made once per signature.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shared.model.instance_types import Offering
from shared.model.pods import Scheduling
from shared.model.requirements import Requirements
from shared.model.taints import Toleration, first_untolerated
from shared.scheduling.compatibility import accepted_terms
from shared.scheduling.offers import PLACE_KEYS, Offer, place_labels


@dataclass(frozen=True, slots=True)
class Signature:
    """The label terms, OR-ed, and the tolerations of a demand."""

    terms: tuple[Requirements, ...]
    tolerations: tuple[Toleration, ...]


def signature_of(scheduling: Scheduling, pinned: Requirements) -> Signature:
    """Return the signature of pods that were also pinned to a domain (empty: to none)."""
    terms = accepted_terms(scheduling)
    if pinned:
        terms = tuple(term.merge(pinned) for term in terms)
    return Signature(terms=terms, tolerations=scheduling.tolerations)


class SignatureMatcher:
    """Answers which of some signatures an offer satisfies, as bit masks.

    Holds nothing but caches: the same question always has the same answer.
    """

    def __init__(self, signatures: Sequence[Signature]) -> None:
        """Prepare for these signatures; bit i of every mask is signatures[i]."""
        self._terms = [
            tuple((_without_place(term), _only_place(term)) for term in one.terms)
            for one in signatures
        ]
        self._tolerations = [one.tolerations for one in signatures]
        self._places: dict[tuple[str, str, int, int], bool] = {}

    def by_offering(self, offer: Offer) -> tuple[tuple[int, tuple[Offering, ...]], ...]:
        """Return the offer's offerings grouped by the mask of signatures they satisfy.

        Groups that satisfy none are left out; within a group the order is kept.
        """
        tolerated = self._tolerated(offer)
        live = [
            (index, live_terms)
            for index in range(len(self._terms))
            if tolerated >> index & 1 and (live_terms := self._live_terms(index, offer.labels))
        ]
        groups: dict[int, list[Offering]] = {}
        for offering in offer.offerings:
            mask = 0
            for index, terms in live:
                if any(self._place_accepted(offering, index, term) for term in terms):
                    mask |= 1 << index
            if mask:
                groups.setdefault(mask, []).append(offering)
        return tuple((mask, tuple(group)) for mask, group in sorted(groups.items()))

    def _tolerated(self, offer: Offer) -> int:
        mask = 0
        for index, tolerations in enumerate(self._tolerations):
            if first_untolerated(offer.provisioner.taints, tolerations) is None:
                mask |= 1 << index
        return mask

    def _live_terms(self, index: int, labels: Mapping[str, str]) -> tuple[int, ...]:
        return tuple(
            number
            for number, (of_node, _) in enumerate(self._terms[index])
            if of_node.allow_labels(labels)
        )

    def _place_accepted(self, offering: Offering, index: int, term: int) -> bool:
        question = (offering.zone, offering.capacity_type.value, index, term)
        if question not in self._places:
            of_place = self._terms[index][term][1]
            self._places[question] = of_place.allow_labels(place_labels(offering))
        return self._places[question]


def _without_place(term: Requirements) -> Requirements:
    return Requirements(tuple(one for one in term if one.key not in PLACE_KEYS))


def _only_place(term: Requirements) -> Requirements:
    return Requirements(tuple(one for one in term if one.key in PLACE_KEYS))
