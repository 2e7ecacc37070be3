"""From planned bin types to nodes with options, within the provisioners' limits."""

from collections.abc import Sequence
from math import ceil

from shared.model.resources import Resources
from shared.packing.bin_types import BinType
from shared.packing.priced_problem import Pattern, PricedProblem
from shared.packing.problem import PackedNode, PackingProblem
from shared.packing.purchase.launch_options import GroupOptions, Offers, find_group_options

Limits = dict[str, Resources]


def purchase(
    priced: PricedProblem,
    patterns: Sequence[Pattern],
    offers: Offers,
    limits: Limits,
    *,
    roomy: bool = False,
) -> tuple[list[PackedNode], list[Pattern], Limits]:
    """Return the nodes to buy, the planned nodes that limits refuse, and what is left of limits.

    The largest option of each node counts against its limits. When the limits do not allow for
    every option, options larger than the cheapest one are left out first, then the nodes of the
    lowest value for their price.

    Args:
        priced: Classes and bin types.
        patterns: What to buy.
        offers: All that can be bought.
        limits: Of the provisioners.
        roomy: Whether each option must have the full allocatable of the planned bin type, and not
            only what its pods need; not for use with limits.
    """
    groups: dict[int, list[Pattern]] = {}
    for entry in patterns:
        groups.setdefault(entry.bin_type, []).append(entry)
    options_by_bin_type = {
        bin_type: _options_of(priced, bin_type, groups[bin_type], offers, None)
        for bin_type in sorted(groups)
    }
    if roomy:
        options_by_bin_type = {
            bin_type: _options_as_large(priced, bin_type, groups[bin_type], offers)
            for bin_type in sorted(groups)
        }
    if not limits:
        return _nodes(groups, options_by_bin_type), [], limits
    left = _buy_all(priced, groups, options_by_bin_type, limits)
    if left is not None:
        return _nodes(groups, options_by_bin_type), [], left
    return _buy_within_limits(priced, patterns, offers, limits)


def _options_of(
    priced: PricedProblem,
    bin_type: int,
    patterns: Sequence[Pattern],
    offers: Offers,
    limits_left: Resources | None,
) -> GroupOptions | None:
    most = [0] * len(priced.demand.names)
    signatures = 0
    for entry in patterns:
        needs, some = priced.needs(entry.contents)
        most = [max(a, b) for a, b in zip(most, needs, strict=True)]
        signatures |= some
    return find_group_options(
        offers, most, signatures, priced.bin_types[bin_type].provisioner, limits_left
    )


def _options_as_large(
    priced: PricedProblem, bin_type: int, patterns: Sequence[Pattern], offers: Offers
) -> GroupOptions | None:
    signatures = 0
    for entry in patterns:
        signatures |= priced.needs(entry.contents)[1]
    bought = priced.bin_types[bin_type]
    return find_group_options(offers, bought.allocatable, signatures, bought.provisioner)


def _nodes(
    groups: dict[int, list[Pattern]], options_by_bin_type: dict[int, GroupOptions | None]
) -> list[PackedNode]:
    nodes: list[PackedNode] = []
    for bin_type in sorted(groups):
        group_options = options_by_bin_type[bin_type]
        assert group_options is not None
        for group in groups[bin_type]:
            nodes.extend([_node(group, group_options)] * group.copies)
    return nodes


def _node(pattern: Pattern, group_options: GroupOptions) -> PackedNode:
    return PackedNode(
        node_type=group_options.options[0][0],
        contents=pattern.contents,
        options=group_options.options,
        fallback_options=group_options.fallback,
    )


def _buy_all(
    priced: PricedProblem,
    groups: dict[int, list[Pattern]],
    options_by_bin_type: dict[int, GroupOptions | None],
    limits: Limits,
) -> Limits | None:
    left = dict(limits)
    for bin_type, patterns in groups.items():
        group_options = options_by_bin_type[bin_type]
        provisioner = priced.bin_types[bin_type].provisioner
        if provisioner in left:
            assert group_options is not None
            copies = sum(entry.copies for entry in patterns)
            limits_left = _taken(left[provisioner], group_options.largest.times(copies))
            if limits_left is None:
                return None
            left[provisioner] = limits_left
    return left


def _buy_within_limits(
    priced: PricedProblem, patterns: Sequence[Pattern], offers: Offers, limits: Limits
) -> tuple[list[PackedNode], list[Pattern], Limits]:
    left = dict(limits)
    nodes: list[PackedNode] = []
    refused: list[Pattern] = []
    for item in sorted(
        patterns, key=lambda entry: (_loss(priced, entry), entry.bin_type, entry.contents)
    ):
        provisioner = priced.bin_types[item.bin_type].provisioner
        group_options: GroupOptions | None = None
        for number in range(item.copies):
            limits_left = left.get(provisioner)
            # The options of the last copy are still the best, as long as limits allow them.
            taken = (
                None
                if group_options is None or limits_left is None
                else _taken(limits_left, group_options.largest)
            )
            if group_options is None or (limits_left is not None and taken is None):
                group_options = _cheapest_options(priced, item, offers, limits_left)
                taken = (
                    None
                    if group_options is None or limits_left is None
                    else _taken(limits_left, group_options.largest)
                )
            if group_options is None or (limits_left is not None and taken is None):
                alone = Pattern(bin_type=item.bin_type, contents=item.contents)
                refused.extend([alone] * (item.copies - number))
                break
            if taken is not None:
                left[provisioner] = taken
            nodes.append(_node(item, group_options))
    nodes.sort(key=lambda node: (node.options, node.contents))
    return nodes, refused, left


def _cheapest_options(
    priced: PricedProblem, pattern: Pattern, offers: Offers, limits_left: Resources | None
) -> GroupOptions | None:
    """Return the options within a limit of which none is larger than the cheapest one."""
    group_options = _options_of(priced, pattern.bin_type, [pattern], offers, limits_left)
    if group_options is None or limits_left is None:
        return group_options
    cheapest = offers.problem.node_types[group_options.options[0][0]].capacity
    cap = Resources(tuple((n, min(cheapest[n], max(a, 0))) for n, a in limits_left.items))
    return _options_of(priced, pattern.bin_type, [pattern], offers, cap)


def _loss(priced: PricedProblem, pattern: Pattern) -> float:
    value = sum(priced.values[k] * n for k, n in pattern.contents)
    return -value / priced.prices[pattern.bin_type]


def _taken(limits_left: Resources, amounts: Resources) -> Resources | None:
    """Return the limits less some amounts, zeros kept, or None when they do not allow it."""
    left = tuple((name, max(amount, 0) - amounts[name]) for name, amount in limits_left.items)
    return Resources(left) if all(amount >= 0 for _, amount in left) else None


def within_limits(
    problem: PackingProblem, bin_types: Sequence[BinType], limits: Limits
) -> list[BinType]:
    """Return the bin types with only the node types of which one more is within the limits."""
    found = []
    for bin_type in bin_types:
        limits_left = limits.get(bin_type.provisioner)
        node_types = bin_type.node_types
        if limits_left is not None:
            node_types = tuple(
                index
                for index in node_types
                if all(
                    problem.node_types[index].capacity[name] <= max(amount, 0)
                    for name, amount in limits_left.items
                )
            )
        if node_types:
            price = min(
                problem.node_types[i].offerings[0].price_micros_per_hour for i in node_types
            )
            found.append(bin_type._replace(node_types=node_types, price=price))
    return found


def limits_could_hold(
    problem: PackingProblem,
    bin_types: Sequence[BinType],
    limits: Limits,
    counts: Sequence[int],
) -> list[int]:
    """Return as many pods of each class as the limits could hold, in equal proportion.

    Planning for many more takes long, and the nodes planned last are not bought.
    """
    names = {bin_type.provisioner for bin_type in bin_types}
    part = 1.0
    if all(name in limits for name in names):
        common = set.intersection(*[{name for name, _ in limits[value].items} for value in names])
        for resource in sorted(common):
            limits_left = sum([max(limits[name][resource], 0) for name in names])
            asked = sum([n * problem.classes[k].requests[resource] for k, n in enumerate(counts)])
            part = min(part, limits_left / asked) if asked else part
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
