"""Whether another Provisioner of the same weight could run the same pods for less.

Provisioners and NodePools are tried by weight and then by name, never by price, as in Karpenter.
Users who set no weights do not see what that costs, so Dovetail reports it.
"""

from collections.abc import Iterator

from msgspec import Struct

from shared.model.dialect import OwnerKind
from shared.model.dollars_and_counts import dollars
from shared.model.plan import Plan
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from shared.planning.rules.provisioner_offerings import usable_in_order


class CheaperProvisioner(Struct, frozen=True, kw_only=True):
    """A Provisioner that was not used, though it is cheaper and of the same weight.

    Attributes:
        used: Name of the Provisioner whose nodes are planned.
        cheaper: Name of the other.
        used_micros_per_hour: Price of the planned nodes of the first.
        cheaper_micros_per_hour: Price of nodes of the second for the same pods.
    """

    used: str
    cheaper: str
    used_kind: OwnerKind
    cheaper_kind: OwnerKind
    used_micros_per_hour: int
    cheaper_micros_per_hour: int

    @property
    def text(self) -> str:
        """The message for users."""
        return (
            f"its nodes cost {dollars(self.used_micros_per_hour)}/h; "
            f"{self.cheaper_kind} {self.cheaper} of the same weight could take the same pods for "
            f"{dollars(self.cheaper_micros_per_hour)}/h; equal weights go by name: if that is not "
            f"meant, give {self.cheaper} a higher spec.weight"
        )


def same_weight(snapshot: ClusterSnapshot, plan: Plan) -> tuple[tuple[str, str], ...]:
    """Return (used, other): each Provisioner of planned nodes with each other of its weight."""
    used = {node.provisioner for node in plan.nodes}
    usable = usable_in_order(snapshot.provisioners)
    return tuple(
        (first.name, other.name)
        for first in usable
        if first.name in used
        for other in usable
        if other.name != first.name and other.weight == first.weight and not other.shadow
    )


def cheaper_provisioner(
    snapshot: ClusterSnapshot, plan: Plan, used: str, other: str, settings: PackingSettings
) -> CheaperProvisioner | None:
    """Return by how much `other` is cheaper for all pods of `used`'s new nodes, or None.

    A second decision plans these pods with `other` alone. None if it leaves a pod unplaced, or
    costs no less.
    """
    replaced = [node for node in plan.nodes if node.provisioner == used]
    uids = {ref.uid for node in replaced for ref in node.pods}
    alone = replace(
        snapshot,
        pending=tuple(pod for pod in snapshot.pending if pod.uid in uids),
        provisioners=tuple(owner for owner in snapshot.provisioners if owner.name == other),
    )
    instead = decide(alone, settings)
    price = sum(node.price_micros_per_hour for node in replaced)
    placed = {ref.uid for node in instead.nodes for ref in node.pods}
    if placed != uids or instead.cost_micros_per_hour >= price:
        return None
    kinds = {owner.name: owner.kind for owner in snapshot.provisioners}
    return CheaperProvisioner(
        used=used,
        used_kind=kinds[used],
        cheaper_kind=kinds[other],
        cheaper=other,
        used_micros_per_hour=price,
        cheaper_micros_per_hour=instead.cost_micros_per_hour,
    )


def cheaper_provisioners(
    snapshot: ClusterSnapshot, plan: Plan, settings: PackingSettings
) -> Iterator[CheaperProvisioner]:
    """Yield, for each Provisioner of planned nodes, each cheaper one of the same weight."""
    for used, other in same_weight(snapshot, plan):
        found = cheaper_provisioner(snapshot, plan, used, other, settings)
        if found is not None:
            yield found
