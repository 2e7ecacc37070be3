"""What DaemonSet pods will take on a node."""

from collections.abc import Mapping, Sequence

from shared.model.daemonset import DaemonSet
from shared.model.resources import Resources
from shared.model.taints import Taint
from shared.scheduling.compatibility import accepted_terms, taint_refusal


def daemon_requests(
    daemonsets: Sequence[DaemonSet],
    labels: Mapping[str, str],
    taints: Sequence[Taint],
    *,
    undecided: frozenset[str] = frozenset(),
) -> Resources:
    """Return the sum of requests of the DaemonSets that will run on such a node.

    Args:
        undecided: Label keys whose values are not settled yet: what a DaemonSet asks of them is
            taken to hold, so that its room is kept.
    """
    return Resources.total(
        one.scheduling.requests
        for one in daemonsets
        if _accepted(one, labels, undecided) and not taint_refusal(one.scheduling, taints)
    )


def _accepted(one: DaemonSet, labels: Mapping[str, str], undecided: frozenset[str]) -> bool:
    return any(
        all(wanted.key in undecided or wanted.allows(labels.get(wanted.key)) for wanted in term)
        for term in accepted_terms(one.scheduling)
    )
