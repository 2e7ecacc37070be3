"""What DaemonSet pods will take on a node."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from shared.model import labels as keys
from shared.model.kubernetes.daemonsets import DaemonSet
from shared.model.kubernetes.taints import Taint
from shared.model.resources import Resources
from shared.scheduling.compatibility import UNKNOWN_HOST, Port, accepted_terms, taint_refusal

# Labels that a node of an owner gets once it has joined: DaemonSets may wait for them.
_JOINED: Final = {
    keys.HOSTNAME: UNKNOWN_HOST,
    keys.REGISTERED: "true",
    keys.INITIALIZED: "true",
}
# Values that labels of a node to be may still take, by key.
OpenValues = Mapping[str, Collection[str]]
_SETTLED: Final[OpenValues] = {}


def daemon_requests(
    daemonsets: Sequence[DaemonSet],
    labels: Mapping[str, str],
    taints: Sequence[Taint],
    *,
    undecided: OpenValues = _SETTLED,
) -> Resources:
    """Return the sum of requests of the DaemonSets that will run on such a node.

    Args:
        undecided: Labels whose values are not settled yet: room is kept for a DaemonSet that
            accepts any of the values.
    """
    return Resources.total(
        daemon_set.scheduling.requests
        for daemon_set in daemonsets
        if not daemon_set.scheduling.resource_claims
        and _accepted(daemon_set, labels, undecided)
        and not taint_refusal(daemon_set.scheduling, taints)
    )


def daemon_ports(
    daemonsets: Sequence[DaemonSet],
    labels: Mapping[str, str],
    taints: Sequence[Taint],
    *,
    undecided: OpenValues = _SETTLED,
) -> tuple[Port, ...]:
    """Return the host ports of the DaemonSets that will run on such a node, sorted.

    Args:
        undecided: Labels whose values are not settled yet, as in `daemon_requests`.
    """
    return tuple(
        sorted(
            port
            for daemon_set in daemonsets
            if daemon_set.scheduling.host_ports
            and _accepted(daemon_set, labels, undecided)
            and not taint_refusal(daemon_set.scheduling, taints)
            for port in daemon_set.scheduling.host_ports
        )
    )


def daemon_keys(daemonsets: Iterable[DaemonSet]) -> frozenset[str]:
    """Return the node labels that decide which DaemonSets have a pod on a node."""
    return frozenset(
        wanted.key
        for daemon_set in daemonsets
        for term in accepted_terms(daemon_set.scheduling)
        for wanted in term
    )


def runs_on(daemon_set: DaemonSet, labels: Mapping[str, str], taints: Sequence[Taint]) -> bool:
    """Return whether a DaemonSet has a pod on such a node."""
    return _accepted(daemon_set, labels) and not taint_refusal(daemon_set.scheduling, taints)


def _accepted(
    daemon_set: DaemonSet, labels: Mapping[str, str], undecided: OpenValues = _SETTLED
) -> bool:
    known = labels if keys.OWNER_LABELS.isdisjoint(labels) else {**_JOINED, **labels}
    return any(
        all(
            any(map(wanted.allows, undecided.get(wanted.key, (known.get(wanted.key),))))
            for wanted in term
        )
        for term in accepted_terms(daemon_set.scheduling)
    )
