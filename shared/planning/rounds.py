"""Rounds: deal, pack, admit, place what is left, drop a preference, and again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from shared.model import labels as keys
from shared.packing.packer import pack
from shared.packing.problem import LIMIT, Packing
from shared.planning.admission import admit
from shared.planning.board import Board
from shared.planning.placing import fill, place, shrink
from shared.planning.problem import Assembled, Lot, assemble, sort_into_lots
from shared.planning.replay import replay
from shared.scheduling.applicants import Applicant
from shared.scheduling.dealing import Dealer, Share
from shared.scheduling.slots import Slots

_MAX_LIMIT_ROUNDS: Final = 8


@dataclass(slots=True, eq=False)
class Outcome:
    """What the packer said on the way: its bound, and why a simpler plan was taken."""

    bound_micros_per_hour: int = 0
    remark: str = ""


def solve(board: Board, applicants: Sequence[Applicant]) -> Outcome:
    """Place the waiting pods of these applicants, as far as that can be done."""
    outcome = Outcome()
    active = [one for one in applicants if one.waiting and not one.one.scheduling.refusals]
    while active:
        able = [one for one in active if _face(one)]
        _run(board, able, outcome)
        active = [one for one in active if one.waiting and one.relax()]
    if all(spot.room is not None for spot in board.spots):
        # No new node is to be had: only the domains that have nodes must be even.
        for one in applicants:
            if one.waiting and one.stance.kind.spreads and not one.one.scheduling.refusals:
                one.close()
                fill(board, one)
    board.keep_domains()
    replay(board)
    shrink(board)
    return outcome


def _face(one: Applicant) -> bool:
    """Drop preferences that nothing could keep; return whether any place is left at all."""
    while not one.is_able():
        if not one.relax():
            return False
    return True


def _run(board: Board, applicants: Sequence[Applicant], outcome: Outcome) -> None:
    """One round: those that must share a host with their like first, since others can join them."""
    together = [one for one in applicants if one.stance.kind.with_host]
    for one in sorted(together, key=lambda one: (-one.priority, one.index)):
        if any(rule.own for rule in one.stance.kind.affinities):
            place(board, one)
    dealt = [one for one in applicants if not one.stance.kind.with_host]
    while dealt:
        batch, dealt = _without_conflicts(dealt)
        _pack(board, batch, outcome)
    rest = [one for one in applicants if one.waiting]
    rest.sort(key=lambda one: (-one.priority, one.index))
    moved = True
    while moved and rest:
        before = sum(len(one.waiting) for one in rest)
        for one in rest:
            if board.wares.sellers(one.stance.signature) - one.turned_away:
                place(board, one)
            else:
                # Whoever could sell something has said that limits are in the way.
                fill(board, one)
        rest = [one for one in rest if one.waiting]
        # Somebody's place may be what another's affinity asks for.
        moved = sum(len(one.waiting) for one in rest) < before


def _without_conflicts(
    applicants: Sequence[Applicant],
) -> tuple[list[Applicant], list[Applicant]]:
    """Split off those that must not share a host with many others: they are packed after them."""
    later: set[int] = set()
    counters = {
        counter: None
        for one in applicants
        for counter in one.stance.kind.avoids
        if counter.key == keys.HOSTNAME
    }
    for counter in counters:
        counted = [one for one in applicants if counter in one.stance.kind.profile.adds]
        holders = [
            one
            for one in applicants
            if counter in one.stance.kind.avoids and counter not in one.stance.kind.profile.adds
        ]
        if not counted or not holders:
            continue
        fewer = min(counted, holders, key=lambda side: sum(len(one.waiting) for one in side))
        later.update(one.index for one in fewer)
    now = [one for one in applicants if one.index not in later]
    if not now:
        # Each avoids some other: the first begins.
        return list(applicants[:1]), list(applicants[1:])
    return now, [one for one in applicants if one.index in later]


def _pack(board: Board, applicants: Sequence[Applicant], outcome: Outcome) -> None:
    runs = Dealer(board.wares, board.spots).deal(applicants).runs
    if not runs:
        return
    lots, slots = sort_into_lots(board, runs, applicants)
    assembled = assemble(board, lots, slots)
    packing = pack(assembled.problem)
    # What one packing needs at least, the plan of all needs at least, too.
    outcome.bound_micros_per_hour = max(
        outcome.bound_micros_per_hour, packing.lower_bound_micros_per_hour
    )
    packing, lots, assembled = _within_limits(board, slots, lots, assembled, packing)
    outcome.remark = outcome.remark or packing.fallback
    admit(board, lots, assembled, packing, runs)


def _within_limits(
    board: Board, slots: Slots, lots: tuple[Lot, ...], assembled: Assembled, packing: Packing
) -> tuple[Packing, tuple[Lot, ...], Assembled]:
    """Pack again while a limit turns pods away that another provisioner may take."""
    names = {offer.provisioner.name for offer in board.wares.offers}
    tries = 0
    while True:
        moved = {index: count for index, count, reason in packing.unplaced if reason == LIMIT}
        for index in moved:
            for share in lots[index].pods:
                share.applicant.turned_away.add(assembled.provisioner_of[index])
        elsewhere = {
            index: count
            for index, count in moved.items()
            if names - lots[index].turned_away - {assembled.provisioner_of[index]}
        }
        if not elsewhere or tries == _MAX_LIMIT_ROUNDS:
            return packing, lots, assembled
        tries += 1
        lots = _split(lots, elsewhere, assembled)
        assembled = assemble(board, lots, slots)
        packing = pack(assembled.problem)


def _split(lots: Sequence[Lot], moved: dict[int, int], assembled: Assembled) -> tuple[Lot, ...]:
    """Split off the pods that a limit turned away, the last dealt first."""
    found: list[Lot] = []
    for index, lot in enumerate(lots):
        away = moved.get(index, 0)
        kept: dict[Share, int] = {}
        split: dict[Share, int] = {}
        for share, count in reversed(lot.pods.items()):
            taken = min(count, away)
            away -= taken
            if taken:
                split[share] = taken
            if count > taken:
                kept[share] = count - taken
        if kept:
            ordered = dict(reversed(kept.items()))
            found.append(Lot(lot.requests, lot.signature, lot.bins, lot.turned_away, ordered))
        if split:
            turned_away = lot.turned_away | {assembled.provisioner_of[index]}
            found.append(Lot(lot.requests, lot.signature, lot.bins, turned_away, split))
    return tuple(found)
