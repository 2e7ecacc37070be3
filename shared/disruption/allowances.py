"""How many nodes of each owner may be disrupted now, by its budgets.

Source: https://karpenter.sh/docs/concepts/disruption/#nodepool-disruption-budgets and
pkg/apis/v1/nodepool.go of sigs.k8s.io/karpenter 1.14 (2026-11).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, Protocol, TypeVar

from msgspec import Struct, field

from shared.model.kubernetes.nodes import Node
from shared.model.node_budgets import DisruptionReason, NodeBudget
from shared.model.provisioner import Provisioner


class _OnNode(Protocol):
    @property
    def node(self) -> Node: ...


_Candidate = TypeVar("_Candidate", bound=_OnNode)
_PER_CENT: Final = 100


class Allowances(Struct, frozen=True, kw_only=True):
    """How many nodes may still be disrupted now.

    Attributes:
        left: The number of nodes by owner and reason; None for any number. The reason None stands
            for those that no budget names. Where the settings decide, there is no entry.
    """

    left: Mapping[tuple[str, DisruptionReason | None], int | None] = field(default_factory=dict)

    def within(
        self,
        candidates: Iterable[_Candidate],
        reason: DisruptionReason | None,
        others: int | None = None,
    ) -> tuple[_Candidate, ...]:
        """Return the first candidates, in their order, that may be disrupted together.

        Args:
            others: Most nodes, all together, of owners without an entry; None for any number.
        """
        used: dict[str, int] = {}
        found = []
        for candidate in candidates:
            owner = candidate.node.provisioner
            most, key = others, ""
            if (owner, reason) in self.left:
                most, key = self.left[owner, reason], owner
            if most is None or used.get(key, 0) < most:
                used[key] = used.get(key, 0) + 1
                found.append(candidate)
        return tuple(found)


NO_BUDGETS: Final = Allowances()


def allowances(
    owners: Iterable[Provisioner], nodes: Sequence[Node], now: datetime, removing: Collection[str]
) -> Allowances:
    """Return what the budgets of owners allow now.

    If no active budget limits a reason, a NodePool has no limit for it, as in Karpenter, nor has an
    owner whose list of budgets is empty. For a Provisioner with budgets, the settings still limit
    it: a budget for one reason or some hours is not meant to lift the limit for others.

    Args:
        nodes: Of the whole cluster.
        removing: Uids of nodes that are about to be removed.
    """
    found = {}
    for owner in owners:
        as_karpenter = owner.budgets == () or owner.dialect.budgets is not None
        for reason in (None, *DisruptionReason) if owner.budgets is not None else ():
            left = disruptions_left(owner, nodes, reason, now, removing)
            if left is not None or as_karpenter:
                found[owner.name, reason] = left
    return Allowances(left=found)


def disruptions_left(
    owner: Provisioner,
    nodes: Iterable[Node],
    reason: DisruptionReason | None,
    now: datetime,
    removing: Collection[str],
    *,
    asking: str = "",
) -> int | None:
    """Return how many nodes of an owner may be disrupted now, None where no budget limits it.

    Nodes that were initialized count. Those that are not Ready, are being removed or are about to
    be removed use up the budget. A node that was last Ready more than five minutes ago does not use
    it up: unlike in Karpenter, a lost node does not block the others for as long as it exists.

    Args:
        reason: None for one that no budget names.
        removing: Uids of nodes that are about to be removed.
        asking: Uid of the empty node in question, which does not count against itself.
    """
    if not owner.budgets:
        return None
    counted = [node for node in nodes if node.is_ours and owner.owns(node) and node.was_initialized]
    allowed = _allowed(owner.budgets, reason, len(counted), now)
    if allowed is None:
        return None
    used = sum(1 for node in counted if node.uid != asking and _uses_up(node, removing, now))
    return max(0, allowed - used)


def _uses_up(node: Node, removing: Collection[str], now: datetime) -> bool:
    if node.deletion_at is not None or node.uid in removing:
        return True
    return node.ready is not True and not node.is_unhealthy(now)


def _allowed(
    budgets: Sequence[NodeBudget], reason: DisruptionReason | None, of: int, now: datetime
) -> int | None:
    """Return the smallest budget that is active and for this reason, None if there is none.

    A budget that cannot be parsed blocks every reason.
    """
    if any(budget.fault for budget in budgets):
        return 0
    found = [
        _amount(budget, of)
        for budget in budgets
        if (not budget.reasons or reason in budget.reasons) and is_active(budget, now)
    ]
    return min(found, default=None)


def _amount(budget: NodeBudget, of: int) -> int:
    return -(-budget.percent * of // _PER_CENT) if budget.nodes is None else budget.nodes


def is_active(budget: NodeBudget, now: datetime) -> bool:
    """Return whether a budget limits anything now.

    A budget whose schedule matches no date, such as 30 February, is always active.
    """
    if not budget.schedule:
        return True
    # cronsim is loaded only for clusters with schedules.
    from cronsim import CronSim, CronSimError  # noqa: PLC0415 -- see above

    try:
        begins: datetime = next(CronSim(budget.schedule, now - budget.duration))
    except (CronSimError, StopIteration):
        return True
    return begins <= now
