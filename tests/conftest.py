"""Settings all tests share."""

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# Short for every run; long for the nightly one: HYPOTHESIS_PROFILE=long. Where CI is set the same
# examples are tried each time, so that a red build is about the change.
_SLOW = [HealthCheck.too_slow]
settings.register_profile(
    "short",
    deadline=None,
    max_examples=50,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=_SLOW,
)
settings.register_profile(
    "long", deadline=None, max_examples=2000, derandomize=False, suppress_health_check=_SLOW
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))


@pytest.fixture
def signals_as_they_were() -> Iterator[None]:
    """`dovetail` takes over the signals of its process, which here is the tests' own."""
    asking = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [(number, signal.getsignal(number)) for number in asking]
    yield
    for number, handler in before:
        signal.signal(number, handler)
