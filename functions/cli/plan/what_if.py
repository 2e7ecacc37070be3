"""Replays decisions under another policy: what it would launch, and which pods would wait."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from functions.cli.plan.recorded_decision import RecordedDecision
from shared.model import labels as keys
from shared.model.plan import Plan
from shared.model.provisioner import Provisioner
from shared.model.snapshot import ClusterSnapshot, ProvisionerSite
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from shared.planning.rules.provisioner_offerings import never_with_image

_SECONDS_AN_HOUR: Final = 3600


class PlanTotals(Struct, frozen=True, kw_only=True):
    """The totals of one plan.

    Attributes:
        waiting: Unschedulable pods.
    """

    cost_micros_per_hour: int
    nodes: int
    placed: int
    waiting: int


class WhatIfResult(Struct, frozen=True, kw_only=True):
    """One decision, as recorded and under the other policy.

    Attributes:
        standing: The number of nodes and instances of each earlier plan in the snapshot.
        under_way: Ids of the plans whose launches are unfinished in the snapshot.
        launched: How many of the recorded plan's nodes later decisions saw; None if it has none, if
            there is no later decision, or if the last one finds the launch under way.
    """

    plan_id: str
    cluster: str
    taken_at: datetime
    recorded: PlanTotals
    other: PlanTotals
    standing: Counter[str]
    under_way: frozenset[str]
    launched: int | None = None

    @property
    def extra_micros_per_hour(self) -> int:
        """How much more the other policy's plan costs, negative for less."""
        return self.other.cost_micros_per_hour - self.recorded.cost_micros_per_hour


def what_if(
    decisions: Iterable[RecordedDecision],
    change: Callable[[PackingSettings], PackingSettings],
    with_changes: Callable[[ClusterSnapshot], ClusterSnapshot],
) -> tuple[WhatIfResult, ...]:
    """Return each decision beside the other policy's, sorted by cluster and time.

    Each is decided on the recorded snapshot, which has the nodes that were really launched. Pods
    that the other policy placed earlier than the recorded policy are left out.

    Args:
        decisions: The decisions, the oldest of each cluster first. Only one is in memory at a time.
        change: Returns the other policy's settings, given those of a decision.
        with_changes: Returns a recorded snapshot with other changes, such as its Provisioners.
    """
    found = []
    served: dict[tuple[str, str], datetime] = {}
    for decision in decisions:
        snapshot = _without_served(with_changes(decision.snapshot), served)
        other = decide(snapshot, change(decision.settings))
        placed = _placed(decision.plan)
        for uid in _placed(other) - placed:
            served.setdefault((snapshot.cluster, uid), snapshot.taken_at)
        for uid in placed:
            served.pop((snapshot.cluster, uid), None)
        found.append(
            WhatIfResult(
                plan_id=decision.plan_id,
                cluster=snapshot.cluster,
                taken_at=snapshot.taken_at,
                recorded=totals(decision.plan),
                other=totals(other),
                standing=_standing(snapshot),
                under_way=frozenset(intent.plan_id for intent in snapshot.intents),
            )
        )
    found.sort(key=lambda entry: (entry.cluster, entry.taken_at, entry.plan_id))
    return _with_launched(found)


def _with_launched(steps: Sequence[WhatIfResult]) -> tuple[WhatIfResult, ...]:
    """Return the results with how many nodes of each plan later ones saw.

    Args:
        steps: Sorted by cluster and time.
    """
    last: dict[str, WhatIfResult] = {}
    seen: dict[str, Counter[str]] = {}
    found = []
    for step in reversed(steps):
        name, nodes = step.plan_id, step.recorded.nodes
        latest, most = last.setdefault(step.cluster, step), seen.get(step.cluster, Counter())
        known = name and nodes and latest is not step and name not in latest.under_way
        found.append(replace(step, launched=min(nodes, most[name])) if known else step)
        seen[step.cluster] = most | step.standing
    return tuple(reversed(found))


def _standing(snapshot: ClusterSnapshot) -> Counter[str]:
    """Return the number of nodes of each plan, and of its instances without a Node."""
    plans = {slot.instance_id: slot.plan_id for slot in snapshot.slots}
    plans |= {
        node.instance_id: node.annotations[keys.SLOT].partition("/")[0]
        for node in snapshot.nodes
        if keys.SLOT in node.annotations
    }
    return Counter(plans.values())


def _without_served(
    snapshot: ClusterSnapshot, served: Mapping[tuple[str, str], datetime]
) -> ClusterSnapshot:
    """Return the snapshot without the pods that were placed before it was taken.

    Args:
        served: When each pod was placed, by cluster and UID.
    """
    at = snapshot.taken_at
    return replace(
        snapshot,
        pending=tuple(
            pod for pod in snapshot.pending if served.get((snapshot.cluster, pod.uid), at) >= at
        ),
    )


def _placed(plan: Plan) -> set[str]:
    """Return the UIDs of the pods that a plan places."""
    launched = [pod for node in plan.nodes for pod in node.pods]
    return {pod.uid for pod in (*launched, *(pod for to in plan.placements for pod in to.pods))}


def with_provisioners(
    snapshot: ClusterSnapshot, provisioners: Sequence[Provisioner]
) -> ClusterSnapshot:
    """Return the snapshot with other Provisioners; a new one has subnets in all known zones.

    Args:
        provisioners: The Provisioners to replace, by name, or to add.
    """
    given = {found.name: found for found in provisioners}
    zones = tuple(sorted({zone for site in snapshot.sites for zone in site.zones}))
    kept = [found for found in snapshot.provisioners if found.name not in given]
    node_settings = {found.name: (found.template, found.kubelet) for found in snapshot.provisioners}
    sites = {site.provisioner: site for site in snapshot.sites}
    for owner in given.values():
        if node_settings.get(owner.name) == (owner.template, owner.kubelet):
            continue
        # Its images and observed allocatable are known only for the recorded settings.
        site = sites.get(owner.name, ProvisionerSite(provisioner=owner.name, zones=zones))
        without_image = never_with_image(owner.template, snapshot.instance_types)
        sites[owner.name] = replace(site, without_image=without_image, observed={})
    return replace(
        snapshot,
        provisioners=tuple(sorted((*kept, *provisioners), key=lambda found: found.name)),
        sites=tuple(sites.values()),
    )


def paid_micros(steps: Sequence[WhatIfResult]) -> tuple[int, int]:
    """Return the cost of the nodes while they ran: as recorded, and under the other policy.

    In micro-dollars. The snapshots of later decisions show how long the nodes of a plan ran; those
    that were not launched cost nothing. The other policy's nodes are assumed to run as long, or
    until the last decision of the cluster if the recorded policy planned none. Nodes of that last
    decision cost nothing.

    Args:
        steps: The results, sorted by cluster and time.
    """
    recorded = other = 0
    for number, step in enumerate(steps):
        seconds = _node_seconds(step, steps[number:])
        nodes = max(1, step.recorded.nodes)
        hours = _SECONDS_AN_HOUR * nodes
        recorded += step.recorded.cost_micros_per_hour * seconds // hours
        other += step.other.cost_micros_per_hour * seconds // hours
    return recorded, other


def _node_seconds(step: WhatIfResult, later: Sequence[WhatIfResult]) -> int:
    """Return for how many seconds the nodes of a plan ran, in total.

    A plan without nodes counts as one node that ran until the last decision.
    """
    nodes = step.recorded.nodes
    standing = max(1, nodes) if step.launched is None else step.launched
    since = step.taken_at
    seconds = 0
    for following in later:
        if following.cluster != step.cluster:
            break
        seconds += standing * int((following.taken_at - since).total_seconds())
        since = following.taken_at
        if nodes and following is not step:
            standing = min(nodes, following.standing[step.plan_id])
    return seconds


def totals(plan: Plan) -> PlanTotals:
    """Return the totals of a plan."""
    return PlanTotals(
        cost_micros_per_hour=plan.cost_micros_per_hour,
        nodes=len(plan.nodes),
        placed=sum(len(node.pods) for node in plan.nodes)
        + sum(len(placement.pods) for placement in plan.placements),
        waiting=len(plan.unschedulable),
    )
