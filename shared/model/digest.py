"""Short names for texts, for ledger rows."""

import hashlib
from typing import Final

_LENGTH: Final = 12


def digest(*parts: str) -> str:
    """Return a short name for texts, of 48 bits."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_LENGTH]


def digests_of(text: str) -> frozenset[str]:
    """Return the digests that a text holds one after the other."""
    return frozenset(text[start : start + _LENGTH] for start in range(0, len(text), _LENGTH))
