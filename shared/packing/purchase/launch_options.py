"""The launch options of each planned node: every offering that could replace it, by price.

Nodes of the same bin type share one list, so that one CreateFleet call can launch all of them: the
list has the offerings that hold the largest amounts any of them needs.
"""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct, field

from shared.model.ec2.instance_types import CapacityType
from shared.model.resources import Resources
from shared.packing.bin_types import BinType
from shared.packing.problem import NodeType, PackingProblem

Option = tuple[int, int]


class GroupOptions(NamedTuple):
    """Options and fallback options of a launch group, and the largest capacity of any."""

    options: tuple[Option, ...]
    fallback: tuple[Option, ...]
    largest: Resources


class Offers(Struct, frozen=True, kw_only=True):
    """Everything that can be bought.

    Attributes:
        by_type: By capacity type, each bin type that has it with the price and option of its
            cheapest offering, cheapest first.
    """

    problem: PackingProblem
    by_type: tuple[tuple[CapacityType, tuple[tuple[int, Option, BinType], ...]], ...]
    _priced_options: dict[tuple[str, tuple[int, ...]], list[tuple[int, Option]]] = field(
        default_factory=dict
    )

    def priced_options(
        self, capacity_type: CapacityType, bin_type: BinType
    ) -> list[tuple[int, Option]]:
        """Return (price, option) of all offerings of a bin type, cheapest first.

        Only the few bin types that can replace a planned node need this, so it is computed lazily.
        """
        key = (capacity_type.value, bin_type.node_types)
        known = self._priced_options.get(key)
        if known is None:
            known = sorted(
                (offering.price_micros_per_hour, (index, number))
                for index in bin_type.node_types
                for number, offering in enumerate(self.problem.node_types[index].offerings)
                if offering.capacity_type is capacity_type
            )
            self._priced_options[key] = known
        return known


def list_offers(problem: PackingProblem, bin_types: Sequence[BinType]) -> Offers:
    """Return all offerings of the bin types. Pass all bin types, not only the undominated."""
    found: dict[CapacityType, list[tuple[int, Option, BinType]]] = {}
    for capacity_type in CapacityType:
        some = []
        for bin_type in bin_types:
            firsts = [
                first
                for index in bin_type.node_types
                if (first := _cheapest_offering(problem.node_types[index], index, capacity_type))
            ]
            if firsts:
                some.append((*min(firsts), bin_type))
        if some:
            some.sort(key=lambda entry: entry[:2])
            found[capacity_type] = some
    return Offers(problem=problem, by_type=tuple((t, tuple(found[t])) for t in sorted(found)))


def _cheapest_offering(
    node_type: NodeType, index: int, capacity_type: CapacityType
) -> tuple[int, Option] | None:
    for number, offering in enumerate(node_type.offerings):
        if offering.capacity_type is capacity_type:
            return offering.price_micros_per_hour, (index, number)
    return None


def find_group_options(
    offers: Offers,
    needs: Sequence[int],
    signatures: int,
    provisioner: str,
    limits_left: Resources | None = None,
) -> GroupOptions | None:
    """Return the options for a node that must hold some amounts, or None when there is none.

    Args:
        offers: All that can be bought.
        needs: Amounts by resource.
        signatures: Signatures that must be allowed on it, as a mask.
        provisioner: Of the node.
        limits_left: What its limits still allow for one node; None when there are none.
    """
    lists = []
    for number in range(len(offers.by_type)):
        priced_options = _replacing_options(
            offers, number, needs, signatures, provisioner, limits_left
        )
        if priced_options:
            lists.append(priced_options)
    if not lists:
        return None
    lists.sort(key=lambda priced_options: priced_options[0])
    chosen = [tuple(option for _, option in priced_options) for priced_options in lists]
    fallback = chosen[1] if len(chosen) > 1 else ()
    largest = Resources()
    if provisioner in offers.problem.limits:
        for index in sorted({index for index, _ in (*chosen[0], *fallback)}):
            largest = largest.largest(offers.problem.node_types[index].capacity)
    return GroupOptions(options=chosen[0], fallback=fallback, largest=largest)


def _replacing_options(
    offers: Offers,
    number: int,
    needs: Sequence[int],
    signatures: int,
    provisioner: str,
    limits_left: Resources | None,
) -> list[tuple[int, Option]]:
    cpu, memory, pods = needs[:3]
    rest = [(place, amount) for place, amount in enumerate(needs) if place > 2 and amount]
    problem = offers.problem
    percent = 100 + problem.settings.option_price_ceiling_percent
    capacity_type, some = offers.by_type[number]
    found: list[tuple[int, Option]] = []
    top = 0
    for price, _, bin_type in some:
        if top and price * 100 > top:
            break
        allocatable = bin_type.allocatable
        if (
            cpu > allocatable[0]
            or memory > allocatable[1]
            or pods > allocatable[2]
            or signatures & ~bin_type.signatures
            or bin_type.provisioner != provisioner
            or any(amount > allocatable[place] for place, amount in rest)
        ):
            continue
        priced_options = offers.priced_options(capacity_type, bin_type)
        if limits_left is not None:
            good = {i for i in bin_type.node_types if _within(problem, i, limits_left)}
            priced_options = [
                priced_option for priced_option in priced_options if priced_option[1][0] in good
            ]
        if priced_options:
            top = top or priced_options[0][0] * percent
            found.extend(
                priced_option for priced_option in priced_options if priced_option[0] * 100 <= top
            )
    found.sort()
    return [entry for entry in found if entry[0] * 100 <= found[0][0] * percent][
        : problem.settings.max_options
    ]


def _within(problem: PackingProblem, node_type: int, limits_left: Resources) -> bool:
    capacity = problem.node_types[node_type].capacity
    return all(capacity[name] <= max(amount, 0) for name, amount in limits_left.items)
