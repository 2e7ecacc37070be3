"""Which features the random clusters of `make test` and `make verify` have."""

from collections.abc import Mapping
from typing import Final

from tests.opinion.dice import FEATURES

# Features that Dovetail does not plan for yet, each waiting for its mending.
# shared_claims: pods that share an unbound claim and have pod affinity of their own.
_WAITING: Final[frozenset[str]] = frozenset({"shared_claims"})

ENABLED: Final = frozenset(FEATURES) - _WAITING

# Seeds with a finding that is known and still open, with its cause; they are run and told, but
# fail nothing. An entry whose seed has no findings any more is to be taken out.
OPEN: Final[Mapping[int, str]] = {}
