"""The provisioning decision."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from shared.model.instance_types import OfferingKey
from shared.model.launch import LaunchOption, PlannedNode, PodRef
from shared.model.plan import Placement, Plan, Unschedulable
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot
from shared.packing.packer import pack
from shared.packing.problem import LIMIT, PackedNode, Packing, PackingSettings
from shared.planning.problem import Assembled, Ground, assemble
from shared.planning.reasons import explain
from shared.scheduling.classes import PodClass, group
from shared.scheduling.compatibility import accepted_terms
from shared.scheduling.demands import Demand, Refusal, demands
from shared.scheduling.existing import Room, nominated, rooms
from shared.scheduling.limits import remaining
from shared.scheduling.offers import Offer, in_order, label_choices, offers
from shared.scheduling.topology import host_rules

_MAX_ROUNDS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Solved:
    classes: tuple[PodClass, ...]
    demands: tuple[Demand, ...]
    refusals: tuple[Refusal, ...]
    rooms: tuple[Room, ...]
    assembled: Assembled
    excluded: Mapping[int, frozenset[str]]
    packing: Packing


def decide(snapshot: ClusterSnapshot, settings: PackingSettings | None = None) -> Plan:
    """Return what to do about the pods of a snapshot that wait for capacity.

    Existing and in-flight nodes are filled first, at no price; what is left is packed onto new
    nodes. The same snapshot and settings always give the same plan.
    """
    settings = settings or PackingSettings()
    placed = nominated(snapshot.slots) | snapshot.promised
    waiting = [pod for pod in snapshot.pending if pod.is_provisionable and pod.uid not in placed]
    if not waiting:
        return Plan()
    existing = rooms(snapshot)
    standing = [pod for room in existing for pod in room.pods]
    classes = group(waiting, standing)
    ground = Ground(
        classes=classes,
        offers=_all_offers(snapshot, classes),
        rooms=existing,
        rules=host_rules(classes, standing),
        limits=remaining(snapshot),
        settings=settings,
        seed=snapshot.seed,
    )
    solved = _solve(ground, soft=True)
    if any(one.soft for one in ground.rules) and _left_over(solved):
        relaxed = _solve(ground, soft=False)
        if _left_over(relaxed) < _left_over(solved):
            solved = relaxed
    return _to_plan(snapshot, solved)


def _all_offers(snapshot: ClusterSnapshot, classes: Sequence[PodClass]) -> tuple[Offer, ...]:
    sites = {site.provisioner: site for site in snapshot.sites}
    terms = [term for one in classes for term in accepted_terms(one.scheduling)]
    return tuple(
        offer
        for provisioner in in_order(snapshot.provisioners)
        if provisioner.name in sites
        for chosen in label_choices(provisioner, terms)
        for offer in offers(
            provisioner,
            sites[provisioner.name],
            snapshot.instance_types,
            snapshot.daemonsets,
            unavailable=snapshot.unavailable,
            chosen=chosen,
        )
    )


def _solve(ground: Ground, *, soft: bool) -> _Solved:
    """Pack; demands a limit turned away go to the next provisioner, until none does."""
    asked, refused = demands(ground.classes, ground.offers, ground.rooms, ground.rules, soft=soft)
    excluded: dict[int, frozenset[str]] = {}
    assembled = assemble(ground, asked, excluded)
    packing = pack(assembled.problem)
    for _ in range(_MAX_ROUNDS):
        moved = _turned_away(packing, assembled, excluded, ground.offers)
        if not moved:
            break
        asked, excluded = _split_moved(asked, excluded, moved)
        assembled = assemble(ground, asked, excluded)
        packing = pack(assembled.problem)
    return _Solved(
        classes=ground.classes,
        demands=asked,
        refusals=refused,
        rooms=ground.rooms,
        assembled=assembled,
        excluded=excluded,
        packing=packing,
    )


def _turned_away(
    packing: Packing,
    assembled: Assembled,
    excluded: dict[int, frozenset[str]],
    found: Sequence[Offer],
) -> dict[int, tuple[int, str]]:
    """Return, by demand, how many pods a limit turned away from which provisioner.

    Only where another provisioner is left to try.
    """
    names = {offer.provisioner.name for offer in found}
    moved = {}
    for index, count, reason in packing.unplaced:
        if reason == LIMIT:
            provisioner = assembled.provisioner_of[index]
            tried = excluded.get(index, frozenset()) | {provisioner}
            if names - tried:
                moved[index] = (count, provisioner)
    return moved


def _split_moved(
    asked: tuple[Demand, ...],
    excluded: dict[int, frozenset[str]],
    moved: dict[int, tuple[int, str]],
) -> tuple[tuple[Demand, ...], dict[int, frozenset[str]]]:
    """Split off the pods that were turned away, as demands that exclude the provisioner."""
    kept: list[Demand] = []
    exclusions: dict[int, frozenset[str]] = {}
    for index, demand in enumerate(asked):
        count, provisioner = moved.get(index, (0, ""))
        before = excluded.get(index, frozenset())
        if demand.count > count:
            exclusions[len(kept)] = before
            kept.append(_resized(demand, demand.count - count))
        if count:
            exclusions[len(kept)] = before | {provisioner}
            kept.append(_resized(demand, count))
    return tuple(kept), exclusions


def _resized(demand: Demand, count: int) -> Demand:
    return Demand(
        class_index=demand.class_index,
        count=count,
        pinned=demand.pinned,
        requests=demand.requests,
    )


def _left_over(solved: _Solved) -> int:
    return sum(count for _, count, _ in solved.packing.unplaced)


def _to_plan(snapshot: ClusterSnapshot, solved: _Solved) -> Plan:
    """Draw the pods from their classes: first onto rooms, then onto new nodes."""
    queues = [list(reversed(one.pods)) for one in solved.classes]

    def draw(contents: Sequence[tuple[int, int]]) -> tuple[PodRef, ...]:
        drawn: list[PodRef] = []
        for index, count in contents:
            queue = queues[solved.demands[index].class_index]
            drawn.extend(queue.pop() for _ in range(count))
        return tuple(sorted(drawn))

    placements = [
        Placement(
            node=solved.rooms[bin_index].name,
            slot=solved.rooms[bin_index].slot,
            pods=draw(contents),
        )
        for bin_index, contents in solved.packing.placements
    ]
    nodes = [_planned(solved, node, draw(node.contents)) for node in solved.packing.nodes]
    unplaced = []
    for index, count, reason in solved.packing.unplaced:
        one = solved.classes[solved.demands[index].class_index]
        limited = solved.excluded.get(index, frozenset())
        if reason == LIMIT:
            limited |= {solved.assembled.provisioner_of[index]}
        reasons = explain(snapshot, one, limited)
        unplaced += [Unschedulable(pod=ref, reasons=reasons) for ref in draw(((index, count),))]
    unplaced += [
        Unschedulable(pod=queues[refusal.class_index].pop(), reasons=(refusal.reason,))
        for refusal in solved.refusals
        for _ in range(refusal.count)
    ]
    return Plan(
        nodes=tuple(sorted(nodes, key=lambda n: (n.provisioner, n.price_micros_per_hour, n.pods))),
        placements=tuple(sorted(placements, key=lambda one: one.node)),
        unschedulable=tuple(sorted(unplaced, key=lambda one: one.pod)),
        cost_micros_per_hour=solved.packing.cost_micros_per_hour,
        lower_bound_micros_per_hour=solved.packing.lower_bound_micros_per_hour,
        remark=solved.packing.fallback,
    )


def _planned(solved: _Solved, node: PackedNode, pods: tuple[PodRef, ...]) -> PlannedNode:
    offer = solved.assembled.offers[node.shape]
    own = {k: v for k, v in offer.labels.items() if k not in offer.instance_type.labels}
    requests = Resources.total(
        solved.classes[solved.demands[index].class_index].scheduling.requests.times(count)
        for index, count in node.contents
    )
    return PlannedNode(
        provisioner=offer.provisioner.name,
        labels=own,
        options=tuple(_option(solved.assembled, *one) for one in node.options),
        fallback=tuple(_option(solved.assembled, *one) for one in node.fallback_options),
        pods=pods,
        requests=requests,
        daemon_requests=offer.daemon_requests,
    )


def _option(assembled: Assembled, shape: int, pool: int) -> LaunchOption:
    instance_type = assembled.offers[shape].instance_type
    offering = assembled.offerings[shape][pool]
    return LaunchOption(
        offering=OfferingKey(
            instance_type=instance_type.name,
            zone=offering.zone,
            capacity_type=offering.capacity_type,
        ),
        price_micros_per_hour=offering.price_micros_per_hour,
        capacity=instance_type.capacity,
        allocatable=instance_type.allocatable,
    )
