"""Candidates: nodes that may be disrupted, with the cost of moving their pods."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from shared.disruption.emptiness import keeps_node
from shared.disruption.eviction_blockers import first_blocking_reason
from shared.disruption.expiration import lifetime_of
from shared.model import labels as keys
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.provisioner import Provisioner, owner_among
from shared.model.snapshot import ClusterSnapshot

# Cost of moving one plain pod, in thousandths.
PLAIN_POD_COST: Final = 1000
_LARGEST_POD_COST: Final = 10 * PLAIN_POD_COST
# A pod-deletion-cost of 2^27 counts as much as one pod more; a priority of 2^25 likewise.
_DELETION_COST_UNIT: Final = 2**27
_PRIORITY_UNIT: Final = 2**25
_GOING: Final = "it is being removed"
_CORDONED: Final = "it is cordoned to be removed"
_STARTS: Final = "it is not initialized"
_BOUGHT_FOR: Final = "it was launched for pods that are on their way"
_CHANGED: Final = "a change of it is under way, or came to nothing lately"
_PODS_CHANGED: Final = "its pods changed less than consolidateAfter ago"
_PROMISED: Final = "pods are promised to it"
_YOUNG: Final = "its pods are young"
_PREEMPTING: Final = "kube-scheduler makes room on it for a pod"
# Reasons that pass by themselves.
PASSING: Final = frozenset(
    {
        *(_GOING, _CORDONED, _STARTS, _BOUGHT_FOR, _CHANGED, _PODS_CHANGED, _PROMISED, _YOUNG),
        _PREEMPTING,
    }
)


class Candidate(Struct, frozen=True, kw_only=True):
    """A node that may be disrupted.

    Attributes:
        pods: Those that would have to move, sorted by key.
        price_micros_per_hour: What removing it saves.
        disruption_cost: Cost of moving its pods, in thousandths of a plain pod; less for a node
            that will expire soon anyway.
    """

    node: Node
    pods: tuple[Pod, ...]
    price_micros_per_hour: int
    disruption_cost: int

    @property
    def is_empty(self) -> bool:
        """Whether no pod would have to move."""
        return not self.pods


def eviction_cost(pod: Pod) -> int:
    """Return the cost of moving the pod, in thousandths of a plain pod; may be negative.

    A higher `controller.kubernetes.io/pod-deletion-cost` or priority makes a pod more expensive to
    move.

    Source: https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/#pod-deletion-cost
    (2026-08).
    """
    try:
        deletion_cost = int(pod.annotations.get(keys.POD_DELETION_COST, "0"))
    except ValueError:
        deletion_cost = 0
    cost = (
        PLAIN_POD_COST
        + deletion_cost * PLAIN_POD_COST // _DELETION_COST_UNIT
        + pod.scheduling.priority * PLAIN_POD_COST // _PRIORITY_UNIT
    )
    return max(-_LARGEST_POD_COST, min(_LARGEST_POD_COST, cost))


def find_candidates(  # noqa: PLR0913 -- five of them by keyword
    snapshot: ClusterSnapshot,
    budgets: Sequence[PodDisruptionBudget],
    now: datetime,
    *,
    among: Iterable[str] | None = None,
    despite_blockers: Collection[str] = (),
    resting: Collection[str] = (),
    recently_changed: Collection[str] = (),
    minimum_pod_age: timedelta = timedelta(0),
) -> tuple[tuple[Candidate, ...], dict[str, str]]:
    """Return the candidates, cheapest to disrupt first, and why each other Dovetail node is none.

    Args:
        among: Names of provisioners whose nodes may be disrupted, whatever their price and
            annotation against consolidation; None for those with consolidation on.
        despite_blockers: Uids of nodes that are removed although pods or budgets block it.
        resting: Uids of nodes that are not disrupted for now: a change of them is under way, or
            failed a short while ago.
        recently_changed: Uids of nodes whose pods changed less than consolidateAfter ago.
        minimum_pod_age: Nodes with younger pods are none.
    """
    wanted = None if among is None else frozenset(among)
    provisioners = {
        provisioner.name: provisioner
        for provisioner in snapshot.provisioners
        if (provisioner.consolidation if wanted is None else provisioner.name in wanted)
    }
    prices = node_prices(snapshot)
    by_node: dict[str, list[Pod]] = {}
    for pod in snapshot.bound:
        by_node.setdefault(pod.node_name, []).append(pod)
    nominated = {pod.nominated_node for pod in snapshot.pending}
    promised = {slot.instance_id for slot in snapshot.slots if slot.pods and not slot.bound}
    found: list[Candidate] = []
    refused: dict[str, str] = {}
    for node in sorted(snapshot.nodes, key=lambda entry: entry.name):
        owner = owner_among(node, provisioners)
        if not node.is_ours or owner is None:
            continue
        pods = tuple(
            sorted(
                (pod for pod in by_node.get(node.name, ()) if keeps_node(node, pod)),
                key=lambda entry: (entry.key, entry.uid),
            )
        )
        staying = by_node.get(node.name, ()) if owner.dialect.daemon_pods_block else pods
        reason = _why_not_disruptable(node, owner, resting)
        if node.uid in recently_changed:
            reason = _PODS_CHANGED
        if node.uid not in despite_blockers:
            reason = reason or first_blocking_reason(staying, budgets, now)
        if not reason and node.instance_id in promised:
            reason = _PROMISED
        if not reason and wanted is None:
            reason = _not_worth_it(node, nominated, prices)
        if not reason and any(is_young(pod, minimum_pod_age, now) for pod in pods):
            reason = _YOUNG
        if reason:
            refused[node.name] = reason
            continue
        found.append(
            Candidate(
                node=node,
                pods=pods,
                price_micros_per_hour=prices.get(node.name, 0),
                disruption_cost=_disruption_cost(node, owner, pods, now),
            )
        )
    found.sort(key=lambda candidate: (candidate.disruption_cost, candidate.node.name))
    return tuple(found), refused


def is_young(pod: Pod, minimum_age: timedelta, now: datetime) -> bool:
    """Return whether a pod is younger than the minimum age, which may be 0."""
    if not minimum_age or pod.created_at is None:
        # Where no age is asked for, a clock that is behind makes no pod too young.
        return False
    return now - pod.created_at < minimum_age


def node_prices(snapshot: ClusterSnapshot) -> Mapping[str, int]:
    """Return the price of each Dovetail node in micro-dollars per hour; absent when not known."""
    offerings = {found.name: found.offerings for found in snapshot.instance_types}
    found = {}
    for node in snapshot.nodes:
        if not node.is_ours:
            continue
        place = (node.labels.get(keys.ZONE, ""), node.labels.get(keys.CAPACITY_TYPE, ""))
        for offering in offerings.get(node.labels.get(keys.INSTANCE_TYPE, ""), ()):
            if (offering.zone, offering.capacity_type.value) == place:
                found[node.name] = offering.price_micros_per_hour
    return found


def _why_not_disruptable(node: Node, owner: Provisioner, resting: Collection[str]) -> str:
    """Return why a node may not be changed at all; a cordon by users is no reason.

    Source: ValidateNodeDisruptable in
    https://github.com/kubernetes-sigs/karpenter/blob/main/pkg/controllers/state/statenode.go
    (2026-11-27).
    """
    if owner.paused or owner.shadow:
        return f"{owner.kind} {owner.name} is {'paused' if owner.paused else 'in shadow mode'}"
    if node.deletion_at is not None:
        return _GOING
    if node.unschedulable and keys.REMOVAL_REASON in node.annotations:
        return _CORDONED
    if not node.has_started:
        return _STARTS
    if keys.REPLACES in node.annotations:
        return _BOUGHT_FOR
    if node.uid in resting:
        return _CHANGED
    return ""


def _not_worth_it(node: Node, nominated: Collection[str], prices: Collection[str]) -> str:
    if node.blocking_annotation:
        return f"its annotation {node.blocking_annotation} forbids it"
    if not node.was_initialized:
        return _STARTS
    if node.name in nominated:
        return _PREEMPTING
    return "" if node.name in prices else "its price is not known"


def _disruption_cost(node: Node, owner: Provisioner, pods: Sequence[Pod], now: datetime) -> int:
    cost = sum(eviction_cost(pod) for pod in pods if not pod.is_terminating)
    ttl = lifetime_of(node, owner)
    if not ttl or node.created_at is None:
        return cost
    left = max(timedelta(0), node.created_at + ttl - now)
    return cost * int(left.total_seconds()) // max(1, int(ttl.total_seconds()))
