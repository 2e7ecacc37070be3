"""The lower bound printed with a plan: what any plan that places the same pods costs at least."""

from collections.abc import Sequence

from shared.model.resources import Resources
from shared.packing.best_bound import least_cost
from shared.packing.problem import Bin, PackingProblem
from shared.packing.problem import PodClass as PackedClass
from shared.planning.offerings.host_limits import Slots
from shared.planning.offerings.offering_list import bit_mask
from shared.planning.offerings.pending_group import Applicant
from shared.planning.packing_problem import Shelf, shelve
from shared.planning.state import Board
from shared.scheduling.node_constraints import Signature


def bound(board: Board, cost_micros_per_hour: int) -> int:
    """Return what placing the pods that have a place costs at least, in micro-dollars per hour.

    Only what the pods themselves insist on counts: where they were dealt to, which preferences
    were kept, settings and limits are choices that another plan may make otherwise. Of rules
    between pods those are kept that no other pod can change: who shares no host with whom.

    Preferences that are left are dropped for good: nothing may be decided on the board afterwards.

    Args:
        board: With every pod where it is going to be.
        cost_micros_per_hour: What that costs.
    """
    if not cost_micros_per_hour:
        return 0
    in_order = not board.limits and not any(_is_led(applicant) for applicant in board.applicants)
    placed = [0] * len(board.applicants)
    bought = [0] * len(board.applicants)
    for spot in board.spots:
        for index, pods in spot.contents.items():
            placed[index] += len(pods)
            if spot.room is None:
                bought[index] += len(pods)
    some = [applicant for applicant in board.applicants if placed[applicant.index]]
    for applicant in some:
        while applicant.relax():
            pass
    slots = Slots(some, spreads=False)
    signatures: dict[Signature, int] = {}
    merged: dict[tuple[Resources, int, int], list[int]] = {}
    for applicant in some:
        signature = applicant.stance.signature
        number = signatures.setdefault(signature, len(signatures))
        rooms = board.wares.rooms_accepting(signature)
        counts = merged.setdefault(
            (applicant.requests + slots.taken(applicant), number, rooms), [0, 0]
        )
        counts[0] += placed[applicant.index]
        counts[1] += bought[applicant.index]
    shelf = shelve(board, tuple(signatures), slots.of_new_node())
    sold = _sold(board, some) if in_order else None
    masks = _masks(shelf, len(signatures), sold)
    problem = PackingProblem(
        classes=tuple(
            PackedClass(requests=requests, count=count)
            for (requests, _, _), (count, _) in merged.items()
        ),
        shapes=shelf.shapes,
        bins=tuple(
            Bin(name=room.name, available=room.available + slots.of_new_node())
            for room in board.wares.rooms
        ),
        compatible=tuple(masks[number] for _, number, _ in merged),
        compatible_bins=tuple(rooms for _, _, rooms in merged),
    )
    return least_cost(problem, [count for _, count in merged.values()], cost_micros_per_hour)


def _is_led(other_applicant: Applicant) -> bool:
    """Return whether rules or preferences may lead a pod away from the first provisioner."""
    kind = other_applicant.stance.kind
    return bool(other_applicant.ladder or kind.keys or kind.is_ruled or kind.by_host)


def _sold(board: Board, applicants: Sequence[Applicant]) -> frozenset[str]:
    """Return the provisioners that nodes are bought from when each pod takes the first it can."""
    wares = board.wares
    found: dict[tuple[Signature, Resources], str] = {}
    for applicant in applicants:
        question = (applicant.stance.signature, applicant.requests)
        if question not in found:
            ways = wares.ways(question[0])
            first = next((index for index in ways if wares.holds(applicant.requests, index)), None)
            found[question] = "" if first is None else wares.offers[first].provisioner.name
    return frozenset(found.values())


def _masks(shelf: Shelf, signatures: int, sold: frozenset[str] | None) -> list[int]:
    open_to: list[list[int]] = [[] for _ in range(signatures)]
    for index, (shape, accepted) in enumerate(zip(shelf.shapes, shelf.accepted, strict=True)):
        if sold is None or shape.provisioner in sold:
            left = accepted
            while left:
                lowest = left & -left
                left ^= lowest
                open_to[lowest.bit_length() - 1].append(index)
    return [bit_mask(some, len(shelf.shapes)) for some in open_to]
