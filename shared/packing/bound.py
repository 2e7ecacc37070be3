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

from shared.packing.market import Demand, Kind
from shared.packing.programme import Rows, solve, usable_rows

_SCALE: Final = 1 << 80
_MAX_SIGNATURES: Final = 12
_MAX_ROWS: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourcePrices:
    """Dual values: what one unit of a resource is worth to a signature, in micro-dollars per hour.

    Attributes:
        group: Per signature of the demand, the group of signatures it was counted in.
        values: Per group, per resource position, the worth of one unit.
        mix: (kind, how many of it the programme buys), fractions, by kind.
        shares: Per kind of the mix, per group, the part of the group's demand that it serves.
    """

    group: tuple[int, ...]
    values: tuple[tuple[float, ...], ...]
    mix: tuple[tuple[int, float], ...] = ()
    shares: Mapping[int, tuple[float, ...]] = field(default_factory=dict)

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
    demand: Demand, counts: Sequence[int], kinds: Sequence[Kind], prices: Sequence[int]
) -> ResourcePrices:
    """Return the resource prices for what is left of the classes.

    Args:
        demand: The classes.
        counts: Pods left per class. Each class counted must fit some kind.
        kinds: What can be bought.
        prices: Price per kind to minimise, above zero.
    """
    rows = _make_rows(demand, counts, kinds)
    usable = usable_rows(rows, kinds)
    duals, mix, served = solve(rows, usable, kinds, prices)
    resources = len(demand.names)
    values = [[0.0] * resources for _ in rows.masks]
    for (group, resource), dual in zip(rows.keys, duals, strict=True):
        values[group][resource] = dual
    shares = {kind: [0.0] * len(rows.masks) for kind in mix}
    for (kind, row), part in served.items():
        group = rows.keys[row][0]
        shares[kind][group] = max(shares[kind][group], part)
    return ResourcePrices(
        group=rows.group,
        values=tuple(tuple(one) for one in values),
        mix=tuple(sorted(mix.items())),
        shares={kind: tuple(parts) for kind, parts in shares.items()},
    )


def lower_bound(
    demand: Demand,
    counts: Sequence[int],
    kinds: Sequence[Kind],
    worth: ResourcePrices,
    *,
    credit: Sequence[Sequence[int]] = (),
) -> int:
    """Return what placing the pods costs at least, in micro-dollars per hour, rounded down.

    Exact whatever the resource prices are: they are taken as integers and scaled down until no
    kind is worth more than it costs.

    Args:
        demand: The classes.
        counts: Pods per class, all of them placed.
        kinds: What can be bought, by true price.
        worth: Resource prices, near the dual optimum for a good bound.
        credit: Amounts, in the order of the resources, that need not be bought, each usable by
            anyone.
    """
    if not worth.values:
        return 0
    values = [[int(max(v, 0.0) * _SCALE) for v in one] for one in worth.values]
    present = sorted({demand.signature[k] for k, count in enumerate(counts) if count})
    over, under = _most_worth(kinds, worth, values, present)
    total = 0
    for index, count in enumerate(counts):
        if count:
            row = values[worth.group[demand.signature[index]]]
            total += count * sum(row[place] * amount for place, amount in demand.amounts(index))
    for room in credit:
        for resource, amount in enumerate(room):
            if amount > 0:
                total -= amount * max(one[resource] for one in values)
    return max(total * under // (over * _SCALE), 0)


def _most_worth(
    kinds: Sequence[Kind],
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


def _make_rows(demand: Demand, counts: Sequence[int], kinds: Sequence[Kind]) -> Rows:
    sums: dict[int, dict[int, int]] = {}
    for index, count in enumerate(counts):
        if count:
            row = sums.setdefault(demand.signature[index], {})
            for place, amount in demand.amounts(index):
                row[place] = row.get(place, 0) + amount * count
    group, masks, merged = _merge(len(demand.masks), sums, kinds)
    keys = [(g, place) for g, row in enumerate(merged) for place in sorted(row)]
    if len(keys) > _MAX_ROWS:
        keys = _most_wanted(keys, merged, kinds)
    resources = sorted({place for _, place in keys})
    by_resource = tuple(
        (place, tuple((g, i) for i, (g, other) in enumerate(keys) if other == place))
        for place in resources
    )
    return Rows(
        group=group,
        keys=tuple(keys),
        amounts=tuple(merged[g][place] for g, place in keys),
        by_resource=by_resource,
        masks=masks,
    )


def _merge(
    signatures: int, sums: dict[int, dict[int, int]], kinds: Sequence[Kind]
) -> tuple[tuple[int, ...], tuple[int, ...], list[dict[int, int]]]:
    """Return signatures by group, groups' masks over kinds and groups' demand.

    Signatures open to the same kinds are one group. When there are too many, those with least
    demand share a group that is open to all their kinds: a weaker bound, still a bound.
    """
    by_mask: dict[int, list[int]] = {}
    for signature in sorted(sums):
        mask = sum(1 << t for t, kind in enumerate(kinds) if kind.signatures >> signature & 1)
        by_mask.setdefault(mask, []).append(signature)
    ranked = sorted(
        by_mask.items(), key=lambda item: (-sum(sums[s].get(0, 0) for s in item[1]), item[1])
    )
    parts = [([mask], many) for mask, many in ranked]
    if len(parts) > _MAX_SIGNATURES:
        rest = parts[_MAX_SIGNATURES - 1 :]
        joined = ([m for masks, _ in rest for m in masks], [s for _, many in rest for s in many])
        parts = [*parts[: _MAX_SIGNATURES - 1], joined]
    group = [0] * signatures
    masks, merged = [], []
    for number, (some, many) in enumerate(parts):
        total: dict[int, int] = {}
        for signature in many:
            group[signature] = number
            for place, amount in sums[signature].items():
                total[place] = total.get(place, 0) + amount
        mask = 0
        for one in some:
            mask |= one
        masks.append(mask)
        merged.append(total)
    return tuple(group), tuple(masks), merged


def _most_wanted(
    keys: list[tuple[int, int]], merged: list[dict[int, int]], kinds: Sequence[Kind]
) -> list[tuple[int, int]]:
    """Return the rows that need most machines: the others are left out, which is still a bound."""
    largest = [max(room) for room in zip(*(kind.room for kind in kinds), strict=True)]
    rank = {key: merged[key[0]][key[1]] / max(largest[key[1]], 1) for key in keys}
    return sorted(sorted(keys, key=lambda key: (-rank[key], key))[:_MAX_ROWS])
