"""How full a node is, what keeps it from being consolidated, and what that would save."""

from collections.abc import Iterator, Sequence
from typing import Final

from functions.cli.plan.explanation import filled
from functions.cli.plan.saving_in_words import saving_in_words
from functions.cli.report.consolidating import as_launched_by_dovetail, without_blocks
from functions.cli.report.owners import owners_of, pools_of, site_of
from shared.disruption.allowances import NO_BUDGETS, Allowances, allowances
from shared.disruption.candidates import node_prices
from shared.disruption.consolidation import ConsolidationCommand, ConsolidationResult, consolidate
from shared.disruption.evaluation import SAVES_TOO_LITTLE
from shared.disruption.eviction_blockers import eviction_blockers
from shared.disruption.settings import SAVING_ALONE
from shared.disruption.simulate import by_price
from shared.model.dialect import OwnerKind
from shared.model.dollars_and_counts import counted, counted_kinds, first_names
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.provisioner import Provisioner
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.provisioning.savings.pools import pool_of

_MOST_REASONS: Final = 3
_PACKING: Final = by_price(PackingSettings())


def node_outlook(
    snapshot: ClusterSnapshot, budgets: Sequence[PodDisruptionBudget], node: Node
) -> Iterator[str]:
    """Yield how full a node is, what keeps it from being consolidated, and what that would save.

    The node is judged as if Dovetail had launched it, and alone: the others stay as they are.

    Args:
        snapshot: Includes what the volume claims of running pods require of nodes.
        budgets: All PodDisruptionBudgets with their last status.
        node: One of the snapshot.
    """
    name = node.name
    pods = [pod for pod in snapshot.bound if pod.node_name == name]
    yield filled(Resources.total(pod.scheduling.requests for pod in pods), node.allocatable)
    pool = pool_of(node)
    nodes = pools_of(snapshot.nodes).get(pool, (node,))
    owner = owners_of(snapshot, {pool: nodes})[pool]
    sites = {site.provisioner: site for site in snapshot.sites}
    sites.setdefault(owner.name, site_of(pool, owner, nodes, snapshot))
    others = tuple(other for other in snapshot.provisioners if other.name != owner.name)
    seen = as_launched_by_dovetail(
        replace(
            snapshot,
            provisioners=(*others, replace(owner, consolidation=True)),
            sites=tuple(sites.values()),
        ),
        {pool: nodes},
        {pool: owner},
    )
    allowed = allowances((owner,), seen.nodes, snapshot.taken_at, ())
    found = _alone(seen, budgets, name, allowed)
    kept = tuple(_kept(owner, pods, found, name))
    blockers = [blocker.reason for blocker in eviction_blockers(pods, budgets, snapshot.taken_at)]
    reasons = tuple(dict.fromkeys((*kept, *blockers)))
    for reason in reasons[:_MOST_REASONS]:
        yield f"is not consolidated: {reason}"
    if (more := len(reasons) - _MOST_REASONS) > 0:
        yield f"is not consolidated: {counted(more, 'more reason')} of this kind"
    if kept == (SAVES_TOO_LITTLE,):
        return
    best = _alone(without_blocks(seen), (), name, NO_BUDGETS).best if reasons else found.best
    if best is not None:
        moving = sum(1 for pod in pods if pod.keeps_its_node)
        text = _text(best, moving, node_prices(seen)[name])
        yield f"{'without that ' if reasons else ''}could be consolidated: {text}"


def _alone(
    snapshot: ClusterSnapshot,
    budgets: Sequence[PodDisruptionBudget],
    name: str,
    allowed: Allowances,
) -> ConsolidationResult:
    return consolidate(
        snapshot,
        budgets,
        SAVING_ALONE,
        _PACKING,
        most_nodes=1,
        allowances=allowed,
        resting=[node.uid for node in snapshot.nodes if node.name != name],
    )


def _kept(
    owner: Provisioner, pods: Sequence[Pod], found: ConsolidationResult, name: str
) -> Iterator[str]:
    """Yield why a node is kept: by its owner, by itself or its pods, or as nothing is saved."""
    if not owner.consolidation and owner.kind == OwnerKind.PROVISIONER:
        yield f"Provisioner {owner.name} does not enable consolidation"
    elif not owner.consolidation and any(pod.keeps_its_node for pod in pods):
        yield "consolidationPolicy is WhenEmpty, and pods run on it"
    elif name in (skipped := dict(found.skipped)):
        yield skipped[name]
    elif found.best is None:
        yield SAVES_TOO_LITTLE if name in found.unchanged else found.reason


def _text(change: ConsolidationCommand, pods: int, price_micros_per_hour: int) -> str:
    saves = saving_in_words(price_micros_per_hour, change.plan)
    if not pods:
        return f"no pod would move; {saves}"
    new = counted_kinds(
        f"{node.options[0].offering.instance_type} {node.options[0].offering.capacity_type.value}"
        for node in change.plan.nodes
    )
    there = first_names(sorted(placement.node for placement in change.plan.placements))
    where = " and ".join(filter(None, (new and f"new {new}", there)))
    return f"its {counted(pods, 'pod')} would go to {where}; {saves}"
