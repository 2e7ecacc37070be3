"""Recorded decisions under another policy: what it would have bought, and which pods would wait."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from shared.decisions.replay import Decision
from shared.model import labels as keys
from shared.model.plan import Plan
from shared.model.provisioner import Provisioner
from shared.model.snapshot import ClusterSnapshot, ProvisionerSite
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from shared.scheduling.provisioner_offerings import never_with_image

_SECONDS_AN_HOUR: Final = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Bought:
    """What one plan comes to.

    Attributes:
        waiting: Pods that it has no place for.
    """

    cost_micros_per_hour: int
    nodes: int
    placed: int
    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """One decision, as it was recorded and under the other policy.

    Attributes:
        standing: Nodes of each earlier plan that the snapshot shows.
    """

    plan_id: str
    cluster: str
    taken_at: datetime
    recorded: Bought
    other: Bought
    standing: Counter[str]

    @property
    def extra_micros_per_hour(self) -> int:
        """How much more the other policy buys for, negative for less."""
        return self.other.cost_micros_per_hour - self.recorded.cost_micros_per_hour


def replayed(
    decisions: Iterable[Decision],
    change: Callable[[PackingSettings], PackingSettings],
    given: Callable[[ClusterSnapshot], ClusterSnapshot],
) -> tuple[Replayed, ...]:
    """Return each decision beside what the other policy would decide, by cluster and time.

    Each is decided on the snapshot that was recorded, which has the nodes that were really bought.
    Pods that the other policy had a place for before the recorded one had are left out of it.

    Args:
        decisions: Of each cluster the oldest first. One at a time is held.
        change: Returns the other settings for those of a decision.
        given: Returns a recorded snapshot with what else is other, such as its Provisioners.
    """
    found = []
    served: dict[tuple[str, str], datetime] = {}
    for decision in decisions:
        scene = _without_served(given(decision.snapshot), served)
        other = decide(scene, change(decision.settings))
        placed = _placed(decision.plan)
        for uid in _placed(other) - placed:
            served.setdefault((scene.cluster, uid), scene.taken_at)
        for uid in placed:
            served.pop((scene.cluster, uid), None)
        found.append(
            Replayed(
                plan_id=decision.plan_id,
                cluster=scene.cluster,
                taken_at=scene.taken_at,
                recorded=_bought(decision.plan),
                other=_bought(other),
                standing=Counter(
                    node.annotations[keys.SLOT].partition("/")[0]
                    for node in scene.nodes
                    if keys.SLOT in node.annotations
                ),
            )
        )
    return tuple(sorted(found, key=lambda entry: (entry.cluster, entry.taken_at, entry.plan_id)))


def _without_served(
    snapshot: ClusterSnapshot, served: Mapping[tuple[str, str], datetime]
) -> ClusterSnapshot:
    """Return the snapshot without the pods that were served before it was taken.

    Args:
        served: When, by cluster and uid.
    """
    at = snapshot.taken_at
    return replace(
        snapshot,
        pending=tuple(
            pod for pod in snapshot.pending if served.get((snapshot.cluster, pod.uid), at) >= at
        ),
    )


def _placed(plan: Plan) -> set[str]:
    """Return the uids of the pods that a plan has a place for."""
    launched = [pod for node in plan.nodes for pod in node.pods]
    return {pod.uid for pod in (*launched, *(pod for to in plan.placements for pod in to.pods))}


def with_provisioners(
    snapshot: ClusterSnapshot, provisioners: Sequence[Provisioner]
) -> ClusterSnapshot:
    """Return the snapshot with other Provisioners; a new one has subnets where any other has.

    Args:
        provisioners: Instead of those of the same name, or beside the others.
    """
    given = {found.name: found for found in provisioners}
    zones = tuple(sorted({zone for site in snapshot.sites for zone in site.zones}))
    kept = [found for found in snapshot.provisioners if found.name not in given]
    machines = {found.name: (found.template, found.kubelet) for found in snapshot.provisioners}
    sites = {site.provisioner: site for site in snapshot.sites}
    for owner in given.values():
        if machines.get(owner.name) == (owner.template, owner.kubelet):
            continue
        # What its images boot, and what its nodes have, is known of the recorded one alone.
        site = sites.get(owner.name, ProvisionerSite(provisioner=owner.name, zones=zones))
        without_image = never_with_image(owner.template, snapshot.instance_types)
        sites[owner.name] = replace(site, without_image=without_image, observed={})
    return replace(
        snapshot,
        provisioners=tuple(sorted((*kept, *provisioners), key=lambda found: found.name)),
        sites=tuple(sites.values()),
    )


def paid_micros(steps: Sequence[Replayed]) -> tuple[int, int]:
    """Return what the bought nodes cost while they ran: as recorded, and under the other policy.

    In micro-dollars. How long the nodes of a plan ran is what the snapshots of later decisions
    show; the other policy's nodes are taken to run as long, or until the last decision of the
    cluster where the recorded policy bought none. Nodes of that last decision count nothing.

    Args:
        steps: By cluster and time.
    """
    recorded = other = 0
    for number, step in enumerate(steps):
        seconds = _node_seconds(step, steps[number:])
        nodes = max(1, step.recorded.nodes)
        hours = _SECONDS_AN_HOUR * nodes
        recorded += step.recorded.cost_micros_per_hour * seconds // hours
        other += step.other.cost_micros_per_hour * seconds // hours
    return recorded, other


def _node_seconds(step: Replayed, later: Sequence[Replayed]) -> int:
    """Return for how many seconds the nodes of a plan ran, all of them together.

    A plan without nodes counts as one that ran to the last decision.
    """
    nodes = step.recorded.nodes
    standing = max(1, nodes)
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


def _bought(plan: Plan) -> Bought:
    return Bought(
        cost_micros_per_hour=plan.cost_micros_per_hour,
        nodes=len(plan.nodes),
        placed=sum(len(node.pods) for node in plan.nodes)
        + sum(len(placement.pods) for placement in plan.placements),
        waiting=len(plan.unschedulable),
    )
