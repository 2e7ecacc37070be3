from collections.abc import Iterator

import pytest

from infra.local.cluster_simulator.client import Server
from infra.local.cluster_simulator.instances import AssumedInstances, Sizes
from infra.local.cluster_simulator.simulation import Setup, SimulationThread
from infra.local.cluster_simulator.world import Timing
from infra.local.kube.server import EmbeddedKube
from tests.local.cluster_simulator.bench import SIZES, SPEED, Bench


@pytest.fixture
def kube() -> Iterator[EmbeddedKube]:
    with EmbeddedKube() as running:
        yield running


@pytest.fixture
def bench(kube: EmbeddedKube) -> Iterator[Bench]:
    """A whole simulated cluster, a hundred times as fast as a real one."""
    bench = Bench(kube.url)
    setup = Setup(
        timing=Timing(speed=SPEED, least_lease_seconds=0.25),
        instances=AssumedInstances(
            bench.machine_state, lambda provider_id: bench.user_data.get(provider_id, "")
        ),
        sizes=Sizes(SIZES),
    )
    with SimulationThread(Server(url=kube.url), setup):
        yield bench
