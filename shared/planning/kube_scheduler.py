"""Where kube-scheduler places pods, one by one.

A plan may need each pod to be just where it put it. Pods of removed nodes are made again by their
controllers, and kube-scheduler places each on the node that it likes best, whatever the plan says:
the last ones may find no room, and a node is launched for them.
"""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from typing import Final

from shared.model.kubernetes.pods import Pod
from shared.model.policy import PreferencePolicy
from shared.model.snapshot import ClusterSnapshot
from shared.packing.problem import PackingSettings
from shared.planning.initial_state import initial_state
from shared.planning.offerings.pending_group import PendingGroup
from shared.planning.offerings.target_node import TargetNode
from shared.planning.placement.place import may_place
from shared.planning.rules.existing_nodes import existing_nodes
from shared.planning.state import PlanState
from shared.planning.work import Work

_MOST: Final = 100
_SCORED: Final = ("cpu", "memory")

# Negated score, name, how many pods the node had then, node.
_Entry = tuple[int, str, int, TargetNode]


def kube_scheduler_places(snapshot: ClusterSnapshot, pods: Sequence[Pod]) -> Mapping[str, str]:
    """Return on which node of a snapshot kube-scheduler places pending pods.

    Of the nodes that hold a pod, it takes the one with most of its cpu and memory left; between
    equals, the one that uses both alike. Preferences of pods come before that. The other scores of
    its default profile are left out.

    Sources: https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/scheduler/framework/plugins/noderesources/
    (least_allocated.go, balanced_allocation.go; 2026-12).

    Args:
        pods: In the order in which it sees them; each provisionable.

    Returns:
        By the pod's UID, the name of a node, or of its slot while it is in flight; absent where
        there is no room.
    """
    settings = PackingSettings(preference_policy=PreferencePolicy.RESPECT)
    state = initial_state(snapshot, pods, settings, Work(sys.maxsize))
    groups = {ref.uid: group for group in state.pod_groups for ref in group.waiting}
    whole = {
        node.name: [
            node.available[name] + sum(pod.scheduling.requests[name] for pod in node.pods)
            for name in _SCORED
        ]
        for node in existing_nodes(snapshot)
    }
    scheduler = _Scheduler(state, whole)
    places = ((pod.uid, scheduler.place(groups[pod.uid])) for pod in pods)
    return {uid: target.name for uid, target in places if target is not None}


class _Scheduler:
    """Places pods one by one; each group of equal pods has its nodes ranked.

    Args:
        whole: Cpu and memory of each node, those that pods take included.
    """

    def __init__(self, state: PlanState, whole: Mapping[str, Sequence[int]]) -> None:
        self._state = state
        self._whole = whole
        self._ranked: dict[int, list[_Entry]] = {}
        self._placed: Counter[str] = Counter()

    def place(self, group: PendingGroup) -> TargetNode | None:
        """Place the next pod of a group; return where, None where there is no room."""
        if group.index not in self._ranked:
            able = (target for target in self._state.targets if target.fitting(group))
            self._ranked[group.index] = [self._entry(group, target) for target in able]
            heapify(self._ranked[group.index])
        target = self._best(group)
        while target is None and group.relax():
            target = self._best(group)
        if target is not None:
            self._state.admit(group, target, 1)
            self._placed[target.name] += 1
        return target

    def _best(self, group: PendingGroup) -> TargetNode | None:
        ranked, found, refused = self._ranked[group.index], None, []
        while ranked and found is None:
            *_, name, placed, target = ranked[0]
            if not target.fitting(group):
                heappop(ranked)
            elif placed != self._placed[name]:
                heapreplace(ranked, self._entry(group, target))
            elif may_place(self._state, group, target):
                found = target
            else:
                refused.append(heappop(ranked))
        for entry in refused:
            heappush(ranked, entry)
        return found

    def _entry(self, group: PendingGroup, target: TargetNode) -> _Entry:
        left = [
            (target.available.get(name, 0) - group.requests[name]) / max(whole, 1)
            for name, whole in zip(_SCORED, self._whole[target.name], strict=True)
        ]
        least = _MOST * sum(left) / len(left)
        balanced = _MOST * (1 - abs(left[0] - left[1]) / 2)
        return -round(least + balanced), target.name, self._placed[target.name], target
