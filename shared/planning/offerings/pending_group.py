"""Pending groups: classes of pods while they are placed, with the preferences they still keep."""

from collections.abc import Container, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from shared.model import labels as keys
from shared.model.ec2.launches import PodRef
from shared.model.policy import PreferencePolicy
from shared.model.requirements import Requirement, Requirements
from shared.model.resources import Resources
from shared.planning.offerings.offering_index import OfferingIndex
from shared.scheduling.compatibility import Port, accepted_terms
from shared.scheduling.node_constraints import NodeConstraints
from shared.scheduling.pod_classes import PodClass
from shared.scheduling.preferences import (
    KEEP_OFF,
    Preference,
    PreferenceKind,
    stated,
    tries,
    wanted_terms,
)
from shared.scheduling.topology.compile import TopologyRules
from shared.scheduling.topology.constraints import ConstraintKind
from shared.scheduling.topology.counts import DomainCounter

# A preference, and the index of the pending group that states it.
Wish = tuple[int, Preference]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceChoice:
    """Which preferences one try of a decision keeps to.

    Attributes:
        policy: Of nodes whose Provisioner names none.
        by_provisioner: The policies that Provisioners name.
        weighed: Of the preferences that are weighed, those that are rules; None for all.
        soft_taints: Whether any node has, or would have, a PreferNoSchedule taint.
    """

    policy: PreferencePolicy = PreferencePolicy.WEIGH
    by_provisioner: Mapping[str, PreferencePolicy] = field(default_factory=dict, hash=False)
    weighed: AbstractSet[Wish] | None = None
    soft_taints: bool = False


class PendingGroup:
    """Pods of one class that wait, with what they insist on now.

    Attributes:
        shared: Volumes that its pods of one node attach together, with the resource each takes.
        waiting: Pods without a place so far, the next one last.
        policy: What becomes of its preferences: that of the Provisioner which is asked first.
        stated: Its preferences, heaviest first; none if they are ignored.
        wanted: Those that are rules as long as its pods find a place, and that a node can meet.
        closed: Whether no new node is to be had: then only domains that have nodes count.
        turned_away: Provisioners whose limits were in the way.
    """

    __slots__ = (
        "_active",
        "_book",
        "_known",
        "_launchables",
        "_tries",
        "closed",
        "index",
        "one",
        "policy",
        "ports",
        "priority",
        "requests",
        "shared",
        "stated",
        "turned_away",
        "waiting",
        "wanted",
    )

    def __init__(
        self,
        index: int,
        pod_class: PodClass,
        book: TopologyRules,
        launchables: OfferingIndex,
        choice: PreferenceChoice,
    ) -> None:
        self.index = index
        self.one = pod_class
        self.requests: Resources = pod_class.scheduling.requests
        self.ports: tuple[Port, ...] = pod_class.scheduling.host_ports
        self.shared = pod_class.scheduling.shared
        self.priority = pod_class.scheduling.priority
        self.waiting: list[PodRef] = list(reversed(pod_class.pods))
        self.closed = False
        self.turned_away: set[str] = set()
        self._book = book
        self._active: tuple[ConstraintKind, NodeConstraints] | None = None
        self._launchables = launchables
        self._known: dict[tuple[Preference, ...], tuple[Requirements, ...]] = {
            (): accepted_terms(pod_class.scheduling)
        }
        self.policy = self._policy(choice)
        ignored = self.policy == PreferencePolicy.IGNORE
        self.stated = () if ignored else stated(pod_class.scheduling)
        wanted = [
            preference
            for preference in self.stated
            if self._is_rule(preference, choice) and self._possible(preference)
        ]
        if choice.soft_taints:
            wanted.append(KEEP_OFF)
        self.wanted = tuple(wanted)
        self._tries = list(reversed(tries(self.wanted, self.policy)))

    def suited(self, over: tuple[str, ...]) -> int:
        """Return the launchable offerings that are for its pods, whichever preference is kept.

        Args:
            over: Topology keys of the decision.
        """
        for_nodes = [entry for entry in self.stated if entry[0] == PreferenceKind.NODES]
        signatures = [self._signature((), strict=False), *map(self.nodes_meeting, for_nodes)]
        return self._launchables.suited(signatures, self.requests_with(()), over)

    def _policy(self, choice: PreferenceChoice) -> PreferencePolicy:
        for provisioner, own in self._launchables.table.by_seller().items():
            if not choice.by_provisioner:
                break
            required = self._signature((), strict=False)
            if self._launchables.could_hold(required, self.requests_with(()), own):
                return choice.by_provisioner.get(provisioner, choice.policy)
        return choice.policy

    def _is_rule(self, preference: Preference, choice: PreferenceChoice) -> bool:
        if self.policy != PreferencePolicy.WEIGH or choice.weighed is None:
            return True
        return (self.index, preference) in choice.weighed

    def _possible(self, preference: Preference) -> bool:
        """Return whether any node there is or could be keeps a preference about nodes."""
        if preference[0] != PreferenceKind.NODES:
            return True
        return self._able(self._signature((preference,), strict=False))

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
            kept = self._tries[-1]
            kind = self._book.kind(
                self.one.namespace, self.one.labels, self.one.scheduling, kept, self._reach
            )
            self._active = (kind, self._signature(kept, strict=KEEP_OFF in kept))
        return self._active

    def _reach(self, key: str) -> frozenset[str] | None:
        """Return the domains that new nodes could be in, None when each is one of its own."""
        if self.closed:
            return frozenset()
        required, allowed = self._signature((), strict=False), self._launchables.allowed
        if key == keys.HOSTNAME:
            able = self._launchables.could_hold(required, self.requests_with(()), allowed)
            return None if able else frozenset()
        domains = self._launchables.domains(required, (key,), self.requests, allowed)
        return frozenset(value for (value,) in domains if value is not None)

    def counter(self, preference: Preference) -> DomainCounter:
        """Return the counter that a preference about other pods looks at."""
        return self._book.counter(self.one.namespace, self.one.scheduling, preference)

    def is_about_hosts(self, preference: Preference) -> bool:
        """Return whether a preference is about the pods of the same node."""
        kind = preference[0]
        return kind != PreferenceKind.NODES and self.counter(preference).key == keys.HOSTNAME

    def nodes_meeting(self, preference: Preference) -> NodeConstraints:
        """Return what is demanded of nodes when one preference is kept and no other."""
        return self._signature((preference,), strict=False)

    def _signature(self, kept: Iterable[Preference], *, strict: bool) -> NodeConstraints:
        """Return what is demanded of labels and taints while these preferences are kept."""
        made = NodeConstraints(
            terms=self._terms(tuple(entry for entry in kept if entry[0] == PreferenceKind.NODES)),
            tolerations=self.one.scheduling.tolerations,
            strict=strict,
            ports=self.ports,
        )
        return self._launchables.intern(made)

    def _terms(self, kept: tuple[Preference, ...]) -> tuple[Requirements, ...]:
        """Return what is demanded of labels while these preferences for nodes are kept."""
        if kept not in self._known:
            *others, last = kept
            known = self._terms(tuple(others))
            self._known[kept] = wanted_terms(known, self.one.scheduling, last[1])
        return self._known[kept]

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
        """Keep fewer preferences, or others; return whether there was any to drop."""
        if len(self._tries) == 1:
            return False
        self._tries.pop()
        self._active = None
        # Their limits may have room for what is insisted on now.
        self.turned_away.clear()
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
