"""Every test starts from an empty account, so that none depends on the order."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.local.aws import EmbeddedAws, Options
from tests.local.aws.lab import Lab


@pytest.fixture(scope="session")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("function-logs")


@pytest.fixture(scope="session")
def _server(log_dir: Path) -> Iterator[EmbeddedAws]:
    options = Options(workers=4, retry_seconds=(0.1, 0.1), log_dir=log_dir)
    with EmbeddedAws(options) as running:
        yield running


@pytest.fixture
def aws(_server: EmbeddedAws) -> EmbeddedAws:
    """An empty account: one server for all tests, since its start takes seconds, a reset none."""
    _server.reset()
    return _server


@pytest.fixture
def lab(aws: EmbeddedAws) -> Lab:
    return Lab(aws)
