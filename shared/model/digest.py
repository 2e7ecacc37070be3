"""Short hashes of texts, used in ledger rows."""

import hashlib
from typing import Final

_LENGTH: Final = 12


def digest(*parts: str) -> str:
    """Return a short hash of texts: 48 bits in hex."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_LENGTH]


def digests_of(text: str) -> frozenset[str]:
    """Split a text of concatenated digests."""
    return frozenset(text[start : start + _LENGTH] for start in range(0, len(text), _LENGTH))
