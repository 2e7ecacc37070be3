from collections.abc import Iterator

import pytest

from infra.local.kube.server import EmbeddedKube
from tests.local.kube.client import Api


@pytest.fixture
def kube() -> Iterator[EmbeddedKube]:
    with EmbeddedKube() as running:
        yield running


@pytest.fixture
def api(kube: EmbeddedKube) -> Iterator[Api]:
    client = Api(kube.url)
    yield client
    client.close()
