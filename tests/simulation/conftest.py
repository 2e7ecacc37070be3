"""What all tests of the simulator share."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def quietly() -> Iterator[None]:
    """Write no logs: a schedule is full of errors on purpose."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
