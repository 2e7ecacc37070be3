"""Signatures: what a demand asks of a node's labels and taints, apart from resources.

Demands are many, signatures few; every check of labels is made once per signature.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shared.model import labels as keys
from shared.model.kubernetes.pods import Scheduling
from shared.model.kubernetes.taints import Taint, Toleration
from shared.model.requirements import Requirements
from shared.scheduling.compatibility import (
    UNKNOWN_HOST,
    Port,
    accepted_terms,
    conflict,
    tolerated,
)
from shared.scheduling.provisioner_offerings import ProvisionerOffering, place_labels


@dataclass(frozen=True, slots=True, eq=False)
class NodeConstraints:
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
            isinstance(other, NodeConstraints)
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

    def pinned(self, domain: Requirements) -> "NodeConstraints":
        """Return the signature of pods that must also go to a domain."""
        if not domain:
            return self
        terms = tuple(term.merge(domain) for term in self.terms)
        return NodeConstraints(
            terms=terms, tolerations=self.tolerations, strict=self.strict, ports=self.ports
        )


def signature_of(scheduling: Scheduling, pinned: Requirements) -> NodeConstraints:
    """Return the signature of pods that were also pinned to a domain (empty: to none)."""
    terms = accepted_terms(scheduling)
    return NodeConstraints(terms=terms, tolerations=scheduling.tolerations).pinned(pinned)


def could_buy(signature: NodeConstraints, offer: ProvisionerOffering) -> bool:
    """Return whether a signature accepts any offering of an offer."""
    return (
        tolerated(offer.provisioner.taints, signature.tolerations, strict=signature.strict)
        and not ports_taken(signature.ports, offer.ports)
        and any(_could_buy(term, offer) for term in signature.terms)
    )


def _could_buy(term: Requirements, offer: ProvisionerOffering) -> bool:
    """A term about a label whose value is still open needs a pick of that value."""
    if any(requirement.key in offer.undecided for requirement in term):
        return False
    labels = {**offer.labels, keys.HOSTNAME: UNKNOWN_HOST}
    return any(
        term.allow_labels({**labels, **place_labels(offering)}) for offering in offer.offerings
    )


def ports_taken(wanted: Sequence[Port], taken: Sequence[Port]) -> bool:
    """Return whether any of some host ports is in the way of another."""
    return any(conflict(entry, other) for entry in wanted for other in taken)
