"""Pending groups: classes of pods while they are placed, with the preferences they still keep."""

from collections.abc import Container, Iterable, Mapping
from collections.abc import Set as AbstractSet

from msgspec import Struct

from shared.model import labels as keys
from shared.model.ec2.launches import PodRef
from shared.model.policy import PreferencePolicy
from shared.model.requirements import Requirement, Requirements
from shared.model.resources import Resources
from shared.planning.offerings.offering_index import OfferingIndex
from shared.planning.rules.labels_and_taints import Port, accepted_terms
from shared.planning.rules.node_constraints import NodeConstraints
from shared.planning.rules.pod_classes import PodClass
from shared.planning.rules.preferences import (
    KEEP_OFF,
    Preference,
    PreferenceKind,
    preferences_by_try,
    stated_preferences,
    wanted_terms,
)
from shared.planning.rules.topology.constraints import TopologyConstraints
from shared.planning.rules.topology.counts import DomainCounter
from shared.planning.rules.topology.rules import TopologyRules

# A preference, and the index of the pending group that states it.
WeighedPreference = tuple[int, Preference]


class PreferenceChoice(Struct, frozen=True, kw_only=True, eq=False):
    """Which preferences one try of a decision keeps.

    Attributes:
        policy: For nodes whose Provisioner sets none.
        by_provisioner: The policies that Provisioners set, by name.
        as_rules: The weighed preferences that are hard rules in this try.
        soft_taints: Whether any node has, or would have, a PreferNoSchedule taint.
    """

    policy: PreferencePolicy
    by_provisioner: Mapping[str, PreferencePolicy]
    as_rules: AbstractSet[WeighedPreference]
    soft_taints: bool


class PendingGroup:
    """Pending pods of one class, with the preferences that they still keep as rules.

    Attributes:
        shared_volumes: Volumes that its pods share on a node, each with the resource that it takes.
        waiting: Pods not placed yet, the next one last.
        policy: Its preference policy: that of the first Provisioner that could hold its pods.
        preferences: Its preferences, heaviest first; none if they are ignored.
        preferences_as_rules: Preferences that a node can meet, kept as rules until a pod finds no
            place.
        without_new_nodes: Whether no new node can be launched: then only domains that have nodes
            count.
        limited_provisioners: Provisioners whose limits kept its pods from being placed.
        picks: How many picks of custom labels were added for it.
        lacks_pick: Whether no value could be picked for some custom label.
        suited: Bit mask of the launchable offerings that suit its pods under any preference.
    """

    __slots__ = (
        "_active",
        "_known_terms",
        "_offerings",
        "_required",
        "_topology_rules",
        "_tries_left",
        "index",
        "lacks_pick",
        "limited_provisioners",
        "picks",
        "pod_class",
        "policy",
        "ports",
        "preferences",
        "preferences_as_rules",
        "priority",
        "requests",
        "shared_volumes",
        "suited",
        "waiting",
        "without_new_nodes",
    )

    def __init__(
        self,
        index: int,
        pod_class: PodClass,
        topology_rules: TopologyRules,
        offerings: OfferingIndex,
        choice: PreferenceChoice,
    ) -> None:
        self.index = index
        self.pod_class = pod_class
        self.requests: Resources = pod_class.scheduling.requests
        self.ports: tuple[Port, ...] = pod_class.scheduling.host_ports
        self.shared_volumes = pod_class.scheduling.shared
        self.priority = pod_class.scheduling.priority
        self.waiting: list[PodRef] = list(reversed(pod_class.pods))
        self.without_new_nodes = False
        self.limited_provisioners: set[str] = set()
        self.picks = 0
        self.lacks_pick = False
        self.suited = 0
        self._topology_rules = topology_rules
        self._active: tuple[TopologyConstraints, NodeConstraints] | None = None
        self._offerings = offerings
        self._known_terms: dict[tuple[Preference, ...], tuple[Requirements, ...]] = {
            (): accepted_terms(pod_class.scheduling)
        }
        self._required = self._node_constraints_with((), strict=False)
        self.policy = self._policy(choice)
        ignored = self.policy == PreferencePolicy.IGNORE
        self.preferences = () if ignored else stated_preferences(pod_class.scheduling)
        as_rules = [
            preference
            for preference in self.preferences
            if (self.policy != PreferencePolicy.WEIGH or (index, preference) in choice.as_rules)
            and self._possible(preference)
        ]
        if choice.soft_taints:
            as_rules.append(KEEP_OFF)
        self.preferences_as_rules = tuple(as_rules)
        self._tries_left = list(
            reversed(preferences_by_try(self.preferences_as_rules, self.policy))
        )

    def find_suited(self, topology_keys: tuple[str, ...]) -> None:
        """Find the offerings that suit its pods, given the topology keys of the decision."""
        for_nodes = [entry for entry in self.preferences if entry[0] == PreferenceKind.NODES]
        node_constraints_list = [self._required, *map(self.nodes_meeting, for_nodes)]
        self.suited = self._offerings.suited(
            node_constraints_list, self.requests_with(()), topology_keys
        )

    def _policy(self, choice: PreferenceChoice) -> PreferencePolicy:
        if not choice.by_provisioner:
            return choice.policy
        first = self._offerings.first_provisioner(self._required, self.requests_with(()))
        return choice.by_provisioner.get(first, choice.policy)

    def _possible(self, preference: Preference) -> bool:
        """Return whether any existing or new node could meet a preference about nodes."""
        if preference[0] != PreferenceKind.NODES:
            return True
        return self._has_node(self.nodes_meeting(preference))

    def has_any_node(self) -> bool:
        """Return whether any node meets its node constraints now, other pods left out."""
        return self._has_node(self.node_constraints)

    def _has_node(self, node_constraints: NodeConstraints) -> bool:
        return self._offerings.could_hold(node_constraints, self.requests_with(())) or bool(
            self._offerings.existing_accepting(node_constraints)
        )

    @property
    def topology(self) -> TopologyConstraints:
        """Topology constraints with the preferences that the group still keeps."""
        return self._constraints()[0]

    @property
    def node_constraints(self) -> NodeConstraints:
        """Node constraints with the preferences that the group still keeps."""
        return self._constraints()[1]

    def _constraints(self) -> tuple[TopologyConstraints, NodeConstraints]:
        if self._active is None:
            kept = self._tries_left[-1]
            topology = self._topology_rules.constraints(
                self.pod_class.namespace,
                self.pod_class.labels,
                self.pod_class.scheduling,
                kept,
                self._reach,
            )
            self._active = (topology, self._node_constraints_with(kept, strict=KEEP_OFF in kept))
        return self._active

    def _reach(self, key: str) -> frozenset[str] | None:
        """Return the domains that new nodes could be in, None if each node is its own domain."""
        if self.without_new_nodes:
            return frozenset()
        required, allowed = self._required, self._offerings.within_limits
        if key == keys.HOSTNAME:
            able = self._offerings.could_hold(required, self.requests_with(()), allowed)
            return None if able else frozenset()
        domains = self._offerings.domains(required, (key,), self.requests, allowed)
        return frozenset(value for (value,) in domains if value is not None)

    def counter(self, preference: Preference) -> DomainCounter:
        """Return the counter that a preference about other pods is checked against."""
        return self._topology_rules.counter(
            self.pod_class.namespace, self.pod_class.scheduling, preference
        )

    def is_about_hosts(self, preference: Preference) -> bool:
        """Return whether a preference is about the pods of the same node."""
        return (
            preference[0] != PreferenceKind.NODES and self.counter(preference).key == keys.HOSTNAME
        )

    def nodes_meeting(self, preference: Preference) -> NodeConstraints:
        """Return the node constraints when this preference is kept and no other."""
        return self._node_constraints_with((preference,), strict=False)

    def _node_constraints_with(
        self, kept: Iterable[Preference], *, strict: bool
    ) -> NodeConstraints:
        """Return the node constraints while these preferences are kept."""
        made = NodeConstraints(
            terms=self._terms(tuple(entry for entry in kept if entry[0] == PreferenceKind.NODES)),
            tolerations=self.pod_class.scheduling.tolerations,
            strict=strict,
            ports=self.ports,
        )
        return self._offerings.intern(made)

    def _terms(self, kept: tuple[Preference, ...]) -> tuple[Requirements, ...]:
        """Return the label terms while these preferences about nodes are kept."""
        if kept not in self._known_terms:
            *others, last = kept
            known = self._terms(tuple(others))
            self._known_terms[kept] = wanted_terms(known, self.pod_class.scheduling, last[1])
        return self._known_terms[kept]

    def requests_with(self, volumes: Container[str], count: int = 1) -> Resources:
        """Return what `count` of its pods take of a node to which these volumes are attached."""
        asked = self.requests if count == 1 else self.requests.times(count)
        if not self.shared_volumes:
            return asked
        amounts = [
            Resources(((resource, 1),))
            for volume, resource in self.shared_volumes
            if volume not in volumes
        ]
        return Resources.total((asked, *amounts))

    def relax(self) -> bool:
        """Go on to the next try, with fewer or other preferences; return whether there is one."""
        if len(self._tries_left) == 1:
            return False
        self._tries_left.pop()
        self._active = None
        # Their limits may allow nodes for the relaxed group.
        self.limited_provisioners.clear()
        return True

    def assume_no_new_nodes(self) -> None:
        """Assume that no new node can be launched."""
        self.without_new_nodes = True
        self._active = None


def domain_requirements(domain: Mapping[str, str | None]) -> Requirements:
    """Return the requirements of a domain: these values, and these labels absent."""
    return Requirements.of(
        Requirement(key=key, complement=False, absent=True)
        if value is None
        else Requirement.of(key, value)
        for key, value in domain.items()
    )
