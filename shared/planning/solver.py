"""Rounds: deal, pack, admit, place what is left, drop a preference, and again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from shared.model import labels as keys
from shared.packing.packer import pack
from shared.packing.problem import LIMIT, Packing
from shared.planning.merge_launch_groups import join
from shared.planning.offerings.domain_assignment import Dealer
from shared.planning.offerings.pending_group import Applicant
from shared.planning.packing_problem import Assembled, Lot, assemble, sort_into_lots
from shared.planning.placement.place import fill, place, shrink
from shared.planning.placement.place_packed import admit
from shared.planning.revalidate import replay
from shared.planning.state import Board
from shared.scheduling.topology.counts import Counter

_MAX_LIMIT_ROUNDS: Final = 8
# Of packing: steps of one shape, and nodes that are filled for each lot at most, one by one. What
# a pod asks for of cpu, memory, pods and one thing more is among the steps of its lot.
_SHAPE: Final = 40
_FILLINGS_PER_LOT: Final = 2
_PLAIN_RESOURCES: Final = 4
# Pods that must all be kept apart are packed one batch after the other; the placer takes the rest.
_MOST_BATCHES: Final = 8


@dataclass(slots=True, eq=False)
class Outcome:
    """What the packer said on the way: why a simpler plan was taken."""

    remark: str = ""


def solve(board: Board, applicants: Sequence[Applicant]) -> Outcome:
    """Place the waiting pods of these applicants, as far as that can be done."""
    outcome = Outcome()
    active = [applicant for applicant in applicants if applicant.waiting]
    while active:
        able = [other_applicant for other_applicant in active if _face(other_applicant)]
        _run(board, able, outcome)
        active = [
            other_applicant
            for other_applicant in active
            if other_applicant.waiting and other_applicant.relax()
        ]
    if all(spot.room is not None for spot in board.spots):
        # No new node is to be had: only the domains that have nodes must be even.
        for applicant in applicants:
            if applicant.waiting and applicant.stance.kind.spreads:
                applicant.close()
                fill(board, applicant)
    board.keep_domains()
    replay(board)
    shrink(board)
    join(board)
    replay(board)
    return outcome


def _face(other_applicant: Applicant) -> bool:
    """Drop preferences that nothing could keep; return whether any place is left at all."""
    while not other_applicant.is_able():
        if not other_applicant.relax():
            return False
    return True


def _run(board: Board, applicants: Sequence[Applicant], outcome: Outcome) -> None:
    """One round: those that must share a host with their like first, since others can join them."""
    together = [applicant for applicant in applicants if applicant.stance.kind.with_host]
    for applicant in sorted(together, key=lambda entry: (-entry.priority, entry.index)):
        if any(rule.own for rule in applicant.stance.kind.affinities):
            place(board, applicant)
    dealt = [applicant for applicant in applicants if not applicant.stance.kind.with_host]
    for _ in range(_MOST_BATCHES):
        if not dealt:
            break
        batch, dealt = _without_conflicts(board, dealt)
        _pack(board, batch, outcome)
    rest = [applicant for applicant in applicants if applicant.waiting]
    rest.sort(key=lambda applicant: (-applicant.priority, applicant.index))
    moved = True
    while moved and rest:
        before = sum(len(applicant.waiting) for applicant in rest)
        for applicant in rest:
            if board.wares.sellers(applicant.stance.signature) - applicant.turned_away:
                place(board, applicant)
            else:
                # Whoever could sell something has said that limits are in the way.
                fill(board, applicant)
        rest = [applicant for applicant in rest if applicant.waiting]
        # Somebody's place may be what another's affinity asks for.
        moved = sum(len(applicant.waiting) for applicant in rest) < before


def _without_conflicts(
    board: Board, applicants: Sequence[Applicant]
) -> tuple[list[Applicant], list[Applicant]]:
    """Split off those that must not share a host with many others: they are packed after them."""
    later: set[int] = set()
    holders: dict[Counter, list[Applicant]] = {}
    counted: dict[Counter, list[Applicant]] = {}
    for applicant in applicants:
        kind = applicant.stance.kind
        board.work.spend(len(kind.avoids) + len(kind.profile.adds), applicant.index)
        own = frozenset(kind.profile.adds)
        for counter in own:
            counted.setdefault(counter, []).append(applicant)
        for counter in kind.avoids:
            if counter.key == keys.HOSTNAME and counter not in own:
                holders.setdefault(counter, []).append(applicant)
    for counter, many in holders.items():
        if counter in counted:
            sides = (counted[counter], many)
            fewer = min(sides, key=lambda side: sum(len(entry.waiting) for entry in side))
            later.update(other_applicant.index for other_applicant in fewer)
    now = [applicant for applicant in applicants if applicant.index not in later]
    if not now:
        # Each avoids some other: the first begins.
        return list(applicants[:1]), list(applicants[1:])
    return now, [applicant for applicant in applicants if applicant.index in later]


def _pack(board: Board, applicants: Sequence[Applicant], outcome: Outcome) -> None:
    """Pack and admit; those whom a limit turned away once more, for other provisioners."""
    for _ in range(_MAX_LIMIT_ROUNDS):
        runs = Dealer(board.wares, board.spots, board.work).deal(applicants).runs
        if not runs:
            return
        lots, slots = sort_into_lots(board, runs, applicants)
        _charge(board, lots)
        assembled = assemble(board, lots, slots)
        packing = pack(assembled.problem, bounded=False)
        outcome.remark = outcome.remark or packing.fallback
        moved = _turned_away(board, lots, assembled, packing)
        admit(board, lots, assembled, packing, runs)
        applicants = [
            applicant for applicant in applicants if applicant in moved and applicant.waiting
        ]
        if not applicants:
            return


def _charge(board: Board, lots: Sequence[Lot]) -> None:
    """Count what packing takes: each node is filled from all lots, equal nodes once."""
    pods = sum(lot.count for lot in lots)
    fillings = min(pods, _FILLINGS_PER_LOT * len(lots)) // _FILLINGS_PER_LOT
    shapes = len(board.wares.offers)
    # Each pick of labels is a full list of shapes.
    part = _SHAPE * shapes // (1 + sum(board.brought.values()))
    steps = {index: part * many for index, many in board.brought.items()}
    for lot in lots:
        # Slots of rules over hosts are resources, too: each is one of every shape.
        resources = max(len(lot.requests.items) - _PLAIN_RESOURCES, 0)
        taken = fillings + shapes * resources + part // len(lots)
        for share in lot.pods:
            index = share.applicant.index
            steps[index] = steps.get(index, 0) + taken // len(lot.pods)
    board.work.spend_each(steps)


def _turned_away(
    board: Board, lots: Sequence[Lot], assembled: Assembled, packing: Packing
) -> set[Applicant]:
    """Note whose limits were in the way of whom; return whom another provisioner may take."""
    moved: set[Applicant] = set()
    for index, _, reason in packing.unplaced:
        if reason != LIMIT:
            continue
        lot = lots[index]
        here = assembled.provisioner_of[index]
        elsewhere = board.wares.sellers(lot.signature) - lot.turned_away - {here}
        for share in lot.pods:
            share.applicant.turned_away.add(here)
            if elsewhere:
                moved.add(share.applicant)
    return moved
