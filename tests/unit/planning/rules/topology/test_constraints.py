"""What a spread forces, told by an exhaustive search."""

from itertools import product

import pytest

from shared.model.kubernetes.pods import LabelSelector
from shared.planning.rules.topology.constraints import Spread
from shared.planning.rules.topology.counts import DomainCounter
from shared.planning.rules.topology.selector import Selection


def spread(counts: dict[str, int], max_skew: int = 1, **more: object) -> Spread:
    selection = Selection(parts=((None, LabelSelector()),))
    counter = DomainCounter("zone", selection, None, ignores_terminating=False)
    counter.counts = dict(counts)
    fields = {"self_match": 1, "min_domains": 1, "reachable": frozenset(counts), **more}
    return Spread(counter=counter, max_skew=max_skew, **fields)  # type: ignore[arg-type]


def fewest(counts: dict[str, int], max_skew: int, pods: int) -> dict[str, int]:
    """Return the fewest pods of each domain in any way to place so many one after the other."""
    reached = {tuple(counts.values())}
    for _ in range(pods):
        reached = {
            tuple(n + (place == here) for place, n in enumerate(state))
            for state, here in product(reached, range(len(counts)))
            if state[here] + 1 - min(state) <= max_skew
        }
    ends = zip(*reached, strict=True)
    found = {domain: min(end) - counts[domain] for domain, end in zip(counts, ends, strict=True)}
    return {domain: least for domain, least in found.items() if least}


@pytest.mark.parametrize("max_skew", [1, 2, 3])
@pytest.mark.parametrize("before", [(0, 0, 0), (2, 0, 1), (0, 5, 1), (3, 3, 0)])
def test_so_many_pods_go_to_each_domain_at_least(before: tuple[int, ...], max_skew: int) -> None:
    counts = dict(zip("abc", before, strict=True))
    for pods in range(9):
        assert spread(counts, max_skew).least_by_domain(pods) == fewest(counts, max_skew, pods)


def test_what_is_not_known_forces_nothing() -> None:
    assert spread({"a": 0, "b": 0}, self_match=0).least_by_domain(4) == {}
    assert spread({"a": 0, "b": 0}, reachable=None).least_by_domain(4) == {}
    expected = spread({"a": 0, "b": 0})
    expected.counter.uncertain["a"] = 1
    assert expected.least_by_domain(4) == {}
    assert spread({}).least_by_domain(4) == {}
