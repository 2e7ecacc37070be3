"""Choosing what a single node to be bought may become."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from shared.model.resources import CPU, Resources
from shared.planning.board import Board, within
from shared.scheduling.signatures import Signature
from shared.scheduling.spots import Spot
from shared.scheduling.wares import Ware


@dataclass(frozen=True, slots=True)
class Purchase:
    """Options of a node, cheapest first, and those of another capacity type."""

    ways: tuple[Ware, ...]
    fallback: tuple[Ware, ...]

    @property
    def price(self) -> int:
        """Price of the cheapest option, in micro-dollars per hour."""
        return self.ways[0].offering.price_micros_per_hour


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a node is bought for.

    Attributes:
        signatures: Of the pods on it.
        requests: Of all of them, daemons left out.
        labels: That the node must have, by topology key; None for a label it must lack.
        variant: Of `Wares.variant`, which may not change once pods stand on it; None for any.
    """

    signatures: Sequence[Signature]
    requests: Resources
    labels: Mapping[str, str | None]
    variant: tuple[object, ...] | None = None


def buy(board: Board, wanted: Wanted, without: Spot | None = None) -> Purchase | None:
    """Return the cheapest way to have such a node from the first provisioner that can, or None.

    Args:
        board: What is decided so far.
        wanted: What the node is for.
        without: A node that this one replaces: its share of the limits is free.
    """
    found = _candidates(board, wanted)
    while found:
        name = board.wares.offers[found[0].offer].provisioner.name
        left = board.left(name, without)
        own = [one for one in found if board.wares.offers[one.offer].provisioner.name == name]
        allowed = [one for one in own if _allowed(board, one, left)]
        if allowed:
            return _purchase(board, _small_enough(board, allowed))
        found = found[len(own) :]
    return None


def _candidates(board: Board, wanted: Wanted) -> list[Ware]:
    """Return all ways that hold what is wanted, in the order provisioners are tried."""
    wares = board.wares
    first, *others = wanted.signatures
    found = []
    for index, offerings in wares.ways(first).items():
        if wanted.variant is not None and wares.variant(index) != wanted.variant:
            continue
        if not wares.holds(wanted.requests, index):
            continue
        for offering in offerings:
            ware = Ware(index, offering)
            if all(wares.label(ware, key) == value for key, value in wanted.labels.items()) and (
                all(wares.accepted(one, ware) for one in others)
            ):
                found.append(ware)
    return found


def _allowed(board: Board, ware: Ware, left: Resources | None) -> bool:
    return within(board.wares.offers[ware.offer].instance_type.capacity, left)


def _small_enough(board: Board, ways: list[Ware]) -> list[Ware]:
    """Leave out machines above the cap on node size, unless nothing else is left."""
    cap = board.settings.max_node_vcpus * 1000
    sizes = {one.offer: board.wares.offers[one.offer].instance_type.capacity[CPU] for one in ways}
    if cap and min(sizes.values()) <= cap:
        return [one for one in ways if sizes[one.offer] <= cap]
    return ways


def _purchase(board: Board, ways: list[Ware]) -> Purchase:
    wares = board.wares

    def rank(one: Ware) -> tuple[int, str, str, str, int]:
        offering = one.offering
        name = wares.offers[one.offer].instance_type.name
        kind = offering.capacity_type.value
        return (offering.price_micros_per_hour, name, offering.zone, kind, one.offer)

    best = min(ways, key=rank)
    variant = wares.variant(best.offer)
    ordered = sorted((one for one in ways if wares.variant(one.offer) == variant), key=rank)
    kind = best.offering.capacity_type
    same = [one for one in ordered if one.offering.capacity_type == kind]
    other = [one for one in ordered if one.offering.capacity_type != kind]
    return Purchase(ways=_cut(board, same), fallback=_cut(board, other))


def _cut(board: Board, ways: Iterable[Ware]) -> tuple[Ware, ...]:
    kept = tuple(ways)
    if not kept:
        return ()
    ceiling = 100 + board.settings.option_price_ceiling_percent
    most = kept[0].offering.price_micros_per_hour * ceiling
    affordable = [one for one in kept if one.offering.price_micros_per_hour * 100 <= most]
    return tuple(affordable[: board.settings.max_options])
