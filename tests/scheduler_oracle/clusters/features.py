"""Which features the random clusters of `make test` and `make verify` have."""

from collections.abc import Mapping
from typing import Final

from tests.scheduler_oracle.clusters.seeded_random import FEATURES

ENABLED: Final = frozenset(FEATURES)

# Seeds with a finding that is known and still open, with its cause; they are run and told, but
# fail nothing. An entry whose seed has no findings any more is to be taken out.
OPEN: Final[Mapping[int, str]] = {}
