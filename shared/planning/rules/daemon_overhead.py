"""What DaemonSet pods will take on a node."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from shared.model import labels as keys
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.taints import Taint
from shared.model.requirements import Requirement, Requirements
from shared.model.resources import Resources
from shared.planning.rules.labels_and_taints import (
    UNKNOWN_HOST,
    Port,
    accepted_terms,
    taint_refusal,
)

# Labels that a node of an owner gets once it has joined: DaemonSets may select by them.
_JOINED: Final = {
    keys.HOSTNAME: UNKNOWN_HOST,
    keys.REGISTERED: "true",
    keys.INITIALIZED: "true",
}
# Values that labels of a node to be launched may still take, by key; None for any.
OpenValues = Mapping[str, frozenset[str] | None]
_SETTLED: Final[OpenValues] = {}


class NodeTerms:
    """OR-ed label terms of DaemonSets, to be checked against many nodes.

    Args:
        terms: The OR-ed terms, as `accepted_terms` returns them.
    """

    def __init__(self, terms: Sequence[Requirements]) -> None:
        # By key: the requirements, each with a bit for its term; and the terms without that key.
        self._asked: dict[str, list[tuple[Requirement, int]]] = {}
        for number, term in enumerate(terms):
            for wanted in term:
                self._asked.setdefault(wanted.key, []).append((wanted, 1 << number))
        self._all = (1 << len(terms)) - 1
        self._silent = {
            key: self._all & ~sum(bit for _, bit in asked) for key, asked in self._asked.items()
        }
        self._accepting: dict[tuple[str, str | None], int] = {}

    def accept(self, labels: Mapping[str, str], undecided: OpenValues = _SETTLED) -> bool:
        """Return whether a node with these labels satisfies any term, once it has joined.

        Args:
            labels: Of the node.
            undecided: Labels whose values are not settled yet: one accepted value is enough.
        """
        if not keys.OWNER_LABELS.isdisjoint(labels):
            labels = {**_JOINED, **labels}
        accepted = self._all
        for key in self._asked:
            if key not in undecided:
                accepted &= self._of(key, labels.get(key))
            elif (values := undecided[key]) is not None:
                some = 0
                for value in values:
                    some |= self._of(key, value)
                accepted &= some
        return bool(accepted)

    def _of(self, key: str, value: str | None) -> int:
        """Return the terms that accept a value of a label, None for its absence, as a bit mask."""
        accepting = self._accepting.get((key, value))
        if accepting is None:
            accepting = self._silent[key]
            for wanted, bit in self._asked[key]:
                if wanted.allows(value):
                    accepting |= bit
            self._accepting[key, value] = accepting
        return accepting


class DaemonOverhead:
    """What the pods of some DaemonSets take on nodes with the same taints.

    Most DaemonSets demand the same of a node, or nothing, and most nodes are alike to them: each
    case is computed once.

    Args:
        daemonsets: All DaemonSets.
        taints: Of the nodes.
    """

    def __init__(self, daemonsets: Iterable[DaemonSet], taints: Sequence[Taint]) -> None:
        alike: dict[tuple[Requirements, ...], list[DaemonSet]] = {}
        for daemon_set in daemonsets:
            if not taint_refusal(daemon_set.scheduling, taints):
                alike.setdefault(accepted_terms(daemon_set.scheduling), []).append(daemon_set)
        self._alike = [(NodeTerms(terms), members) for terms, members in alike.items()]
        self._taken: dict[tuple[bool, ...], tuple[Resources, tuple[Port, ...]]] = {}

    def on(
        self, labels: Mapping[str, str], undecided: OpenValues = _SETTLED
    ) -> tuple[Resources, tuple[Port, ...]]:
        """Return the requests of the pods on such a node, and their host ports, sorted.

        Args:
            labels: Of the node.
            undecided: As in `NodeTerms.accept`.
        """
        there = tuple([terms.accept(labels, undecided) for terms, _ in self._alike])
        if there not in self._taken:
            members = self._members(there)
            self._taken[there] = (
                Resources.total(
                    daemon_set.scheduling.requests
                    for daemon_set in members
                    if not daemon_set.scheduling.resource_claims
                ),
                tuple(
                    sorted(
                        port for daemon_set in members for port in daemon_set.scheduling.host_ports
                    )
                ),
            )
        return self._taken[there]

    def running(
        self, labels: Mapping[str, str], undecided: OpenValues = _SETTLED
    ) -> tuple[DaemonSet, ...]:
        """Return the DaemonSets that have a pod on such a node; `undecided` as in `on`."""
        return self._members([terms.accept(labels, undecided) for terms, _ in self._alike])

    def _members(self, there: Iterable[bool]) -> tuple[DaemonSet, ...]:
        pairs = zip(self._alike, there, strict=True)
        return tuple(daemon_set for (_, members), runs in pairs if runs for daemon_set in members)


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
    asked = daemon_set.scheduling
    return NodeTerms(accepted_terms(asked)).accept(labels) and not taint_refusal(asked, taints)
