"""A small batch beside many pods that run."""

import pytest

from shared.model.resources import Resources
from shared.model.values import replace
from shared.packing.packer import pack
from shared.packing.problem import ItemClass, PackingProblem
from tests.unit.packing.packing_cases import GIB, PLAIN, amounts, good, pod, problem, shape

# A core and 4 GiB in the mean: machines of 4 GiB per core hold as much of it as they can.
# The larger ones cost less per core, as daemons run on each node.
RUNNING = Resources.of(cpu=1_000_000, memory=4000 * GIB)
LEAN = [shape(f"lean{n}", 40_000 * n, cores=n, gib=2 * n) for n in (1, 4, 16)]
EVEN = [shape(f"even{n}", 44_000 * n + 20_000, cores=n, gib=4 * n) for n in (1, 4, 16)]
SHAPES = (*LEAN, *EVEN)


def asked(*classes: ItemClass, **changes: object) -> PackingProblem:
    made = problem(list(classes), shapes=SHAPES)
    return replace(made, running=RUNNING, **changes)  # type: ignore[arg-type]


def bought(question: PackingProblem) -> list[str]:
    return [SHAPES[node.node_type].instance_type for node in good(question).nodes]


def test_a_pod_beside_many_gets_a_node_with_room_for_others_like_those_that_run() -> None:
    assert bought(replace(asked(pod(900, 3, 1)), running=Resources())) == ["even1"]
    assert bought(asked(pod(900, 3, 1))) == ["even4"]


def test_growth_can_be_turned_off() -> None:
    off = replace(PLAIN, growth_percent=0)
    assert bought(asked(pod(900, 3, 1), settings=off)) == ["even1"]


def test_a_node_costs_more_than_needed_by_a_part_of_what_runs_at_most() -> None:
    # What runs is worth about 44,000 a core: a hundredth of 300 cores is what four times the room
    # costs beyond the smallest node, a hundredth of 280 is not.
    some = Resources.of(cpu=300_000, memory=1200 * GIB)
    fewer = Resources.of(cpu=280_000, memory=1120 * GIB)
    question = asked(pod(900, 3, 1))
    assert bought(replace(question, running=some)) == ["even4"]
    assert bought(replace(question, running=fewer)) == ["even1"]


def test_one_node_with_room_is_better_than_several_with_pieces_of_it() -> None:
    batch = asked(pod(2000, 8, 2), pod(1000, 4, 2))
    assert bought(replace(batch, running=Resources())) == ["even1", "even1", "even4"]
    assert bought(batch) == ["even16"]


def test_several_nodes_that_are_full_are_better_than_one_that_is_not() -> None:
    assert bought(asked(pod(8000, 16, 4))) == ["lean16", "lean16"]


def test_many_pods_limits_or_an_unknown_mix_leave_things_as_they_are() -> None:
    limited = {"default": Resources.of(cpu=100_000)}
    assert bought(asked(pod(900, 3, 1), limits=limited)) == ["even1"]
    assert bought(replace(asked(pod(900, 0, 1)), running=Resources.of(cpu=9000))) == ["lean1"]
    many = asked(pod(900, 1, 101))
    assert pack(many) == pack(replace(many, running=Resources()))


def test_pods_that_no_one_node_holds_keep_their_own() -> None:
    assert len(bought(asked(pod(9000, 8, 3)))) == 3


def test_pod_is_placed_where_it_costs_later_pods_least() -> None:
    bins = (
        amounts(2000, 2, 10),
        amounts(500, 30, 10),
        amounts(4000, 16, 10),
    )
    question = asked(pod(100, 2, 1), pod(1500, 1, 2), bins=bins, compatible_bins=(3, 3))
    made = good(question)
    assert dict(made.placements) == {0: ((1, 1),), 1: ((0, 1),)}
    assert sum(n for node in made.nodes for _, n in node.contents) == 1


def test_a_bin_is_filled_with_the_pods_that_use_up_all_it_has() -> None:
    bins = (amounts(4000, 16, 10),)
    # The larger pod would come first by what it is worth, and lose eight gibibytes.
    question = asked(pod(3000, 4, 1), pod(1000, 4, 4), bins=bins, compatible_bins=(1, 1))
    assert good(question).placements == ((0, ((1, 4),)),)


def test_a_bin_with_room_of_every_kind_may_still_hold_none_of_the_pods() -> None:
    bins = tuple(amounts(n * 1000, 8, 10) for n in (1, 2))
    question = asked(pod(500, 12, 1), pod(2000, 4, 1), bins=bins, compatible_bins=(3, 3))
    assert good(question).placements == ((1, ((1, 1),)),)


def test_among_very_many_bins_the_plain_way_is_taken() -> None:
    bins = tuple(amounts(1000, 4, 9) for n in range(10_001))
    question = asked(pod(400, 1, 2), bins=bins, compatible_bins=((1 << 10_001) - 1,))
    assert good(question).nodes == ()


@pytest.mark.parametrize("cpu", [-300, -2, -1])
def test_node_with_negative_available_resources_takes_pods_that_request_none_of_them(
    cpu: int,
) -> None:
    bins = (Resources.of(cpu=cpu, memory=4 * GIB, pods=10),)
    found = good(asked(pod(0, 2, 1), bins=bins, compatible_bins=(1,)))
    assert not found.nodes
