"""Memos: small documents that a cluster's services leave each other in the ledger."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Memo:
    """What stands written under a name.

    Attributes:
        value: Plain JSON: texts, whole numbers, truth values, lists and maps of them.
        version: Of the row it was read from; 0 when there is none.
    """

    name: str
    value: Mapping[str, Any] = field(default_factory=dict, hash=False)
    version: int = 0
