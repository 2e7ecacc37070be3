"""How many preferences a plan keeps."""

from collections import Counter
from collections.abc import Mapping

from shared.model import labels as keys
from shared.planning.offerings.pending_group import PendingGroup
from shared.planning.offerings.target_node import TargetNode
from shared.planning.rules.preferences import Preference, PreferenceKind
from shared.planning.rules.topology.counts import DomainCounter
from shared.planning.state import PlanState


class KeptCounter:
    """Counts which preferences of the pods of a plan are kept, once all pods have their places.

    A preference for a zone is not kept if the node could still be launched in another one.
    """

    def __init__(self, plan_state: PlanState) -> None:
        self._plan_state = plan_state
        self._counts: dict[DomainCounter, Mapping[str, int]] = {}
        self._placed = [
            (plan_state.pod_groups[index], target, len(pods))
            for target in plan_state.targets
            for index, pods in target.contents.items()
        ]

    def count(self) -> tuple[int, int]:
        """Return how many preferences are kept, and how many are stated, each once per pod."""
        kept = there = 0
        for pod_group, target, pods in self._placed:
            for preference in pod_group.preferences:
                there += pods
                if self._is_kept(pod_group, preference, target):
                    kept += pods
        return kept, there

    def _is_kept(self, pod_group: PendingGroup, preference: Preference, target: TargetNode) -> bool:
        about, position = preference
        if about == PreferenceKind.NODES:
            return self._meets(pod_group, preference, target)
        counter = pod_group.counter(preference)
        domain = self._domain(counter, target)
        if domain is None:
            return False
        counts = self._counted(counter)
        there = counts.get(domain, 0)
        if about == PreferenceKind.SPREAD:
            least = min(counts[known] for known in {*counts, domain})
            return there - least <= pod_group.pod_class.scheduling.spreads[position].max_skew
        itself = int(
            counter.selection.counts(pod_group.pod_class.namespace, pod_group.pod_class.labels)
        )
        return (there > itself) == (about == PreferenceKind.AFFINITY)

    def _meets(self, pod_group: PendingGroup, preference: Preference, target: TargetNode) -> bool:
        wanted = pod_group.nodes_meeting(preference)
        if target.existing is not None:
            return wanted.accepts(target.labels, target.taints)
        return not target.options_mask & ~self._plan_state.offerings.accepting(wanted)

    def _domain(self, counter: DomainCounter, target: TargetNode) -> str | None:
        """Return the domain that a node will be in, None if that is open or there is none."""
        table = self._plan_state.table
        own = target.all_labels.get(counter.key)
        if counter.key in target.labels or target.existing is not None:
            return own
        values = {
            table.label(option, counter.key) for option in (*target.options, *target.fallback)
        }
        return own if len(values) == 1 else None

    def _counted(self, counter: DomainCounter) -> Mapping[str, int]:
        """Return how many pods a preference counts, by domain: existing pods and the plan's."""
        if counter not in self._counts:
            found = Counter(self._empty(counter))
            found.update(self._plan_state.topology_counts.saved_counts(counter))
            for pod_group, target, pods in self._placed:
                domain = target.all_labels.get(counter.key)
                pod_class = pod_group.pod_class
                if domain is None or (counter.scope and not target.within(counter.scope)):
                    continue
                found[domain] += pods * counter.selection.counts(
                    pod_class.namespace, pod_class.labels
                )
            self._counts[counter] = found
        return self._counts[counter]

    def _empty(self, counter: DomainCounter) -> dict[str, int]:
        """Return a count of 0 for each domain that pods could be in."""
        if counter.key != keys.HOSTNAME:
            return dict.fromkeys(counter.eligible, 0)
        return {
            target.all_labels.get(counter.key, target.name): 0
            for target in self._plan_state.targets
            if counter.scope is None or target.within(counter.scope)
        }
