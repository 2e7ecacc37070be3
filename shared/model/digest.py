"""Short names for texts, for ledger rows."""

import hashlib
from typing import Final

_LENGTH: Final = 12


def digest(*parts: str) -> str:
    """Return a short name for texts, of 48 bits."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_LENGTH]
