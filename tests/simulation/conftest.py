"""Schedules run in threads that take turns: one processor for each test process is fastest."""

import logging
import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def one_processor() -> Iterator[None]:
    """Keep this process on one processor, another one than its siblings'."""
    free = sorted(os.sched_getaffinity(0))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    os.sched_setaffinity(0, {free[number % len(free)]})
    yield
    os.sched_setaffinity(0, free)


@pytest.fixture(autouse=True)
def quietly() -> Iterator[None]:
    """Write no logs: a schedule is full of errors on purpose."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
