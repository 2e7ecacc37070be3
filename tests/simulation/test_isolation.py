"""A cluster harms only itself."""

from tests.simulation.campaigns.isolation import neighbours


def test_a_hostile_cluster_delays_neither_bindings_nor_sweeps_of_its_neighbours() -> None:
    alone, beside = neighbours(hostile=False), neighbours(hostile=True)

    assert beside.bound_seconds <= 1.1 * alone.bound_seconds, (alone, beside)
    assert beside.swept_seconds <= 1.1 * alone.swept_seconds, (alone, beside)
    assert beside.sweeps >= alone.sweeps > 50
    assert beside.pods >= 0.95 * alone.pods > 200
