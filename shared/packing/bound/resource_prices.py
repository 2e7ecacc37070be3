"""What any plan must cost at least, and what resources are worth at that price.

The linear programme: buy fractions of kinds so that, for every signature (set of kinds a class may
run on) and every resource, what the kinds give to it covers its demand:

    minimise  sum price(t) x(t)
    subject to  sum over t of y(s,t,r) >= demand(s,r),   sum over s of y(s,t,r) <= room(t,r) x(t)

Its dual values are resource prices per signature; a kind must not be worth more than it costs when
each of its resources goes to the signature that pays most. That is all the solver below uses: a
column is a kind and, per resource, the signature that gets it, and columns are found when needed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from shared.packing.bound.free_capacity import NO_ROOM, FreeCapacities, FreeCapacity, beyond_rooms
from shared.packing.bound.linear_program import Column, Rows, solve, usable_rows
from shared.packing.demand import Demand
from shared.packing.machine_kinds import MachineKind
from shared.packing.symmetry import alike_signatures, pooled_room, pooled_slots

_SCALE: Final = 1 << 80
_MAX_SIGNATURES: Final = 12
_MAX_ROWS: Final = 40
_TINY: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourcePrices:
    """Dual values: the worth of one unit of a resource to a signature, in micro-dollars per hour.

    Attributes:
        group: Per signature of the demand, the group of signatures it was counted in.
        values: Per group, per resource position, the worth of one unit.
        mix: (kind, how many of it the programme buys), fractions, by kind.
        shares: Per kind of the mix, per group, the part of the group's demand that it serves.
        basis: The columns of the solution: kind, ((signature, resource position), amount) of what
            it serves; a similar programme starts from them.
    """

    group: tuple[int, ...]
    values: tuple[tuple[float, ...], ...]
    mix: tuple[tuple[int, float], ...] = ()
    shares: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    basis: tuple[tuple[int, tuple[tuple[tuple[int, int], float], ...]], ...] = ()

    def of_class(self, demand: Demand, index: int) -> float:
        """Return the worth of one pod of a class."""
        if not self.values:
            return 0.0
        values = self.values[self.group[demand.signature[index]]]
        worth = (
            values[0] * demand.cpu[index]
            + values[1] * demand.memory[index]
            + values[2] * demand.pods[index]
        )
        for place, amount in demand.extras[index]:
            worth += values[place + 3] * amount
        return worth


def find_prices(
    demand: Demand,
    counts: Sequence[int],
    kinds: Sequence[MachineKind],
    prices: Sequence[int],
    like: ResourcePrices | None = None,
) -> ResourcePrices:
    """Return the resource prices for what is left of the classes.

    Args:
        demand: The classes.
        counts: Pods left per class. Each class counted must fit some kind.
        kinds: What can be bought.
        prices: Price per kind to minimise, above zero.
        like: Those for the same kinds and other counts: makes it faster, changes nothing.
    """
    rooms = [kind.room for kind in kinds]
    home: Sequence[int] = range(len(demand.names))
    rows = _make_rows(demand, counts, kinds, prices, home, like)
    if len(rows.keys) > _MAX_ROWS:
        home = pooled_slots(demand, counts, kinds)
        rooms = [pooled_room(room, home) for room in rooms]
        rows = _make_rows(demand, counts, kinds, prices, home, like)
    if len(rows.keys) > _MAX_ROWS:
        rows = _most_wanted(rows, rooms)
    known = _columns_of(like, rows) if like else ()
    duals, bought = solve(rows, usable_rows(rows, rooms), rooms, prices, known)
    values = [[0.0] * len(home) for _ in rows.masks]
    for (group, resource), dual in zip(rows.keys, duals, strict=True):
        for place, where in enumerate(home):
            if where == resource:
                values[group][place] = dual
    firsts: dict[int, int] = {}
    for k, count in enumerate(counts):
        if count:
            firsts.setdefault(rows.group[demand.signature[k]], demand.signature[k])
    mix: dict[int, float] = {}
    for level, (kind, _) in bought:
        if level > _TINY:
            mix[kind] = mix.get(kind, 0.0) + level
    return ResourcePrices(
        group=rows.group,
        values=tuple(tuple(value) for value in values),
        mix=tuple(sorted(mix.items())),
        shares=_shares(rows, bought),
        basis=tuple(
            (kind, tuple([((firsts[rows.keys[i][0]], rows.keys[i][1]), a) for i, a in column]))
            for _, (kind, column) in bought
        ),
    )


def _shares(rows: Rows, bought: Sequence[tuple[float, Column]]) -> dict[int, tuple[float, ...]]:
    """Return per kind, per group, the part of the group's demand that the kind serves."""
    served: dict[tuple[int, int], float] = {}
    for level, (kind, column) in bought:
        for row, amount in column if level > _TINY else ():
            part = level * amount / rows.amounts[row] if rows.amounts[row] else 0.0
            served[kind, row] = served.get((kind, row), 0.0) + part
    shares: dict[int, list[float]] = {}
    for (kind, row), part in served.items():
        group = rows.keys[row][0]
        parts = shares.setdefault(kind, [0.0] * len(rows.masks))
        parts[group] = max(parts[group], part)
    return {kind: tuple(parts) for kind, parts in shares.items()}


def _columns_of(like: ResourcePrices, rows: Rows) -> list[Column]:
    """Return the columns of another solution in these rows, as far as they are open to the kind."""
    place = {key: i for i, key in enumerate(rows.keys)}
    found: list[Column] = []
    for kind, column in like.basis:
        part = {}
        for (signature, resource), amount in column:
            group = rows.group[signature]
            if (group, resource) in place and rows.masks[group] >> kind & 1:
                part[place[group, resource]] = amount
        if part:
            found.append((kind, sorted(part.items())))
    return found


def lower_bound(
    demand: Demand,
    counts: Sequence[int],
    kinds: Sequence[MachineKind],
    worth: ResourcePrices,
    *,
    rooms: FreeCapacities = NO_ROOM,
) -> int:
    """Return what placing the pods costs at least, in micro-dollars per hour, rounded down.

    Exact whatever the resource prices are: they are taken as integers and scaled down until no
    kind is worth more than it costs.

    Args:
        demand: The classes.
        counts: Pods per class, all of them placed.
        kinds: What can be bought, by true price.
        worth: Resource prices, near the dual optimum for a good bound.
        rooms: Room that need not be bought.
    """
    if not worth.values:
        return 0
    values = [[int(max(v, 0.0) * _SCALE) for v in value] for value in worth.values]
    present = sorted({demand.signature[k] for k, count in enumerate(counts) if count})
    over, under = _most_worth(kinds, worth, values, present)
    worths = [0] * len(counts)
    for index, count in enumerate(counts):
        if count:
            row = values[worth.group[demand.signature[index]]]
            worths[index] = sum([row[place] * amount for place, amount in demand.amounts(index)])
    highest: dict[tuple[int, ...], list[int]] = {}

    def room_worth(room: FreeCapacity, some: Sequence[int]) -> int:
        groups = tuple(sorted({worth.group[demand.signature[k]] for k in some}))
        if groups not in highest:
            rows = [values[g] for g in groups]
            highest[groups] = [max(column) for column in zip(*rows, strict=True)]
        return sum([a * top for a, top in zip(room.amounts, highest[groups], strict=False)])

    total = beyond_rooms(worths, counts, rooms, room_worth)
    return max(total * under // (over * _SCALE), 0)


def _most_worth(
    kinds: Sequence[MachineKind],
    worth: ResourcePrices,
    values: Sequence[Sequence[int]],
    present: Sequence[int],
) -> tuple[int, int]:
    """Return the largest worth per price of any kind, as a fraction, at least 1.

    A kind's room is worth what it is worth to the signatures that have pods.
    """
    over, under = 1, 1
    for kind in kinds:
        groups = sorted({worth.group[s] for s in present if kind.signatures >> s & 1})
        value = sum(
            amount * max((values[g][resource] for g in groups), default=0)
            for resource, amount in enumerate(kind.room)
            if amount
        )
        if value * under > over * kind.price * _SCALE:
            over, under = value, kind.price * _SCALE
    return over, under


def _make_rows(
    demand: Demand,
    counts: Sequence[int],
    kinds: Sequence[MachineKind],
    prices: Sequence[int],
    home: Sequence[int],
    like: ResourcePrices | None,
) -> Rows:
    sums: dict[int, dict[int, int]] = {}
    for index, count in enumerate(counts):
        if count:
            row = sums.setdefault(demand.signature[index], {})
            for place, amount in demand.amounts(index):
                where = home[place]
                if where >= 0:
                    row[where] = row.get(where, 0) + amount * count
    groups = _kept_groups(sums, like) if like else _groups(sums, kinds, prices)
    group = [0] * len(demand.masks)
    masks, merged = [], []
    for number, some in enumerate(groups):
        total: dict[int, int] = {}
        mask = 0
        for signature in some:
            group[signature] = number
            mask |= _open_kinds(kinds, signature)
            for place, amount in sums[signature].items():
                total[place] = total.get(place, 0) + amount
        masks.append(mask)
        merged.append(total)
    keys = [(g, place) for g, row in enumerate(merged) for place in sorted(row)]
    return Rows(
        group=tuple(group),
        keys=tuple(keys),
        amounts=tuple(merged[g][place] for g, place in keys),
        masks=tuple(masks),
    )


def _groups(
    sums: Mapping[int, Mapping[int, int]], kinds: Sequence[MachineKind], prices: Sequence[int]
) -> list[list[int]]:
    """Return the signatures by group, those with most demand first.

    Signatures open to the same kinds, or to kinds with the same rooms and prices, are one group:
    what is bought for one could be bought for the other, so nothing is lost. When there are too
    many, those with least demand share a group that is open to all their kinds: a weaker bound,
    still a bound.
    """
    by_mask: dict[int, list[int]] = {}
    for signature in sorted(sums):
        by_mask.setdefault(_open_kinds(kinds, signature), []).append(signature)
    alike = alike_signatures([many[0] for many in by_mask.values()], kinds, prices, exactly=True)
    groups: dict[int, list[int]] = {}
    for many in by_mask.values():
        groups.setdefault(alike[many[0]], []).extend(many)
    parts = sorted(
        groups.values(), key=lambda some: (-sum([sums[s].get(0, 0) for s in some]), some)
    )
    if len(parts) <= _MAX_SIGNATURES:
        return parts
    rest = [signature for some in parts[_MAX_SIGNATURES - 1 :] for signature in some]
    return [*parts[: _MAX_SIGNATURES - 1], rest]


def _kept_groups(sums: Mapping[int, Mapping[int, int]], like: ResourcePrices) -> list[list[int]]:
    """Return the signatures by group, as they were before: its columns can be used again."""
    groups: dict[int, list[int]] = {}
    for signature in sorted(sums, key=lambda s: (like.group[s], s)):
        groups.setdefault(like.group[signature], []).append(signature)
    return list(groups.values())


def _open_kinds(kinds: Sequence[MachineKind], signature: int) -> int:
    return sum([1 << t for t, kind in enumerate(kinds) if kind.signatures >> signature & 1])


def _most_wanted(rows: Rows, rooms: Sequence[Sequence[int]]) -> Rows:
    """Return the rows that need most machines: the others are left out, which is still a bound."""
    largest = [max(column) for column in zip(*rooms, strict=True)]
    rank = {
        key: amount / max(largest[key[1]], 1)
        for key, amount in zip(rows.keys, rows.amounts, strict=True)
    }
    kept = sorted(sorted(rank, key=lambda key: (-rank[key], key))[:_MAX_ROWS])
    amounts = dict(zip(rows.keys, rows.amounts, strict=True))
    return rows._replace(keys=tuple(kept), amounts=tuple([amounts[key] for key in kept]))
