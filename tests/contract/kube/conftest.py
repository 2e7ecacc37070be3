"""The suite of the Cluster port runs twice."""

from collections.abc import Iterator

import pytest

from infra.local.kube.server import EmbeddedKube
from tests.contract.kube.worlds import InMemory, OverHttp, World


@pytest.fixture(params=["fake", "kube"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    if request.param == "fake":
        yield InMemory()
        return
    with EmbeddedKube() as kube:
        yield OverHttp(kube.url)
