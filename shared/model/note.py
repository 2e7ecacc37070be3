"""Notes: small documents in the ledger through which a cluster's services share state."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field


class Note(Struct, frozen=True, kw_only=True):
    """A small JSON document that the ledger keeps under a name.

    Attributes:
        value: Plain JSON: strings, integers, booleans, lists and maps of them.
        version: Of the row it was read from; 0 when there is none.
    """

    name: str
    value: Mapping[str, Any] = field(default_factory=dict)
    version: int = 0
