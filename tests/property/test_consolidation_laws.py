"""Consolidation makes random clusters cheaper, loses no pod, and comes to rest."""

import pytest

from tests.benchmarks.disruption.consolidating import settle


def _keeps_the_laws(seed: int) -> bool:
    settled = settle(seed)
    return settled.only_fell and settled.rounds <= 5 and not settled.lost


@pytest.mark.parametrize("seed", range(6))
def test_a_random_cluster_comes_to_rest_cheaper_and_whole(seed: int) -> None:
    assert _keeps_the_laws(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 2000, 50))
def test_a_thousand_random_clusters_come_to_rest_cheaper_and_whole(first: int) -> None:
    assert [seed for seed in range(first, first + 50) if not _keeps_the_laws(seed)] == []
