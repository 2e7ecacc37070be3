"""From planned kinds to nodes with options, within the provisioners' limits."""

from collections.abc import Sequence
from math import ceil

from shared.model.resources import Resources
from shared.packing.machine_kinds import MachineKind
from shared.packing.priced_problem import Planned, PricedProblem
from shared.packing.problem import PackedNode, PackingProblem
from shared.packing.purchase.launch_options import Offers, Ways, find_ways

Limits = dict[str, Resources]


def purchase(
    priced: PricedProblem,
    plan: Sequence[Planned],
    offers: Offers,
    limits: Limits,
    *,
    roomy: bool = False,
) -> tuple[list[PackedNode], list[Planned], Limits]:
    """Return the nodes to buy, the planned nodes that limits refuse, and what is left of limits.

    Each node takes the largest of its options off its limits. When the limits do not allow for
    every option, options larger than the cheapest one are left out first, then the nodes that
    return least for their price.

    Args:
        priced: Classes and kinds.
        plan: What to buy.
        offers: All that can be bought.
        limits: Of the provisioners.
        roomy: Whether each option must have all the room of the kind that was planned, and not
            only what its pods need; not for use with limits.
    """
    groups: dict[int, list[Planned]] = {}
    for entry in plan:
        groups.setdefault(entry.kind, []).append(entry)
    ways = {kind: _ways_of(priced, kind, groups[kind], offers, None) for kind in sorted(groups)}
    if roomy:
        ways = {kind: _ways_as_large(priced, kind, groups[kind], offers) for kind in sorted(groups)}
    if not limits:
        return _nodes(groups, ways), [], limits
    left = _take_all(priced, groups, ways, limits)
    if left is not None:
        return _nodes(groups, ways), [], left
    return _take_what_fits(priced, plan, offers, limits)


def _ways_of(
    priced: PricedProblem,
    kind: int,
    planned: Sequence[Planned],
    offers: Offers,
    room: Resources | None,
) -> Ways | None:
    most = [0] * len(priced.demand.names)
    signatures = 0
    for entry in planned:
        needs, some = priced.needs(entry.contents)
        most = [max(a, b) for a, b in zip(most, needs, strict=True)]
        signatures |= some
    return find_ways(offers, most, signatures, priced.kinds[kind].provisioner, room)


def _ways_as_large(
    priced: PricedProblem, kind: int, planned: Sequence[Planned], offers: Offers
) -> Ways | None:
    signatures = 0
    for entry in planned:
        signatures |= priced.needs(entry.contents)[1]
    bought = priced.kinds[kind]
    return find_ways(offers, bought.room, signatures, bought.provisioner)


def _nodes(groups: dict[int, list[Planned]], ways: dict[int, Ways | None]) -> list[PackedNode]:
    nodes: list[PackedNode] = []
    for kind in sorted(groups):
        way = ways[kind]
        assert way is not None
        for group in groups[kind]:
            nodes.extend([_node(group, way)] * group.copies)
    return nodes


def _node(other_planned: Planned, way: Ways) -> PackedNode:
    return PackedNode(
        shape=way.options[0][0],
        contents=other_planned.contents,
        options=way.options,
        fallback_options=way.fallback,
    )


def _take_all(
    priced: PricedProblem,
    groups: dict[int, list[Planned]],
    ways: dict[int, Ways | None],
    limits: Limits,
) -> Limits | None:
    left = dict(limits)
    for kind, planned in groups.items():
        way = ways[kind]
        provisioner = priced.kinds[kind].provisioner
        if provisioner in left:
            assert way is not None
            copies = sum(entry.copies for entry in planned)
            room = _taken(left[provisioner], way.largest.times(copies))
            if room is None:
                return None
            left[provisioner] = room
    return left


def _take_what_fits(
    priced: PricedProblem, plan: Sequence[Planned], offers: Offers, limits: Limits
) -> tuple[list[PackedNode], list[Planned], Limits]:
    left = dict(limits)
    nodes: list[PackedNode] = []
    refused: list[Planned] = []
    for item in sorted(plan, key=lambda entry: (_loss(priced, entry), entry.kind, entry.contents)):
        provisioner = priced.kinds[item.kind].provisioner
        way: Ways | None = None
        for number in range(item.copies):
            room = left.get(provisioner)
            # What was bought for the last copy is the best still, as long as it fits.
            taken = None if way is None or room is None else _taken(room, way.largest)
            if way is None or (room is not None and taken is None):
                way = _cheapest_ways(priced, item, offers, room)
                taken = None if way is None or room is None else _taken(room, way.largest)
            if way is None or (room is not None and taken is None):
                alone = Planned(kind=item.kind, contents=item.contents)
                refused.extend([alone] * (item.copies - number))
                break
            if taken is not None:
                left[provisioner] = taken
            nodes.append(_node(item, way))
    nodes.sort(key=lambda node: (node.options, node.contents))
    return nodes, refused, left


def _cheapest_ways(
    priced: PricedProblem, other_planned: Planned, offers: Offers, room: Resources | None
) -> Ways | None:
    """Return the ways within a limit of which none is larger than the cheapest one."""
    way = _ways_of(priced, other_planned.kind, [other_planned], offers, room)
    if way is None or room is None:
        return way
    cheapest = offers.problem.shapes[way.options[0][0]].capacity
    cap = Resources(tuple((n, min(cheapest[n], max(a, 0))) for n, a in room.items))
    return _ways_of(priced, other_planned.kind, [other_planned], offers, cap)


def _loss(priced: PricedProblem, other_planned: Planned) -> float:
    value = sum(priced.values[k] * n for k, n in other_planned.contents)
    return -value / priced.prices[other_planned.kind]


def _taken(room: Resources, amounts: Resources) -> Resources | None:
    """Return the limits less some amounts, zeros kept, or None when they do not allow it."""
    left = tuple((name, max(amount, 0) - amounts[name]) for name, amount in room.items)
    return Resources(left) if all(amount >= 0 for _, amount in left) else None


def within_limits(
    problem: PackingProblem, kinds: Sequence[MachineKind], limits: Limits
) -> list[MachineKind]:
    """Return the kinds with the shapes alone of which one more is within the limits."""
    found = []
    for kind in kinds:
        room = limits.get(kind.provisioner)
        shapes = kind.shapes
        if room is not None:
            shapes = tuple(
                index
                for index in shapes
                if all(
                    problem.shapes[index].capacity[name] <= max(amount, 0)
                    for name, amount in room.items
                )
            )
        if shapes:
            price = min(problem.shapes[i].pools[0].price_micros_per_hour for i in shapes)
            found.append(kind._replace(shapes=shapes, price=price))
    return found


def could_be_held(
    problem: PackingProblem,
    kinds: Sequence[MachineKind],
    limits: Limits,
    counts: Sequence[int],
) -> list[int]:
    """Return as many pods of each class as the limits could have room for, in equal parts.

    To plan for many more than that takes long, and the nodes planned last are not bought.
    """
    names = {kind.provisioner for kind in kinds}
    part = 1.0
    if all(name in limits for name in names):
        common = set.intersection(*[{name for name, _ in limits[value].items} for value in names])
        for resource in sorted(common):
            room = sum([max(limits[name][resource], 0) for name in names])
            asked = sum([n * problem.classes[k].requests[resource] for k, n in enumerate(counts)])
            part = min(part, room / asked) if asked else part
    if part == 1.0:
        return list(counts)
    total = given = 0
    some = []
    for count in counts:
        total += count
        share = ceil(total * part) - given
        some.append(share)
        given += share
    return some
