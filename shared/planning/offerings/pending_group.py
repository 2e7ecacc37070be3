"""Pending groups: classes of pods while they are placed, with the preferences they still keep."""

from collections.abc import Container, Mapping

from shared.model import labels as keys
from shared.model.ec2.launches import PodRef
from shared.model.requirements import Requirement, Requirements
from shared.model.resources import Resources
from shared.planning.offerings.offering_index import OfferingIndex
from shared.scheduling.compatibility import Port, accepted_terms
from shared.scheduling.node_constraints import NodeConstraints
from shared.scheduling.pod_classes import PodClass
from shared.scheduling.preferences import Preference, PreferenceKind, preferences, wanted_terms
from shared.scheduling.topology.compile import TopologyRules
from shared.scheduling.topology.constraints import ConstraintKind


class PendingGroup:
    """Pods of one class that wait, with what they insist on now.

    Attributes:
        shared: Volumes that its pods of one node attach together, with the resource each takes.
        waiting: Pods without a place so far, the next one last.
        rung: Preferences dropped so far.
        closed: Whether no new node is to be had: then only domains that have nodes count.
        turned_away: Provisioners whose limits were in the way.
    """

    __slots__ = (
        "_active",
        "_book",
        "_launchables",
        "_terms",
        "closed",
        "index",
        "ladder",
        "one",
        "ports",
        "priority",
        "requests",
        "rung",
        "shared",
        "turned_away",
        "waiting",
    )

    def __init__(
        self,
        index: int,
        pod_class: PodClass,
        book: TopologyRules,
        launchables: OfferingIndex,
        *,
        soft_taints: bool,
    ) -> None:
        self.index = index
        self.one = pod_class
        self.requests: Resources = pod_class.scheduling.requests
        self.ports: tuple[Port, ...] = pod_class.scheduling.host_ports
        self.shared = pod_class.scheduling.shared
        self.priority = pod_class.scheduling.priority
        self.waiting: list[PodRef] = list(reversed(pod_class.pods))
        self.ladder = preferences(pod_class.scheduling, soft_taints=soft_taints)
        self.rung = 0
        self.closed = False
        self.turned_away: set[str] = set()
        self._book = book
        self._active: tuple[ConstraintKind, NodeConstraints] | None = None
        self._launchables = launchables
        required = accepted_terms(pod_class.scheduling)
        self.ladder = tuple(
            preference for preference in self.ladder if self._possible(required, preference)
        )
        # What is demanded of labels, by how many of the heaviest preferences are kept.
        self._terms = [required]
        for preference_kind in reversed(self.ladder):
            self._terms.append(self._with(self._terms[-1], preference_kind))

    def _possible(self, required: tuple[Requirements, ...], preference: Preference) -> bool:
        """Return whether any node there is or could be keeps a preference about nodes."""
        if preference[0] != PreferenceKind.NODES:
            return True
        return self._able(self._signature(self._with(required, preference), strict=False))

    def _with(
        self, terms: tuple[Requirements, ...], preference: Preference
    ) -> tuple[Requirements, ...]:
        return wanted_terms(terms, self.one.scheduling, preference)

    def is_able(self) -> bool:
        """Return whether labels, taints and amounts leave any node for what is insisted on now."""
        return self._able(self.signature)

    def _able(self, signature: NodeConstraints) -> bool:
        return self._launchables.could_hold(signature, self.requests_with(())) or bool(
            self._launchables.rooms_accepting(signature)
        )

    @property
    def kind(self) -> ConstraintKind:
        """Topology constraints with the preferences that the group still keeps."""
        return self._constraints()[0]

    @property
    def signature(self) -> NodeConstraints:
        """Node constraints with the preferences that the group still keeps."""
        return self._constraints()[1]

    def _constraints(self) -> tuple[ConstraintKind, NodeConstraints]:
        if self._active is None:
            kept = self.ladder[self.rung :]
            kind = self._book.kind(
                self.one.namespace, self.one.labels, self.one.scheduling, kept, self._reach
            )
            self._active = (kind, self._keeping(len(kept)))
        return self._active

    def _reach(self, key: str) -> frozenset[str] | None:
        """Return the domains that new nodes could be in, None when each is one of its own."""
        if self.closed:
            return frozenset()
        required = self._keeping(0)
        if key == keys.HOSTNAME:
            able = self._launchables.could_hold(required, self.requests_with(()))
            return None if able else frozenset()
        domains = self._launchables.domains(required, (key,), self.requests)
        return frozenset(value for (value,) in domains if value is not None)

    def _keeping(self, kept: int) -> NodeConstraints:
        """Return what is demanded of labels and taints while so many preferences are kept."""
        # The wish to keep off soft taints is the last one dropped.
        strict = kept > 0 and self.ladder[-1][0] == PreferenceKind.TAINTS
        return self._signature(self._terms[kept], strict=strict)

    def _signature(self, terms: tuple[Requirements, ...], *, strict: bool) -> NodeConstraints:
        made = NodeConstraints(
            terms=terms,
            tolerations=self.one.scheduling.tolerations,
            strict=strict,
            ports=self.ports,
        )
        return self._launchables.intern(made)

    def requests_with(self, volumes: Container[str], count: int = 1) -> Resources:
        """Return what so many of its pods take of a node that has these shared volumes."""
        asked = self.requests if count == 1 else self.requests.times(count)
        if not self.shared:
            return asked
        amounts = [
            Resources(((resource, 1),)) for volume, resource in self.shared if volume not in volumes
        ]
        return Resources.total((asked, *amounts))

    def relax(self) -> bool:
        """Drop the lightest preference; return whether there was one."""
        if self.rung >= len(self.ladder):
            return False
        self.rung += 1
        self._active = None
        return True

    def close(self) -> None:
        """Take it that no new node is to be had."""
        self.closed = True
        self._active = None


def domain_requirements(domain: Mapping[str, str | None]) -> Requirements:
    """Return the requirements of a domain: these values, and these labels absent."""
    return Requirements.of(
        Requirement(key=key, complement=False, absent=True)
        if value is None
        else Requirement.of(key, value)
        for key, value in domain.items()
    )
