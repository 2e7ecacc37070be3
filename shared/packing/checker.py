"""The checker: a second opinion on whether a plan may be applied.

Imports neither the packer nor anything it uses, and reads amounts by name instead of by position,
so that a mistake made there is not repeated here. Linear in the size of the plan.
"""

from collections.abc import Iterable, Iterator

from shared.model.resources import Resources
from shared.packing.problem import (
    LIMIT,
    NO_NODE_TYPE,
    NodeType,
    PackedNode,
    Packing,
    PackingProblem,
    cap_is_too_dear,
)

Contents = tuple[tuple[int, int], ...]


def check(problem: PackingProblem, packing: Packing) -> tuple[str, ...]:
    """Return what is wrong with the plan, one sentence each; empty when it may be applied."""
    wrong = [*_malformed(problem, packing)]
    if wrong:
        # Invalid indexes would make all other checks fail.
        return tuple(wrong)
    wrong.extend(_miscounted(problem, packing))
    wrong.extend(_overfull_bins(problem, packing))
    cap_holds = not packing.within_cap_micros_per_hour
    allowed = _allowed_node_types(problem, problem.settings.max_node_vcpus if cap_holds else 0)
    wrong.extend(_bad_nodes(problem, packing.nodes, allowed))
    wrong.extend(_over_limits(problem, packing.nodes))
    wrong.extend(_wrong_reasons(problem, packing, allowed))
    wrong.extend(_wrong_cost(problem, packing))
    return tuple(wrong)


def _malformed(problem: PackingProblem, packing: Packing) -> Iterator[str]:
    classes, node_types = len(problem.classes), problem.node_types
    sound: set[int] = set()
    for number, node in _each_once(packing.nodes):
        if not node.options:
            yield f"node {number}: has no options"
        for options in (node.options, node.fallback_options):
            # Nodes of a launch group share one list, which is checked once.
            if id(options) in sound:
                continue
            bad = [option for option in options if not _exists(node_types, option)]
            yield from (
                f"node {number}: option {i}/{offering_index} does not exist"
                for i, offering_index in bad
            )
            if not bad:
                sound.add(id(options))
        yield from (f"node {number}: {text}" for text in _bad_contents(node.contents, classes))
    bins = [index for index, _ in packing.placements]
    if len(set(bins)) != len(bins):
        yield "a bin is named twice"
    for index, contents in packing.placements:
        if not 0 <= index < len(problem.bins):
            yield f"bin {index} does not exist"
        yield from (f"bin {index}: {text}" for text in _bad_contents(contents, classes))
    left_out = tuple((index, count) for index, count, _ in packing.unplaced)
    if left_out:
        yield from (f"unplaced: {text}" for text in _bad_contents(left_out, classes))


def _each_once(nodes: Iterable[PackedNode]) -> Iterator[tuple[int, PackedNode]]:
    """Yield the nodes with their numbers; copies are one object and come once."""
    seen: set[int] = set()
    for number, node in enumerate(nodes):
        if id(node) not in seen:
            seen.add(id(node))
            yield number, node


def _exists(node_types: tuple[NodeType, ...], option: tuple[int, int]) -> bool:
    node_type, offering_index = option
    return 0 <= node_type < len(node_types) and 0 <= offering_index < len(
        node_types[node_type].offerings
    )


def _bad_contents(contents: Contents, classes: int) -> Iterator[str]:
    if not contents:
        yield "is empty"
    for index, count in contents:
        if not 0 <= index < classes:
            yield f"class {index} does not exist"
        if count <= 0:
            yield f"class {index} has count {count}"


def _miscounted(problem: PackingProblem, packing: Packing) -> Iterator[str]:
    seen = [0] * len(problem.classes)
    for node in packing.nodes:
        for index, count in node.contents:
            seen[index] += count
    for _, contents in packing.placements:
        for index, count in contents:
            seen[index] += count
    for index, count, _ in packing.unplaced:
        seen[index] += count
    for index, pod_class in enumerate(problem.classes):
        if seen[index] != pod_class.count:
            yield f"class {index}: {seen[index]} pods are planned, {pod_class.count} are there"


def _overfull_bins(problem: PackingProblem, packing: Packing) -> Iterator[str]:
    for index, contents in packing.placements:
        where = f"bin {index}"
        used = _total(problem, contents)
        for name in used.exceeding(problem.bins[index]):
            yield f"{where}: too much {name}"
        for value, _ in contents:
            if not problem.compatible_bins[value] >> index & 1:
                yield f"{where}: class {value} may not run there"


def _bad_nodes(
    problem: PackingProblem, nodes: Iterable[PackedNode], allowed: frozenset[int]
) -> Iterator[str]:
    """Check each distinct node once: large plans hold many copies."""
    groups: dict[tuple[object, ...], tuple[str, ...]] = {}
    for number, node in _each_once(nodes):
        if node.node_type != node.options[0][0]:
            yield f"node {number}: the planned shape is not the first option's"
        group = (node.options, node.fallback_options)
        if group not in groups:
            groups[group] = tuple(_bad_group(problem, node, allowed))
        yield from (f"node {number}: {text}" for text in groups[group])
        yield from (f"node {number}: {text}" for text in _overfull(problem, node))


def _bad_group(problem: PackingProblem, node: PackedNode, allowed: frozenset[int]) -> Iterator[str]:
    yield from _bad_options(problem, node.options, "options")
    yield from _bad_options(problem, node.fallback_options, "fallback options")
    bin_types = {_capacity_type(problem, option) for option in node.options}
    if bin_types & {_capacity_type(problem, option) for option in node.fallback_options}:
        yield "fallback options are of the options' capacity type"
    node_types = sorted({node_type for node_type, _ in (*node.options, *node.fallback_options)})
    if len({problem.node_types[node_type].provisioner for node_type in node_types}) > 1:
        yield "options are of several provisioners"
    for node_type in node_types:
        if node_type not in allowed:
            yield f"{problem.node_types[node_type].instance_type} is above the cap on node size"


def _overfull(problem: PackingProblem, node: PackedNode) -> Iterator[str]:
    used = _total(problem, node.contents)
    joint = -1
    for value, _ in node.contents:
        joint &= problem.compatible[value]
    for node_type in sorted(
        {node_type for node_type, _ in (*node.options, *node.fallback_options)}
    ):
        what = problem.node_types[node_type].instance_type
        for name in used.exceeding(problem.node_types[node_type].allocatable):
            yield f"{what} has too little {name}"
        if not joint >> node_type & 1:
            yield f"some of the classes may not run on {what}"


def _bad_options(
    problem: PackingProblem, options: tuple[tuple[int, int], ...], name: str
) -> Iterator[str]:
    if not options:
        return
    settings = problem.settings
    prices = [_price(problem, option) for option in options]
    if prices != sorted(prices):
        yield f"{name} are not cheapest first"
    if max(prices) * 100 > prices[0] * (100 + settings.option_price_ceiling_percent):
        yield f"{name} go above the price ceiling"
    if len(options) > settings.max_options:
        yield f"more than {settings.max_options} {name}"
    if len(set(options)) != len(options):
        yield f"{name} name a pool twice"
    if len({_capacity_type(problem, option) for option in options}) > 1:
        yield f"{name} are of several capacity types"


def _over_limits(problem: PackingProblem, nodes: Iterable[PackedNode]) -> Iterator[str]:
    reserved: dict[str, dict[str, int]] = {}
    for node in nodes:
        provisioner = problem.node_types[node.node_type].provisioner
        if provisioner not in problem.limits:
            continue
        used_types = {node_type for node_type, _ in (*node.options, *node.fallback_options)}
        most = Resources()
        for node_type in sorted(used_types):
            most = most.largest(problem.node_types[node_type].capacity)
        sums = reserved.setdefault(provisioner, {})
        for name, amount in most.items:
            sums[name] = sums.get(name, 0) + amount
    for provisioner, sums in sorted(reserved.items()):
        for name, ceiling in problem.limits[provisioner].items:
            if sums.get(name, 0) > max(ceiling, 0):
                yield f"provisioner {provisioner}: {name} goes above its limit"


def _wrong_reasons(
    problem: PackingProblem, packing: Packing, allowed: frozenset[int]
) -> Iterator[str]:
    for index, _, reason in packing.unplaced:
        holders = [
            node_type
            for number, node_type in enumerate(problem.node_types)
            if number in allowed and _holds(problem, index, number, node_type)
        ]
        if reason == NO_NODE_TYPE and holders:
            yield f"class {index}: {holders[0].instance_type} would hold it"
        elif reason == LIMIT and not any(
            holder.provisioner in problem.limits for holder in holders
        ):
            yield f"class {index}: no limit is in the way"
        elif reason not in (NO_NODE_TYPE, LIMIT):
            yield f"class {index}: {reason!r} is no reason"


def _wrong_cost(problem: PackingProblem, packing: Packing) -> Iterator[str]:
    cost = sum(_price(problem, node.options[0]) for node in packing.nodes)
    if packing.cost_micros_per_hour != cost:
        yield f"the nodes cost {cost}, not {packing.cost_micros_per_hour}"
    if not 0 <= packing.lower_bound_micros_per_hour <= cost:
        yield f"the lower bound {packing.lower_bound_micros_per_hour} is not within 0 and the cost"
    within_cap = packing.within_cap_micros_per_hour
    if within_cap and not cap_is_too_dear(within_cap, cost):
        yield f"the cap on node size gave way to save {within_cap - cost}"


def _allowed_node_types(problem: PackingProblem, cap: int) -> frozenset[int]:
    """Return the node types within a cap on node size, and the smallest that larger pods need."""
    node_types = problem.node_types
    within = {i for i, node_type in enumerate(node_types) if cap == 0 or node_type.vcpus <= cap}
    if len(within) == len(node_types):
        return frozenset(within)
    allowed = set(within)
    for index, pod_class in enumerate(problem.classes):
        if pod_class.count == 0 or any(_holds(problem, index, i, node_types[i]) for i in within):
            continue
        holders = [
            i for i, node_type in enumerate(node_types) if _holds(problem, index, i, node_type)
        ]
        least = min((node_types[i].vcpus for i in holders), default=0)
        allowed.update(i for i in holders if node_types[i].vcpus == least)
    return frozenset(allowed)


def _holds(problem: PackingProblem, index: int, number: int, node_type: NodeType) -> bool:
    mask = problem.compatible[index]
    return bool(mask >> number & 1) and problem.classes[index].requests.fits(node_type.allocatable)


def _total(problem: PackingProblem, contents: Contents) -> Resources:
    sums: dict[str, int] = {}
    for index, count in contents:
        for name, amount in problem.classes[index].requests.items:
            sums[name] = sums.get(name, 0) + amount * count
    return Resources.from_mapping(sums)


def _price(problem: PackingProblem, option: tuple[int, int]) -> int:
    return problem.node_types[option[0]].offerings[option[1]].price_micros_per_hour


def _capacity_type(problem: PackingProblem, option: tuple[int, int]) -> str:
    return problem.node_types[option[0]].offerings[option[1]].capacity_type.value
