"""The provisioning decision."""

from collections.abc import Sequence

from shared.model.instance_types import OfferingKey
from shared.model.launch import LaunchOption, PlannedNode
from shared.model.plan import Placement, Plan, Unschedulable
from shared.model.pods import Pod
from shared.model.snapshot import ClusterSnapshot
from shared.packing.problem import PackingSettings
from shared.planning.board import Board
from shared.planning.bounding import bound
from shared.planning.reasons import Explainer
from shared.planning.rounds import Outcome, solve
from shared.planning.survey import survey
from shared.scheduling.existing import nominated
from shared.scheduling.judge import obstacles
from shared.scheduling.listing import Ware
from shared.scheduling.spots import Spot


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
    board, outcome = _decided(snapshot, waiting, settings)
    return _to_plan(snapshot, board, outcome)


def _decided(
    snapshot: ClusterSnapshot, waiting: Sequence[Pod], settings: PackingSettings
) -> tuple[Board, Outcome]:
    """Decide for all at once; when there is not enough for all, by priority instead."""
    board = survey(snapshot, waiting, settings)
    outcome = solve(board, board.applicants)
    missing = [one.priority for one in board.unplaced() if not one.one.scheduling.refusals]
    if not missing or min(one.priority for one in board.applicants) >= max(missing):
        return board, outcome
    ranked = survey(snapshot, waiting, settings)
    for priority in sorted({one.priority for one in ranked.applicants}, reverse=True):
        solve(ranked, [one for one in ranked.applicants if one.priority == priority])
    return (ranked, outcome) if _better(ranked, board) else (board, outcome)


def _better(one: Board, other: Board) -> bool:
    """Return whether the first board has places for more important pods."""

    def left(board: Board) -> list[tuple[int, int]]:
        missing: dict[int, int] = {}
        for applicant in board.applicants:
            rank = -applicant.priority
            missing[rank] = missing.get(rank, 0) + len(applicant.waiting)
        return sorted(missing.items())

    return left(one) < left(other)


def _to_plan(snapshot: ClusterSnapshot, board: Board, outcome: Outcome) -> Plan:
    placements = [
        Placement(
            node=spot.room.name,
            slot=spot.room.slot,
            pods=tuple(sorted(ref for refs in spot.contents.values() for ref in refs)),
        )
        for spot in board.spots
        if spot.room is not None and spot.contents
    ]
    options = _Options(board)
    nodes = [_planned(board, spot, options) for spot in board.spots if spot.room is None]
    cost = sum(node.price_micros_per_hour for node in nodes)
    unplaced = []
    explainer = Explainer(snapshot, board.all_left())
    for one in board.unplaced():
        reasons = one.one.scheduling.refusals
        if not reasons:
            rules = tuple(obstacles(one.stance.kind))
            reasons = explainer.explain(one.one, frozenset(one.turned_away), rules)
        else:
            reasons = ("; ".join(reasons),)
        limited = frozenset(one.turned_away)
        unplaced += [
            Unschedulable(pod=ref, reasons=reasons, limited=limited) for ref in one.waiting
        ]
    return Plan(
        nodes=tuple(sorted(nodes, key=lambda n: (n.provisioner, n.price_micros_per_hour, n.pods))),
        placements=tuple(sorted(placements, key=lambda one: one.node)),
        unschedulable=tuple(sorted(unplaced, key=lambda one: one.pod)),
        order=tuple(ref for _, ref, _ in board.order),
        cost_micros_per_hour=cost,
        lower_bound_micros_per_hour=bound(board, cost),
        remark=outcome.remark,
    )


def _planned(board: Board, spot: Spot, options: "_Options") -> PlannedNode:
    offer = board.wares.offers[spot.ways[0].offer]
    own = {k: v for k, v in offer.labels.items() if k not in offer.instance_type.labels}
    return PlannedNode(
        provisioner=offer.provisioner.name,
        labels=own,
        options=options.of(spot.ways),
        fallback=options.of(spot.fallback),
        pods=tuple(sorted(ref for refs in spot.contents.values() for ref in refs)),
        requests=spot.requests,
        daemon_requests=spot.daemons,
    )


class _Options:
    """Launch options of ways to buy; the same lists come many times."""

    def __init__(self, board: Board) -> None:
        self._offers = board.wares.offers
        self._of_list: dict[int, tuple[LaunchOption, ...]] = {}
        self._of_way: dict[Ware, LaunchOption] = {}

    def of(self, ways: tuple[Ware, ...]) -> tuple[LaunchOption, ...]:
        if id(ways) not in self._of_list:
            self._of_list[id(ways)] = tuple(self._option(one) for one in ways)
        return self._of_list[id(ways)]

    def _option(self, way: Ware) -> LaunchOption:
        if way not in self._of_way:
            instance_type = self._offers[way.offer].instance_type
            self._of_way[way] = LaunchOption(
                offering=OfferingKey(
                    instance_type=instance_type.name,
                    zone=way.offering.zone,
                    capacity_type=way.offering.capacity_type,
                ),
                price_micros_per_hour=way.offering.price_micros_per_hour,
                capacity=instance_type.capacity,
                allocatable=instance_type.allocatable,
            )
        return self._of_way[way]
