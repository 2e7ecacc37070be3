"""A real control plane for the tests of this folder, of the minor that MINOR names."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.build import build_cluster, build_nodeadm, minors
from tests.real.cluster import Cluster


@pytest.fixture(scope="session")
def program() -> Path:
    return build_cluster(os.environ.get("MINOR") or minors()[-1])


@pytest.fixture(scope="session")
def nodeadm() -> Path:
    return build_nodeadm()


@pytest.fixture(scope="session")
def cluster(program: Path) -> Iterator[Cluster]:
    with Cluster(program) as started:
        yield started
