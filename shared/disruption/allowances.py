"""How many nodes of each owner may be disrupted now, by its budgets.

Source: https://karpenter.sh/docs/concepts/disruption/#nodepool-disruption-budgets and
pkg/apis/v1/nodepool.go of sigs.k8s.io/karpenter 1.14 (2026-11).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Protocol, TypeVar

from shared.model.kubernetes.nodes import Node
from shared.model.node_budgets import DisruptionReason, NodeBudget
from shared.model.provisioner import Provisioner


class _OnNode(Protocol):
    @property
    def node(self) -> Node: ...


_Held = TypeVar("_Held", bound=_OnNode)
_PER_CENT: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowances:
    """How many nodes may still be disrupted now.

    Attributes:
        left: By owner and reason, None for one that no budget names. No number: any. Absent where
            the settings say it.
    """

    left: Mapping[tuple[str, DisruptionReason | None], int | None] = field(
        default_factory=dict, hash=False
    )

    def within(
        self,
        candidates: Iterable[_Held],
        reason: DisruptionReason | None,
        others: int | None = None,
    ) -> tuple[_Held, ...]:
        """Return the first candidates, in their order, that may be disrupted together.

        Args:
            others: Most nodes for which the settings say it, all together; None for any number.
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
    owners: Iterable[Provisioner], nodes: Sequence[Node], now: datetime, going: Collection[str]
) -> Allowances:
    """Return what the budgets of owners leave now.

    What no active budget of an owner limits is without limit for a NodePool, as in Karpenter, and
    where the list of budgets is empty. Else the settings still limit it, as if there were none: a
    budget for a reason or some hours is not meant to open the others.

    Args:
        nodes: Of the whole cluster.
        going: Uids of nodes that are about to be removed.
    """
    found = {}
    for owner in owners:
        as_karpenter = owner.budgets == () or owner.dialect.budgets is not None
        for reason in (None, *DisruptionReason) if owner.budgets is not None else ():
            left = disruptions_left(owner, nodes, reason, now, going)
            if left is not None or as_karpenter:
                found[owner.name, reason] = left
    return Allowances(left=found)


def disruptions_left(
    owner: Provisioner,
    nodes: Iterable[Node],
    reason: DisruptionReason | None,
    now: datetime,
    going: Collection[str],
    *,
    asking: str = "",
) -> int | None:
    """Return how many nodes of an owner may be disrupted now, None where no budget limits it.

    Nodes that were initialized count. Those among them that are not Ready, that are being removed
    or that are about to be use the budget up. One that has not been Ready for five minutes does
    not: unlike with Karpenter, what is lost does not hold the others for as long as it stands.

    Args:
        reason: None for one that no budget names.
        going: Uids of nodes that are about to be removed.
        asking: Uid of the empty node in question, which does not use up what it asks for itself.
    """
    if not owner.budgets:
        return None
    counted = [node for node in nodes if node.is_ours and owner.owns(node) and node.has_joined]
    allowed = _allowed(owner.budgets, reason, len(counted), now)
    if allowed is None:
        return None
    used = sum(1 for node in counted if node.uid != asking and _uses_up(node, going, now))
    return max(0, allowed - used)


def _uses_up(node: Node, going: Collection[str], now: datetime) -> bool:
    if node.deletion_at is not None or node.uid in going:
        return True
    return node.ready is not True and not node.is_unhealthy(now)


def _allowed(
    budgets: Sequence[NodeBudget], reason: DisruptionReason | None, of: int, now: datetime
) -> int | None:
    """Return the smallest of the budgets that are active and for this reason, None without one.

    One that cannot be read blocks every reason.
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

    A schedule that no date ever meets, as the 30th of February, is always active.
    """
    if not budget.schedule:
        return True
    # Functions of clusters without schedules go without.
    from cronsim import CronSim, CronSimError  # noqa: PLC0415 -- see above

    try:
        begins: datetime = next(CronSim(budget.schedule, now - budget.duration))
    except (CronSimError, StopIteration):
        return True
    return begins <= now
