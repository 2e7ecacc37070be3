"""The cheapest plan for a handful of pods, by trying them all, and whether a plan keeps its rules.

It knows nothing of the planner. kube-scheduler's rules are written here once more: each pod must be
acceptable at the moment that it is bound, in some order, while all nodes of the plan are there.
Two of them are the planner's choice, since only that decides which nodes exist: each zone in which
the pod could have a node is a domain of its spread, and on a new node a spread over hosts lets in
as many pods as its maxSkew (docs/decisions).

The search puts one pod after the other onto each node of the plan so far, each standing node and a
new node in each zone, and gives up where the nodes alone cost as much as the best plan.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import Final

from tests.property.near.problems import ANY, HOST, ZONE, ZONES, Group, Problem

Counts = tuple[int, ...]  # pods, by group
_NONE: Final = -1


@dataclass(slots=True)
class Machine:
    """A node while it is filled; `standing` is its index among those that stand, or -1.

    Attributes:
        runs: Pods that ran on it before, by group.
        holds: Pods that the plan puts on it, by group.
    """

    zone: str
    pool: str
    runs: Counts
    standing: int = _NONE
    holds: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Best:
    """How many pods are left at least, and what the plan costs then at least, in micro-dollars."""

    left: int
    cost: int


class Search:
    """The search for one problem.

    Attributes:
        buys: Whether zones in which nodes could be bought are domains; where none is bought, only
            those with nodes are.
    """

    def __init__(self, stated: Problem) -> None:
        self.buys = True
        self._stated = stated
        self._groups = stated.groups
        self._rows = [
            (way.zone, room["cpu"], room["memory"], room["pods"], way.price_micros_per_hour)
            for entry in stated.types
            for room in (entry.allocatable,)
            for way in entry.offerings
        ]
        self._rows.sort(key=lambda row: row[-1])
        self._price = cache(self._cheapest)
        self._zones = [self._reach(group) for group in self._groups]

    def best(self) -> Best:
        """Return the best plan: the fewest pods left, then the least price."""
        every = [range(group.pods + 1) for group in self._groups]
        total = sum(group.pods for group in self._groups)
        by_left: dict[int, list[Counts]] = {}
        for counts in product(*every):
            by_left.setdefault(total - sum(counts), []).append(counts)
        for left in sorted(by_left):
            costs = [self._least(counts) for counts in by_left[left]]
            found = [cost for cost in costs if cost is not None]
            if found:
                return Best(left, min(found))
        raise AssertionError("placing no pod is a plan")

    def _reach(self, group: Group) -> frozenset[str]:
        """Return the zones in which such a pod could have a new node."""
        one = tuple(int(other is group) for other in self._groups)
        return frozenset(
            zone
            for zone in self._stated.pools[group.pool]
            if zone in group.zones and self._price(zone, one) is not None
        )

    def _cheapest(self, zone: str, holds: Counts) -> int | None:
        cpu = sum(group.cpu * count for group, count in zip(self._groups, holds, strict=True))
        memory = sum(group.memory * count for group, count in zip(self._groups, holds, strict=True))
        pods = sum(holds)
        for where, cores, bytes_, slots, price in self._rows:
            if where == zone and cpu <= cores and memory <= bytes_ and pods <= slots:
                return price
        return None

    def _least(self, counts: Counts) -> int | None:
        """Return the least cost of a plan for so many pods of each group; None for no plan."""
        self._cost: int | None = None
        machines = self.standing()
        todo = [index for index, count in enumerate(counts) for _ in range(count)]
        self._fill(machines, todo, 0, 0)
        return self._cost

    def _fill(self, machines: list[Machine], todo: Sequence[int], at: int, first: int) -> None:
        """Put the pods from `at` on somewhere; equal pods are put on nodes in their order."""
        if at == len(todo):
            cost = self._cost_of(machines)
            if (self._cost is None or cost < self._cost) and self._in_some_order(machines):
                self._cost = cost
            return
        index = todo[at]
        start = first if at and todo[at - 1] == index else 0
        for number in range(start, len(machines)):
            machine = machines[number]
            if self._may_hold(machines, machine, index):
                machine.holds[index] += 1
                if self._is_hopeful(machines, machine, todo[at + 1 :], index):
                    self._fill(machines, todo, at + 1, number)
                machine.holds[index] -= 1
        pool = self._groups[index].pool
        for zone in self._stated.pools[pool]:
            machine = self.new(zone, pool)
            machines.append(machine)
            if self._may_hold(machines, machine, index):
                machine.holds[index] += 1
                if self._is_hopeful(machines, machine, todo[at + 1 :], index):
                    self._fill(machines, todo, at + 1, len(machines) - 1)
            machines.pop()

    def standing(self) -> list[Machine]:
        """Return the nodes that stand, without pods of the plan."""
        return [
            Machine(node.zone, ANY, node.runs, number, [0] * len(node.runs))
            for number, node in enumerate(self._stated.standing)
        ]

    def new(self, zone: str, pool: str) -> Machine:
        """Return a new node without pods."""
        none = (0,) * len(self._groups)
        return Machine(zone, pool, none, _NONE, [0] * len(none))

    def _cost_of(self, machines: Sequence[Machine]) -> int:
        costs = [
            self._price(machine.zone, tuple(machine.holds))
            for machine in machines
            if machine.standing == _NONE
        ]
        return sum(cost for cost in costs if cost is not None)

    def _is_hopeful(
        self, machines: Sequence[Machine], changed: Machine, todo: Sequence[int], index: int
    ) -> bool:
        """Return whether the plan so far may become the best.

        Args:
            machines: Its nodes.
            changed: The one that got a pod.
            todo: The groups of the pods to come.
            index: The group of the pod that it got.
        """
        if not self.holds(changed):
            return False
        if self._cost is not None and self._cost_of(machines) >= self._cost:
            return False
        return self._can_get_even(machines, todo, index)

    def holds(self, machine: Machine) -> bool:
        """Return whether a machine, a new one of any type, has room for its pods."""
        if machine.standing == _NONE:
            return self._price(machine.zone, tuple(machine.holds)) is not None
        node = self._stated.standing[machine.standing]
        pairs = list(zip(self._groups, machine.holds, strict=True))
        return (
            sum(group.cpu * count for group, count in pairs) <= node.cpu
            and sum(group.memory * count for group, count in pairs) <= node.memory
        )

    def _may_hold(self, machines: Sequence[Machine], machine: Machine, index: int) -> bool:
        """Return whether one more pod may be there in the end, whatever the order of binding.

        Groups ask for pods of groups before them, which are all placed by then, or for their own.
        """
        group = self._groups[index]
        if machine.zone not in group.zones or machine.pool != group.pool:
            return False
        if self._is_apart(machines, machine, index):
            return False
        return all(
            other == index or self._in_domain(machines, machine, key, other)
            for key, other in group.near
        )

    def _can_get_even(self, machines: Sequence[Machine], todo: Sequence[int], index: int) -> bool:
        """Return whether the pods to come can fill the domains that are too empty for a group."""
        machines = self._eligible(machines, index)
        for key, skew, counted in self._groups[index].spreads:
            coming = sum(one in counted for one in todo)
            if key == ZONE:
                domains = [
                    [machine for machine in machines if machine.zone == zone]
                    for zone in self._zones[index]
                ]
            else:
                domains = [[entry] for entry in machines if entry.standing != _NONE]
                new = [entry for entry in machines if entry.standing == _NONE]
                if any(entry.holds[index] > skew for entry in new):
                    return False
            own = int(index in counted)
            there = [self._there(domain, counted) for domain in domains]
            judged = [
                self._there(domain, counted)
                - sum(entry.holds[one] for entry in domain for one in counted if one != index)
                for domain in domains
                if any(entry.holds[index] for entry in domain)
            ]
            floor = max(judged, default=0) - (1 - own) - skew
            if own and sum(max(floor - count, 0) for count in there) > coming:
                return False
        return True

    def _eligible(self, machines: Sequence[Machine], index: int) -> list[Machine]:
        """Return the machines that the spreads of a group look at: node selectors count."""
        group = self._groups[index]
        selected = ZONES if group.by_volume else group.zones
        return [
            entry
            for entry in machines
            if group.pool in (ANY, entry.pool) and entry.zone in selected
        ]

    @staticmethod
    def _there(machines: Sequence[Machine], counted: Sequence[int]) -> int:
        return sum(entry.runs[one] + entry.holds[one] for entry in machines for one in counted)

    def _is_apart(self, machines: Sequence[Machine], machine: Machine, index: int) -> bool:
        """Return whether anti-affinity, its own or another's, keeps a pod away."""
        pairs = [(key, other) for key, other in self._groups[index].apart]
        pairs += [
            (key, owner)
            for owner, other_group in enumerate(self._groups)
            for key, target in other_group.apart
            if target == index
        ]
        return any(self._in_domain(machines, machine, key, other) for key, other in pairs)

    @staticmethod
    def _in_domain(machines: Sequence[Machine], machine: Machine, key: str, index: int) -> int:
        """Return how many pods of a group are in the domain of a machine."""
        return sum(
            other.runs[index] + other.holds[index]
            for other in ([machine] if key == HOST else machines)
            if other.zone == machine.zone
        )

    def _in_some_order(self, machines: Sequence[Machine]) -> bool:
        """Return whether the pods can be bound one after the other, each of them accepted."""
        used = [machine for machine in machines if machine.standing != _NONE or any(machine.holds)]
        goal = tuple(tuple(machine.holds) for machine in used)
        now = [
            Machine(entry.zone, entry.pool, entry.runs, entry.standing, [0] * len(entry.holds))
            for entry in used
        ]
        seen: set[tuple[tuple[int, ...], ...]] = set()

        def go() -> bool:
            state = tuple(tuple(machine.holds) for machine in now)
            if state == goal:
                return True
            if state in seen:
                return False
            seen.add(state)
            for machine, wanted in zip(now, goal, strict=True):
                for index, count in enumerate(wanted):
                    if machine.holds[index] < count and self.accepts(now, machine, index):
                        machine.holds[index] += 1
                        if go():
                            return True
                        machine.holds[index] -= 1
            return False

        return go()

    def accepts(self, machines: Sequence[Machine], machine: Machine, index: int) -> bool:
        """Return whether kube-scheduler would bind a pod to a machine now."""
        group = self._groups[index]
        if machine.zone not in group.zones or machine.pool != group.pool:
            return False
        if self._is_apart(machines, machine, index):
            return False
        for key, other in group.near:
            near = self._in_domain(machines, machine, key, other)
            anywhere = any(entry.runs[other] + entry.holds[other] for entry in machines)
            if not near and not (other == index and not anywhere):
                return False
        return all(self._is_even(machines, machine, index, spread) for spread in group.spreads)

    def _is_even(
        self,
        machines: Sequence[Machine],
        machine: Machine,
        index: int,
        spread: tuple[str, int, tuple[int, ...]],
    ) -> bool:
        key, skew, counted = spread
        group = self._groups[index]
        selected = ZONES if group.by_volume else group.zones
        eligible = [
            entry
            for entry in machines
            if group.pool in (ANY, entry.pool) and entry.zone in selected
        ]
        own = int(index in counted)
        if key == ZONE:
            counts = {
                zone: self._there([entry for entry in eligible if entry.zone == zone], counted)
                for zone in {
                    *(self._zones[index] if self.buys else ()),
                    *(entry.zone for entry in eligible),
                }
            }
            return counts[machine.zone] + own - min(counts.values()) <= skew
        floor = min(self._there([entry], counted) for entry in eligible)
        if machine.standing == _NONE:
            floor = 0
        return self._there([machine], counted) + own - floor <= skew
