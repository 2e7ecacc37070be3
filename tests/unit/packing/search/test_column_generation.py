"""Plans from patterns, where pods are coarse for their nodes."""

import pytest

from shared.model.values import replace
from shared.packing.bound.pattern_basis import PatternBasis
from shared.packing.checker import check
from shared.packing.packer import pack
from shared.packing.problem import Packing, PackingProblem
from shared.packing.search import column_generation, node_load
from shared.packing.search.budget import SearchBudget
from shared.packing.search.column_generation import generate_columns
from shared.packing.search.node_load import best_load
from tests.unit.packing.packing_cases import PLAIN, SHAPES, good, pod, problem, shape
from tests.unit.packing.search.test_aggregate import ground_of

COARSE = [
    pod(cpu, gib, 60 + 7 * n, slot__0=1) if n % 3 == 0 else pod(cpu, gib, 60 + 7 * n)
    for n, (cpu, gib) in enumerate(
        (c, m) for c in (300, 700, 1500, 1900) for m in (0.3, 1.1, 2.6, 6.0)
    )
]
SMALL = tuple(
    replace(
        other_shape,
        allocatable=other_shape.allocatable + shape("s", 1, cores=1, gib=1, slot__0=1).allocatable,
    )
    for other_shape in (
        *SHAPES[:4],
        shape("c.xlarge", 160_000, cores=4, gib=8),
        shape("m.xlarge", 192_000, cores=4, gib=16),
    )
)


def test_pods_coarse_for_their_nodes_are_packed_from_patterns() -> None:
    made = good(problem(COARSE, shapes=SMALL))
    assert made.candidate.startswith("patterns")
    assert made.cost_micros_per_hour <= made.lower_bound_micros_per_hour * 1.2


def test_patterns_take_no_pod_twice_and_leave_few() -> None:
    asked = problem(COARSE, shapes=SMALL)
    priced, counts = ground_of(asked)
    plan, left = generate_columns(priced, counts, SearchBudget())
    taken = [0] * len(counts)
    for entry in plan:
        needs, _ = priced.needs(entry.contents)
        room = priced.bin_types[entry.bin_type].allocatable
        assert all(a <= b for a, b in zip(needs, room, strict=True))
        for k, n in entry.contents:
            taken[k] += n * entry.copies
    assert [a + b for a, b in zip(taken, left, strict=True)] == counts
    assert sum(left) <= sum(counts) // 5


def test_few_pods_with_machines_of_their_own_are_packed_before_the_programme(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    everywhere = (1 << len(SMALL)) - 1
    asked = problem(
        [*COARSE, pod(700, 1.1, 5), pod(1500, 2.6, 3)],
        shapes=SMALL,
        compatible=(*[everywhere] * len(COARSE), 0b110000, 0b110000),
    )
    priced, counts = ground_of(asked)
    few = (len(COARSE), len(COARSE) + 1)
    monkeypatch.setattr(column_generation, "_MANY_CLASSES", 10)
    plan, left = generate_columns(priced, counts, SearchBudget())
    assert [left[k] for k in few] == [0, 0]
    first = plan[0]
    assert any(k in few for k, _ in first.contents)
    assert all(
        priced.bin_types[entry.bin_type].signatures >> priced.demand.signature[k] & 1
        for entry in plan
        for k, _ in entry.contents
    )


def test_several_rounds_use_what_earlier_ones_found(monkeypatch: pytest.MonkeyPatch) -> None:
    priced, counts = ground_of(problem(COARSE, shapes=SMALL))
    monkeypatch.setattr(column_generation, "_REST", 0.0)
    monkeypatch.setattr(column_generation, "_LARGE_PART", 2.0)  # whole parts only
    plan, left = generate_columns(priced, counts, SearchBudget())
    monkeypatch.setattr(column_generation, "_PIVOTS_PER_CLASS", 0)
    monkeypatch.setattr(column_generation, "_ROUNDS", 1)
    other, rest = generate_columns(priced, counts, SearchBudget())
    assert sum(left) < sum(counts) // 10
    assert sum(left) <= sum(rest)
    for nodes, some in ((plan, left), (other, rest)):
        assert priced.cost(nodes) >= priced.value_of(counts) - priced.value_of(some) - 1


def test_surplus_that_no_pattern_makes_room_for_is_left_alone() -> None:
    priced, _ = ground_of(problem(COARSE[:1], shapes=SMALL))
    basis = PatternBasis([[1.0]], [2.0], [(0, {0: 1})], [-5.0], {0: 0})
    basis.add_slack_columns(min(priced.prices))
    assert basis.dual_prices == [-5.0]


def test_a_basis_that_cannot_take_a_pattern_stays_as_it_is() -> None:
    basis = PatternBasis([[1.0]], [2.0], [(0, {0: 1})], [5.0], {0: 0})
    basis.enter(-1, {0: 0}, 0.0)
    assert basis.patterns == [(-1, {0: 0})] or basis.levels == [2.0]
    flat = PatternBasis([[0.0]], [2.0], [(0, {0: 1})], [5.0], {0: 0})
    flat.enter(0, {0: 1}, -1.0)
    assert flat.patterns == [(0, {0: 1})]


def test_a_load_exchanges_pods_for_better_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    # For the room they take, the pods of 0.7 cores look best; one that uses the rest is better.
    asked = problem([pod(1300, 2, 9), pod(700, 1, 9)], shapes=SHAPES[1:2])
    priced, counts = ground_of(asked)
    values = [55_000.0, 36_000.0]
    found = best_load(priced, 0, counts, values)
    assert found.contents == {0: 1, 1: 1}
    assert found.value == 91_000.0
    assert best_load(priced, 0, counts, values, 0).contents == {0: 1, 1: 1}
    assert best_load(priced, 0, counts, [0.0, 0.0]).contents == {}
    monkeypatch.setattr(node_load, "_MOST_EXCHANGES", 0)
    assert best_load(priced, 0, counts, values).contents == {1: 2}


def test_a_time_limit_cuts_the_search_short_and_says_so() -> None:
    asked = problem(COARSE[:6], shapes=SMALL)
    at_once = good(asked)
    assert not at_once.cut_short
    made = patterns_with_limit(asked, 0)
    assert made.cut_short
    later = patterns_with_limit(asked, 40)
    assert later.cut_short
    assert later.cost_micros_per_hour <= made.cost_micros_per_hour
    assert patterns_with_limit(asked, 1 << 40) == at_once


def patterns_with_limit(asked: PackingProblem, most: int) -> Packing:
    asks = 0

    def out_of_time() -> bool:
        nonlocal asks
        asks += 1
        return asks > most

    made = pack(asked, out_of_time)
    assert made.fallback == ""
    assert check(asked, made) == ()
    return made


def test_thorough_search_continues_after_column_generation() -> None:
    settings = replace(PLAIN, improve_iterations=0)
    asked = problem(COARSE[:6], shapes=SMALL, settings=settings)
    thorough = replace(asked, settings=replace(settings, thorough=True))
    assert good(thorough).cost_micros_per_hour <= good(asked).cost_micros_per_hour


@pytest.mark.parametrize("groups", [9, 10])
def test_many_groups_of_pods_of_which_each_is_few_are_packed(groups: int) -> None:
    # Each group may run on all machines but one. What goes before the programme may be everything.
    machines = tuple(
        shape(f"c.large-{n}", 80_000 + n, cores=2 + n % 3, gib=4 + n) for n in range(groups)
    )
    everywhere = (1 << groups) - 1
    pods = [
        pod(300 + 100 * n, 0.3 + n / 10 + group / 100, 4)
        for group in range(groups)
        for n in range(9)
    ]
    compatible = tuple(everywhere & ~(1 << n // 9) for n in range(len(pods)))
    made = good(problem(pods, shapes=machines, compatible=compatible))
    assert not made.unplaced
    assert made.cost_micros_per_hour <= made.lower_bound_micros_per_hour * 1.05
