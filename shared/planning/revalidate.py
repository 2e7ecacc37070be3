"""The replay: the plan judged once more in its order, all its nodes there from the start.

Nodes opened late, or that became others, may be domains or count where they did not when earlier
pods were admitted. Whom the replay refuses gives up its place and waits again.
"""

from collections import Counter
from typing import Final

from shared.model.ec2.launches import PodRef
from shared.planning.offerings.pending_group import Applicant
from shared.planning.offerings.target_node import Spot
from shared.planning.placement.place import place
from shared.planning.state import Board
from shared.scheduling.topology.constraints import accepts
from shared.scheduling.topology.counts import add

_TRIES: Final = 3


def replay(board: Board) -> None:
    """Judge the order again while nodes came late; at the end everything in it is acceptable."""
    tries = 0
    while board.late:
        board.late = False
        board.work.spend_each(Counter(applicant.index for applicant, _, _ in board.order))
        refused = _judged_again(board)
        board.drop_empty()
        if tries == _TRIES:
            return
        tries += 1
        for applicant in sorted(refused, key=lambda entry: entry.index):
            applicant.waiting.sort(reverse=True)
            place(board, applicant)


def _judged_again(board: Board) -> set[Applicant]:
    board.census.reset()
    for spot in board.spots:
        if spot.room is None:
            board.census.open(spot)
    for spot in board.spots:
        for profile in spot.companions:
            add(profile, spot)
    kept: list[tuple[Applicant, PodRef, Spot]] = []
    refused: set[Applicant] = set()
    turned_down: list[tuple[Applicant, PodRef, Spot]] = []
    for applicant, ref, spot in board.order:
        kind = applicant.stance.kind
        if kind.is_ruled and not accepts(kind, spot.labels):
            turned_down.append((applicant, ref, spot))
            refused.add(applicant)
            continue
        add(kind.profile, spot)
        kept.append((applicant, ref, spot))
    for applicant, ref, spot in turned_down:
        spot.remove(applicant, ref)
        applicant.waiting.append(ref)
        if spot.room is None:
            board.loose.append(spot)
    board.order = kept
    return refused
