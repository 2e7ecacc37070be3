"""Ports of two published procedures, as baselines: what they buy, not how fast they are.

Written from descriptions of Karpenter's v0.6 packer and v1 scheduler. Identical pods are handled
in batches, which does not change the result.
"""

import heapq
from dataclasses import dataclass, field

from shared.model.resources import Resources
from shared.packing.problem import PackingProblem


@dataclass
class _Table:
    names: list[str]
    requests: list[list[int]]
    rooms: list[list[int]]
    prices: list[int]
    usable: list[list[int]]


def _read(problem: PackingProblem) -> _Table:
    names = sorted({name for pod_class in problem.classes for name in pod_class.requests})
    shapes = problem.shapes
    return _Table(
        names=names,
        requests=[[pod_class.requests[name] for name in names] for pod_class in problem.classes],
        rooms=[_amounts(shape.allocatable, names) for shape in shapes],
        prices=[shape.pools[0].price_micros_per_hour for shape in shapes],
        usable=[[i for i in range(len(shapes)) if mask >> i & 1] for mask in problem.compatible],
    )


def _amounts(room: Resources, names: list[str]) -> list[int]:
    amounts = dict(room.items)
    return [max(amounts.get(name, 0), 0) for name in names]


def _fitting(room: list[int], used: list[int], request: list[int]) -> int:
    return min((r - u) // q for r, u, q in zip(room, used, request, strict=True) if q)


def _order(problem: PackingProblem) -> list[int]:
    return sorted(
        range(len(problem.classes)),
        key=lambda k: (
            -problem.classes[k].requests["cpu"],
            -problem.classes[k].requests["memory"],
            k,
        ),
    )


@dataclass
class _InFlight:
    number: int
    types: list[int]
    used: list[int]
    pods: int = 0
    contents: dict[int, int] = field(default_factory=dict)


def v1(problem: PackingProblem, existing: list[Resources] | None = None) -> tuple[int, int, int]:
    """Return price, nodes and pods left out of the v1 scheduler: emptiest node first.

    Pods by falling cpu, then memory, one at a time; each node keeps the types that still fit,
    the cheapest of which is bought.
    Pods that fit nothing are left out. Existing nodes, given by their room, come first, in order;
    what is placed is taken off and what is bought is appended with the room left on it.
    """
    table = _read(problem)
    nodes: list[_InFlight] = []
    left_out = 0
    for k in _order(problem):
        request, left = table.requests[k], problem.classes[k].count
        usable = set(table.usable[k])
        left -= _place(problem, table, existing or [], (k, left))
        waiting = [(node.pods, node.number) for node in nodes]
        heapq.heapify(waiting)
        while left:
            if not waiting:
                types = [
                    t
                    for t in table.usable[k]
                    if _fitting(table.rooms[t], [0] * len(request), request) > 0
                ]
                if not types:
                    left_out += left
                    break
                node = _InFlight(len(nodes), types, [0] * len(request))
                nodes.append(node)
                waiting = [(0, node.number)]
            pods, number = heapq.heappop(waiting)
            node = nodes[number]
            fits = {
                t: _fitting(table.rooms[t], node.used, request) for t in node.types if t in usable
            }
            most = max(fits.values(), default=0)
            if most <= 0:
                continue
            turn = left
            if waiting:
                turn = waiting[0][0] - pods + (1 if number < waiting[0][1] else 0)
            n = min(max(turn, 1), most, left)
            node.types = [t for t, many in fits.items() if many >= n]
            node.used = [u + n * q for u, q in zip(node.used, request, strict=True)]
            node.pods += n
            left -= n
            heapq.heappush(waiting, (node.pods, number))
    price = sum(min(table.prices[t] for t in node.types) for node in nodes)
    if existing is not None:
        existing.extend(_room_left(problem, table, node) for node in nodes)
    return price, len(nodes), left_out


def _place(
    problem: PackingProblem, table: _Table, existing: list[Resources], wanted: tuple[int, int]
) -> int:
    k, left = wanted
    request = table.requests[k]
    for number, room in enumerate(existing):
        free = _amounts(room, table.names)
        n = min(left, max(_fitting(free, [0] * len(request), request), 0))
        if n:
            existing[number] = room - problem.classes[k].requests.times(n)
            left -= n
    return wanted[1] - left


def _room_left(problem: PackingProblem, table: _Table, node: _InFlight) -> Resources:
    kind = min(node.types, key=lambda t: (table.prices[t], t))
    used = Resources.from_mapping(dict(zip(table.names, node.used, strict=True)))
    return problem.shapes[kind].allocatable - used


def v06(problem: PackingProblem) -> tuple[int, int, int]:
    """Return price, nodes and pods left out of the v0.6 packer: fill the largest type first.

    Pods of different constraints never share a node; a node becomes the cheapest of at most twenty
    types from the first that takes as many pods as the last one.
    """
    table = _read(problem)
    place = {name: i for i, name in enumerate(table.names)}
    groups: dict[tuple[int, bool], list[int]] = {}
    for k in _order(problem):
        gpu = problem.classes[k].requests["nvidia.com/gpu"] > 0
        groups.setdefault((problem.compatible[k], gpu), []).append(k)
    price = nodes = left_out = 0
    for (mask, gpu), classes in groups.items():
        types = [
            t
            for t, shape in enumerate(problem.shapes)
            if mask >> t & 1 and (shape.capacity["nvidia.com/gpu"] > 0) == gpu
        ]
        types.sort(key=lambda t: (problem.shapes[t].vcpus, table.rooms[t][place["memory"]], t))
        counts = {k: problem.classes[k].count for k in classes}
        if not types:
            left_out += sum(counts.values())
        while any(counts.values()) and types:
            packed = _fill(table, types[-1], counts)
            target = sum(packed.values())
            if not target:
                counts[next(k for k in counts if counts[k])] -= 1
                left_out += 1
                continue
            at, packed = next(
                (i, found)
                for i, t in enumerate(types)
                if sum((found := _fill(table, t, counts)).values()) == target
            )
            first = table.rooms[types[at]]
            options = [
                t
                for t in types[at : at + 20]
                if table.rooms[t][place["memory"]] >= first[place["memory"]]
                and table.rooms[t][place["pods"]] >= first[place["pods"]]
                and all(a >= b for a, b in zip(table.rooms[t], _total(table, packed), strict=True))
            ]
            copies = max(min(counts[k] // n for k, n in packed.items()), 1)
            if any(counts[k] > n * copies for k, n in packed.items()) and copies > 1:
                copies -= 1
            if len(packed) > 1:
                copies = 1
            price += copies * min(table.prices[t] for t in options)
            nodes += copies
            for k, n in packed.items():
                counts[k] -= n * copies
    return price, nodes, left_out


def _total(table: _Table, packed: dict[int, int]) -> list[int]:
    """Return what pods take together (the port does not buy types that could not hold them)."""
    return [
        sum(n * table.requests[k][i] for k, n in packed.items()) for i in range(len(table.names))
    ]


def _fill(table: _Table, kind: int, counts: dict[int, int]) -> dict[int, int]:
    room = table.rooms[kind]
    used = [0] * len(room)
    present = [k for k, count in counts.items() if count]
    smallest = table.requests[present[-1]]
    packed: dict[int, int] = {}
    for k in present:
        n = min(counts[k], max(_fitting(room, used, table.requests[k]), 0))
        if n:
            packed[k] = n
            used = [u + n * q for u, q in zip(used, table.requests[k], strict=True)]
        if n == counts[k]:
            continue
        if any(r and u + q >= r for r, u, q in zip(room, used, smallest, strict=True)):
            break
        if not packed:
            return {}
    return packed
