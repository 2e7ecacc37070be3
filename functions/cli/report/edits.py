"""Edits of what a pool may launch that could save money, and what each risks."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from msgspec import Struct

from functions.cli.report.owners import with_arm64, with_other_types, with_spot
from shared.model import labels as keys
from shared.model.dollars_and_counts import first_names
from shared.model.ec2.instance_types import CapacityType
from shared.model.provisioner import Provisioner
from shared.model.requirements import Requirement, Requirements
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace

_NAMED_BY_TITLE: Final = frozenset({keys.ZONE, keys.ARCH, keys.CAPACITY_TYPE})
_SIZES: Final = (keys.INSTANCE_SIZE, keys.INSTANCE_CPU, keys.INSTANCE_MEMORY)


class PoolEdit(Struct, frozen=True, kw_only=True):
    """An edit of a pool.

    Attributes:
        title: What is allowed, after the name of the pool.
        risk: One sentence.
        edited: Returns the pool with the edit.
    """

    title: str
    risk: str
    edited: Callable[[Provisioner], Provisioner]


def edits_of(owner: Provisioner, snapshot: ClusterSnapshot) -> Iterator[PoolEdit]:
    """Yield the edits that change what a pool may launch, in the order in which they combine."""
    zones = {node.labels.get(keys.ZONE, "") for node in snapshot.nodes}
    for edit in (
        PoolEdit(
            title="allow every instance size",
            risk="Nodes may be larger, so that the loss of one ends more pods at once.",
            edited=lambda pool: _without(pool, _SIZES),
        ),
        PoolEdit(
            title="allow every zone of the cluster",
            risk="Traffic between zones is charged, and subnets of these zones must be selected.",
            edited=lambda pool: _with_zones(pool, zones),
        ),
        PoolEdit(
            title="allow all c, m and r types since the third generation",
            risk="Older and newer processors differ in speed: measure what depends on one.",
            edited=lambda pool: with_other_types(pool, snapshot),
        ),
        PoolEdit(
            title="allow arm64 instances beside amd64 ones",
            risk="Images must be multi-architecture: one of amd64 alone does not start on arm64.",
            edited=lambda pool: with_arm64(pool, snapshot),
        ),
        PoolEdit(
            title="allow spot instances beside on-demand ones",
            risk="EC2 interrupts spot instances with two minutes' notice, and their prices change.",
            edited=_with_spot,
        ),
    ):
        if edit.edited(owner).requirements != owner.requirements:
            yield edit


def dropped_text(before: Requirements, after: Requirements) -> str:
    """Return what an edit drops or changes of what a pool asks of its types; may be empty.

    Example:
        instance-size not in 24xlarge, instance-generation > 4 (then > 2)
    """
    found = []
    for item in before:
        then = after.get(item.key)
        if item.key not in _NAMED_BY_TITLE and then != item:
            name = item.key.rpartition("/")[2]
            instead = "" if then is None else f" (then {_asked_text(then)})"
            found.append(f"{name} {_asked_text(item)}{instead}")
    return "; ".join(found)


def _asked_text(item: Requirement) -> str:
    parts = []
    if item.values or not item.complement:
        parts.append(f"{'not ' * item.complement}in {first_names(sorted(item.values))}")
    if item.minimum is not None:
        parts.append(f"> {item.minimum - 1}")
    if item.maximum is not None:
        parts.append(f"< {item.maximum + 1}")
    return " and ".join(parts) or "exists"


def with_edits(owner: Provisioner, edits: Sequence[PoolEdit]) -> Provisioner:
    """Return a pool with several edits."""
    for edit in edits:
        owner = edit.edited(owner)
    return owner


def _with_spot(owner: Provisioner) -> Provisioner:
    asked = owner.requirements.get(keys.CAPACITY_TYPE)
    allowed = asked is None or asked.allows(CapacityType.SPOT.value)
    return owner if allowed or keys.CAPACITY_TYPE in owner.labels else with_spot(owner)


def _with_zones(owner: Provisioner, zones: Collection[str]) -> Provisioner:
    asked = owner.requirements.get(keys.ZONE)
    more = asked is not None and not all(asked.allows(zone) for zone in zones)
    return _without(owner, (keys.ZONE,)) if more else owner


def _without(owner: Provisioner, some: Collection[str]) -> Provisioner:
    """Return a pool without its requirements on some keys; those of its labels stay."""
    kept = (item for item in owner.requirements if item.key not in some or item.key in owner.labels)
    return replace(owner, requirements=Requirements.of(kept))
