"""Ceilings on nodes and dollars an hour: the check before a launch, and how full they are.

Plans stay within ceilings as they stay within limits, see shared/planning/rules/limits.py.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from shared.model.brakes import Ceiling
from shared.model.ec2.launches import LaunchOption, PlannedNode
from shared.model.kubernetes.volumes import is_attachable
from shared.model.resources import NODES, PRICE, Resources, format_amount
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.planning.rules.limits import counted_amounts, used_capacity

_DOLLAR: Final = 1_000_000


class OverCeiling(Struct, frozen=True, kw_only=True):
    """A planned node that would exceed a ceiling, and which ceiling that is."""

    node: PlannedNode
    reason: str


class CeilingUse(Struct, frozen=True, kw_only=True):
    """How much of a ceiling is in use.

    Attributes:
        percent: The share in use, rounded down; more than 100 after a ceiling was lowered.
        text: The use in dollars or nodes, for messages.
    """

    percent: int
    text: str


def ceiling_uses(snapshot: ClusterSnapshot, of_cluster: Ceiling) -> dict[str, CeilingUse]:
    """Return the use of each Provisioner's fullest ceiling, by name; only those under a ceiling.

    Args:
        snapshot: A snapshot with all nodes, slots and open launches.
    """
    used = used_capacity(snapshot)
    total = Resources.total(used.values())
    found = {}
    for owner in snapshot.provisioners:
        own = used.get(owner.name, Resources())
        uses = [*_uses(owner.ceiling, own, "this Provisioner")]
        uses += _uses(of_cluster, total, "the cluster")
        if uses:
            found[owner.name] = max(uses, key=lambda use: (use.percent, use.text))
    return found


def _uses(ceiling: Ceiling, used: Resources, whose: str) -> Iterator[CeilingUse]:
    price, most = used[PRICE], ceiling.max_price_micros_per_hour
    if most is not None:
        dollars, of_dollars = (f"${amount / _DOLLAR:.2f}" for amount in (price, most))
        text = f"nodes of {whose} cost {dollars} per hour, at most {of_dollars} are allowed"
        yield CeilingUse(percent=_percent(price, most), text=text)
    if ceiling.max_nodes is not None:
        text = f"{whose} has {used[NODES]} nodes, at most {ceiling.max_nodes} are allowed"
        yield CeilingUse(percent=_percent(used[NODES], ceiling.max_nodes), text=text)


def _percent(used: int, most: int) -> int:
    """Return the percentage in use, rounded down; 100 if the ceiling is zero."""
    return 100 * used // most if most else 100


def affordable(
    snapshot: ClusterSnapshot, nodes: Sequence[PlannedNode], of_cluster: Ceiling
) -> tuple[tuple[PlannedNode, ...], tuple[OverCeiling, ...]]:
    """Return the nodes that fit under all ceilings, in their order, and those that do not.

    The check before the launch, independent of the plan: each node counts at its most expensive
    option, and the cluster's ceiling holds for all Provisioners together.

    Args:
        snapshot: The snapshot as gathered.
    """
    used = used_capacity(snapshot)
    owner_remaining = {
        provisioner.name: _remaining(provisioner.ceiling, used.get(provisioner.name, Resources()))
        for provisioner in snapshot.provisioners
    }
    cluster_remaining = _remaining(of_cluster, Resources.total(used.values()))
    kept: list[PlannedNode] = []
    over: list[OverCeiling] = []
    for node in nodes:
        wanted = counted_amounts(Resources(), node.highest_price_micros_per_hour)
        of_owner = owner_remaining.get(node.provisioner, {})
        short = _first_short(wanted, of_owner)
        if short:
            over.append(OverCeiling(node=node, reason=f"{node.provisioner}: {short}"))
        elif short := _first_short(wanted, cluster_remaining):
            over.append(OverCeiling(node=node, reason=f"the whole cluster: {short}"))
        else:
            kept.append(node)
            for rest in (of_owner, cluster_remaining):
                rest.update({name: rest[name] - wanted[name] for name in rest})
    return tuple(kept), tuple(over)


def with_kubelet_resources(nodes: Iterable[PlannedNode]) -> tuple[PlannedNode, ...]:
    """Return the nodes with the resources that their kubelets will show.

    Volume attachments are counted by the plan alone: no Node.status has them, so a launch must not
    expect them there.
    """
    return tuple(
        replace(
            node,
            options=tuple(_with_kubelet_resources(option) for option in node.options),
            fallback=tuple(
                _with_kubelet_resources(launch_option) for launch_option in node.fallback
            ),
        )
        for node in nodes
    )


def _with_kubelet_resources(option: LaunchOption) -> LaunchOption:
    capacity, allocatable = (
        _kubelet_resources(option.capacity),
        _kubelet_resources(option.allocatable),
    )
    if (capacity, allocatable) == (option.capacity, option.allocatable):
        return option
    return replace(option, capacity=capacity, allocatable=allocatable)


def _kubelet_resources(amounts: Resources) -> Resources:
    """Return the resources that a kubelet shows, without those that only the plan counts."""
    return Resources(tuple((k, v) for k, v in amounts.items if not is_attachable(k)))


def _remaining(ceiling: Ceiling, used: Resources) -> dict[str, int]:
    """Return what a ceiling leaves, by resource; a resource without a ceiling is absent."""
    return {name: amount - used[name] for name, amount in ceiling.amounts.items()}


def _first_short(wanted: Resources, remaining: Mapping[str, int]) -> str:
    for name in sorted(remaining):
        if wanted[name] > remaining[name]:
            left, needed = (format_amount(name, n) for n in (max(remaining[name], 0), wanted[name]))
            return f"{left} {name} left under the ceiling, {needed} needed"
    return ""
