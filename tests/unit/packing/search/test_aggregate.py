"""Zones and slots: what is alike is planned as one, and pods are seated afterwards."""

from typing import Any

import pytest

from shared.model.values import replace
from shared.packing.bin_types import find_bin_types, undominated
from shared.packing.bound.resource_prices import find_prices
from shared.packing.demand import read_demand
from shared.packing.packer import pack
from shared.packing.pooling import alike_signatures, pooled_amounts, pooled_pseudo_resources
from shared.packing.priced_problem import Pattern, PricedProblem, price_problem
from shared.packing.problem import ItemClass, NodeType, PackingProblem, PackingSettings
from shared.packing.search.aggregate import aggregate
from shared.packing.search.disaggregate import disaggregate
from shared.packing.usable_capacity import amounts_of
from tests.unit.packing.packing_cases import PLAIN, good, pod, problem, shape

ZONES = ("a", "b", "c")
SIZES = ((100, 0.2), (250, 0.5), (400, 2.0), (900, 1.0), (1300, 3.5))


def zoned(
    slots: int = 6, dearer: int = 0, zones: tuple[str, ...] = ZONES
) -> tuple[tuple[NodeType, ...], tuple[int, ...]]:
    """Return small machines in each zone, and the mask of each zone and of all."""
    room: dict[str, Any] = {f"slot__{n}": 1 for n in range(slots)}
    shapes = tuple(
        shape(f"{name}.{zone}", price + dearer * place, cores=c, gib=g, zones=(zone,), **room)
        for name, price, c, g in (
            ("c.large", 80_000, 2, 4),
            ("m.large", 96_000, 2, 8),
            ("c.xlarge", 160_000, 4, 8),
            ("m.xlarge", 192_000, 4, 16),
            ("c.2xlarge", 320_000, 8, 16),
        )
        for place, zone in enumerate(zones)
    )
    masks = [
        sum(
            1 << i
            for i, other_shape in enumerate(shapes)
            if other_shape.instance_type.endswith(zone)
        )
        for zone in zones
    ]
    return shapes, (*masks, sum(masks))


def topology(pods: int = 6, **changes: Any) -> PackingProblem:
    """Return pods spread over zones, kept apart on hosts, or free, of a few sizes."""
    shapes, masks = zoned()
    classes: list[ItemClass] = []
    compatible: list[int] = []
    for number, (cpu, gib) in enumerate(SIZES):
        for zone in range(3):
            classes.append(pod(cpu, gib, pods + number))
            compatible.append(masks[zone])
        classes.extend(
            (
                pod(cpu, gib, 4 * pods, slot__0=1),
                pod(cpu, gib, pods, **{f"slot__{1 + number}": 1}),
                pod(cpu, gib, 2 * pods),
            )
        )
        compatible.extend([masks[3]] * 3)
    return problem(classes, shapes=shapes, compatible=tuple(compatible), **changes)


def ground_of(asked: PackingProblem) -> tuple[PricedProblem, list[int]]:
    demand = read_demand(asked)
    kinds = undominated(
        find_bin_types(
            asked,
            demand,
            range(len(asked.node_types)),
            amounts_of(asked.node_types, demand),
            asked.settings,
        ),
        {},
    )
    counts = [pod_class.count for pod_class in asked.classes]
    prices = [kind.comparison_price for kind in kinds]
    return price_problem(demand, kinds, find_prices(demand, counts, kinds, prices), prices), counts


def test_pods_in_zones_and_slots_are_packed_close_to_the_bound_without_them() -> None:
    asked = topology(pods=30)
    made = good(asked)
    every = (1 << len(asked.node_types)) - 1
    free = replace(asked, compatible=(every,) * len(asked.classes))
    assert made.unplaced == ()
    assert "seated" in made.candidate
    assert made.cost_micros_per_hour <= good(free).lower_bound_micros_per_hour * 1.08


def test_few_launch_groups_hold_for_seated_pods_too() -> None:
    few = replace(PLAIN, max_launch_groups=9, fewer_groups_permille=10_000)
    asked = topology(pods=30, settings=few)
    assert len({node.options for node in good(asked).nodes}) <= 9


def test_default_settings_and_limits_hold_for_seated_pods() -> None:
    plain = good(topology(pods=12))
    assert "seated" in plain.candidate
    assert plain.unplaced == ()
    asked = topology(pods=12, settings=PackingSettings())
    assert good(asked).unplaced == ()
    shapes = tuple(replace(other_shape, provisioner="default") for other_shape in asked.node_types)
    tight = replace(asked, node_types=shapes, limits={"default": shapes[0].capacity.times(12)})
    assert good(tight).unplaced


def test_zones_with_equal_machines_are_alike_and_more_expensive_ones_are_not() -> None:
    for dearer, exactly, alike in ((0, True, 1), (2_000, True, 3), (2_000, False, 1)):
        shapes, masks = zoned(slots=0, dearer=dearer)
        asked = problem([pod(500, 1, 9)] * 4, shapes=shapes, compatible=masks)
        priced, _ = ground_of(asked)
        found = alike_signatures((0, 1, 2, 3), priced.bin_types, priced.prices, exactly=exactly)
        assert len(set(found.values())) == alike


def test_zones_where_machines_cost_much_more_are_planned_apart() -> None:
    shapes, masks = zoned(slots=0, dearer=60_000)
    classes = [pod(cpu, gib, 40) for cpu, gib in SIZES for _ in range(3)]
    asked = problem(classes, shapes=shapes, compatible=tuple(masks[n % 3] for n in range(15)))
    priced, counts = ground_of(asked)
    assert aggregate(priced, counts, {}) is None
    assert good(asked).unplaced == ()


def test_slots_of_equal_use_are_pooled_and_loose_ones_are_counted_nowhere() -> None:
    shapes, masks = zoned(slots=4)
    classes = [
        pod(100, 0.2, 90, slot__0=1),
        pod(100, 0.2, 70, slot__1=1),
        pod(100, 0.2, 10, slot__2=1),
        pod(100, 0.2, 9, slot__3=1),
    ]
    asked = problem(classes, shapes=shapes, compatible=(masks[3],) * 4)
    priced, counts = ground_of(asked)
    home = pooled_pseudo_resources(priced.demand, counts, priced.bin_types)
    assert home == (0, 1, 2, 3, 3, -1, -1)
    assert pooled_amounts((9, 9, 9, 1, 2, 4, 8), home) == (9, 9, 9, 3, 0, 0, 0)
    one = problem(classes[:1], shapes=shapes, compatible=masks[3:])
    priced, counts = ground_of(one)
    assert pooled_pseudo_resources(priced.demand, counts, priced.bin_types) == (0, 1, 2, 3)


def test_a_coarse_class_aggregates_all_its_members() -> None:
    asked = topology()
    priced, counts = ground_of(asked)
    aggregated = aggregate(priced, counts, {})
    assert aggregated is not None
    assert sum(aggregated.counts) == sum(counts)
    assert sorted(k for some in aggregated.members for k in some) == list(range(len(counts)))
    assert len(aggregated.counts) == 2 * len(SIZES)


def test_seats_no_pod_may_take_stay_empty_and_nodes_mostly_empty_are_not_bought() -> None:
    shapes, masks = zoned(slots=1)
    classes = [pod(100, 0.2, 3, slot__0=1), pod(900, 2, 3), pod(900, 2, 1)]
    asked = problem(classes, shapes=shapes, compatible=(masks[3], masks[3], masks[1]))
    priced, counts = ground_of(asked)
    aggregated = aggregate(priced, counts, {})
    assert aggregated is not None
    apart = next(k for k, some in enumerate(aggregated.members) if some == (0,))
    kind = max(
        range(len(aggregated.priced.bin_types)),
        key=lambda t: aggregated.priced.bin_types[t].allocatable,
    )
    # Many that keep apart on one node, as no honest plan has them.
    plan = [Pattern(bin_type=kind, contents=((apart, 16),), copies=2)]
    nodes, left = disaggregate(priced, aggregated, plan, counts)
    assert nodes == []
    assert left == counts


def test_pods_that_find_no_seat_get_nodes_of_their_own() -> None:
    # Three quarters of the pods of a size share one slot: pooled, too many share a node.
    shapes, masks = zoned(slots=6)
    classes = [pod(150, 0.3, 60, slot__0=1), pod(150, 0.3, 55, slot__1=1)]
    classes += [pod(150, 0.3, 40 + n, **{f"slot__{n}": 1}) for n in (2, 3)]
    classes += [pod(400, 1.5, 60), pod(700, 1, 60), pod(150, 0.3, 90)]
    asked = problem(classes, shapes=shapes, compatible=(masks[3],) * len(classes))
    assert good(asked).unplaced == ()


def test_many_slots_and_signatures_are_pooled_in_the_bound() -> None:
    shapes, masks = zoned(slots=40, dearer=30_000)
    classes = [pod(100 + n, 0.2, 4, **{f"slot__{n}": 1}) for n in range(40)]
    asked = problem(classes, shapes=shapes, compatible=tuple(masks[n % 4] for n in range(40)))
    made = pack(asked)
    assert made.fallback == ""
    assert 0 < made.lower_bound_micros_per_hour <= made.cost_micros_per_hour


def test_many_signatures_keep_their_groups_from_one_programme_to_the_next() -> None:
    shapes = tuple(
        shape(f"{name}{n}", price + 700 * n, cores=c, gib=g)
        for n in range(14)
        for name, price, c, g in (("c", 80_000, 2, 4), ("m", 380_000, 8, 32))
    )
    classes = [pod(100 + 30 * n, 0.3 + 0.1 * (n % 5), 25 + n) for n in range(28)]
    # Each class may run on its own pair of machines and on one other.
    masks = tuple(3 << 2 * (n % 14) | 1 << (5 * n) % 28 for n in range(28))
    asked = problem(classes, shapes=shapes, compatible=masks)
    priced, counts = ground_of(asked)
    half = [count // 2 if k % 3 else 0 for k, count in enumerate(counts)]
    again = find_prices(priced.demand, half, priced.bin_types, priced.prices, priced.dual_prices)
    cold = find_prices(priced.demand, half, priced.bin_types, priced.prices)
    assert again.values != ()
    for worth in (again, cold):
        bought = sum(priced.prices[kind] * many for kind, many in worth.mix)
        value = sum(n * worth.value_of_class(priced.demand, k) for k, n in enumerate(half))
        assert abs(bought - value) <= bought * 1e-6
    assert good(asked).unplaced == ()


def test_a_programme_may_begin_with_columns_that_are_of_no_use() -> None:
    priced, counts = ground_of(problem([pod(900, 1, 5), pod(300, 2, 9)]))
    first = priced.dual_prices
    gone = replace(first, basis=(*first.basis, (0, (((0, 9), 5.0),))))
    again = find_prices(priced.demand, counts, priced.bin_types, priced.prices, gone)
    assert again.values[0] == pytest.approx(first.values[0])


def test_classes_that_stay_apart_are_not_counted_as_one() -> None:
    shapes, masks = zoned(slots=0)
    classes = [pod(100 + 10 * n, 0.3 + 0.01 * n, 20) for n in range(20)]
    asked = problem(classes, shapes=shapes, compatible=tuple(masks[n % 4] for n in range(20)))
    priced, counts = ground_of(asked)
    assert aggregate(priced, counts, {}) is None


def test_slots_beside_other_resources_are_pooled_alone() -> None:
    gpu: dict[str, Any] = {"nvidia_com__gpu": 2, "slot__0": 1, "slot__1": 1}
    shapes = (shape("g", 500_000, cores=4, gib=16, **gpu),)
    classes = [pod(100, 0.2, 9, nvidia_com__gpu=1, slot__0=1), pod(100, 0.2, 8, slot__1=1)]
    priced, counts = ground_of(problem(classes, shapes=shapes))
    assert priced.demand.names[3:] == ("nvidia.com/gpu", "slot/0", "slot/1")
    assert pooled_pseudo_resources(priced.demand, counts, priced.bin_types) == (0, 1, 2, 3, 4, 4)
