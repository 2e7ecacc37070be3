"""Node constraints: what a pod demands of a node's labels, taints and host ports.

Many pods share few node constraints; every check of labels is made once for each of these.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from shared.model import labels as keys
from shared.model.kubernetes.pods import Scheduling
from shared.model.kubernetes.taints import Taint, Toleration
from shared.model.requirements import Requirements
from shared.planning.rules.labels_and_taints import (
    UNKNOWN_HOST,
    Port,
    accepted_terms,
    ports_conflict,
    taints_tolerated,
)
from shared.planning.rules.provisioner_offerings import ProvisionerOffering, place_labels


class NodeConstraints(Struct, frozen=True, cache_hash=True):
    """The label terms, OR-ed, and the tolerations of pods.

    Attributes:
        strict: Whether PreferNoSchedule taints that are not tolerated repel the pods, too.
        ports: Host ports that must be free of DaemonSets.
    """

    terms: tuple[Requirements, ...]
    tolerations: tuple[Toleration, ...]
    strict: bool = False
    ports: tuple[Port, ...] = ()

    def accepts(self, labels: Mapping[str, str], taints: Sequence[Taint]) -> bool:
        """Return whether it accepts a node with these labels and taints."""
        return taints_tolerated(taints, self.tolerations, strict=self.strict) and any(
            term.allow_labels(labels) for term in self.terms
        )

    def pinned(self, domain: Requirements) -> "NodeConstraints":
        """Return the node constraints of pods that must also go to a domain."""
        if not domain:
            return self
        terms = tuple(term.merge(domain) for term in self.terms)
        return NodeConstraints(
            terms=terms, tolerations=self.tolerations, strict=self.strict, ports=self.ports
        )


def node_constraints_of(scheduling: Scheduling) -> NodeConstraints:
    """Return the node constraints of pods, without preferences and host ports."""
    return NodeConstraints(terms=accepted_terms(scheduling), tolerations=scheduling.tolerations)


def could_buy(node_constraints: NodeConstraints, offer: ProvisionerOffering) -> bool:
    """Return whether node constraints accept any offering of an offer."""
    return (
        taints_tolerated(
            offer.provisioner.taints, node_constraints.tolerations, strict=node_constraints.strict
        )
        and not ports_taken(node_constraints.ports, offer.ports)
        and any(_could_buy(term, offer) for term in node_constraints.terms)
    )


def _could_buy(term: Requirements, offer: ProvisionerOffering) -> bool:
    """Return whether a term accepts any offering; labels whose values are open need a pick."""
    if any(requirement.key in offer.undecided for requirement in term):
        return False
    labels = {**offer.labels, keys.HOSTNAME: UNKNOWN_HOST}
    return any(
        term.allow_labels({**labels, **place_labels(offering)}) for offering in offer.offerings
    )


def ports_taken(wanted: Sequence[Port], taken: Sequence[Port]) -> bool:
    """Return whether any wanted host port conflicts with a taken one."""
    return any(ports_conflict(entry, other) for entry in wanted for other in taken)
