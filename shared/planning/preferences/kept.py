"""How many preferences a plan keeps."""

from collections import Counter
from collections.abc import Mapping

from shared.model import labels as keys
from shared.planning.offerings.pending_group import PendingGroup
from shared.planning.offerings.target_node import TargetNode
from shared.planning.state import PlanState
from shared.scheduling.preferences import Preference, PreferenceKind
from shared.scheduling.topology.counts import DomainCounter


class KeptCounter:
    """Counts which preferences of the pods of a plan are kept, once all pods have their places.

    A preference about a zone that a node may still turn out to be outside of is not kept.
    """

    def __init__(self, plan_state: PlanState) -> None:
        self._plan_state = plan_state
        self._counts: dict[DomainCounter, Mapping[str, int]] = {}
        self._placed = [
            (plan_state.pod_groups[index], spot, len(pods))
            for spot in plan_state.spots
            for index, pods in spot.contents.items()
        ]

    def count(self) -> tuple[int, int]:
        """Return how many preferences are kept, and how many there are, each once for each pod."""
        kept = there = 0
        for pod_group, spot, pods in self._placed:
            for preference in pod_group.stated:
                there += pods
                if self._is_kept(pod_group, preference, spot):
                    kept += pods
        return kept, there

    def _is_kept(self, pod_group: PendingGroup, preference: Preference, spot: TargetNode) -> bool:
        kind, index = preference
        if kind == PreferenceKind.NODES:
            return self._meets(pod_group, preference, spot)
        counter = pod_group.counter(preference)
        domain = self._domain(counter, spot)
        if domain is None:
            return False
        counts = self._counted(counter)
        there = counts.get(domain, 0)
        if kind == PreferenceKind.SPREAD:
            least = min(counts[known] for known in {*counts, domain})
            return there - least <= pod_group.one.scheduling.spreads[index].max_skew
        itself = int(counter.selection.counts(pod_group.one.namespace, pod_group.one.labels))
        return (there > itself) == (kind == PreferenceKind.AFFINITY)

    def _meets(self, pod_group: PendingGroup, preference: Preference, spot: TargetNode) -> bool:
        wanted = pod_group.nodes_meeting(preference)
        if spot.room is not None:
            return wanted.accepts(spot.labels, spot.taints)
        return not spot.mask & ~self._plan_state.launchables.accepting(wanted)

    def _domain(self, counter: DomainCounter, spot: TargetNode) -> str | None:
        """Return the domain that a node will be in, None if that is open or there is none."""
        table = self._plan_state.table
        own = spot.full.get(counter.key)
        if counter.key in spot.labels or spot.room is not None:
            return own
        values = {table.label(way, counter.key) for way in (*spot.ways, *spot.fallback)}
        return own if len(values) == 1 else None

    def _counted(self, counter: DomainCounter) -> Mapping[str, int]:
        """Return the pods that a preference counts, by domain: those that stand, and the plan's."""
        if counter not in self._counts:
            found = Counter(self._empty(counter))
            found.update(self._plan_state.topology_counts.standing(counter))
            for pod_group, spot, pods in self._placed:
                domain = spot.full.get(counter.key)
                one = pod_group.one
                if domain is None or (counter.scope and not spot.within(counter.scope)):
                    continue
                found[domain] += pods * counter.selection.counts(one.namespace, one.labels)
            self._counts[counter] = found
        return self._counts[counter]

    def _empty(self, counter: DomainCounter) -> dict[str, int]:
        """Return the domains that pods could be in, with none in them."""
        if counter.key != keys.HOSTNAME:
            return dict.fromkeys(counter.eligible, 0)
        return {
            spot.full.get(counter.key, spot.name): 0
            for spot in self._plan_state.spots
            if counter.scope is None or spot.within(counter.scope)
        }
