"""Values: what the core takes and gives are msgspec Structs, records of named fields.

A frozen Struct is made, compared and hashed several times as fast as a frozen dataclass, and its
class forty times as fast, which is what a cold start waits for.
Source: https://jcristharif.com/msgspec/structs.html (2026-11-30).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import astuple

__all__ = ["HashableValue", "replace"]

if TYPE_CHECKING:
    # The same function, whose calls mypy checks field by field.
    from dataclasses import replace
else:
    from msgspec.structs import replace


class HashableValue(Struct, frozen=True):
    """A value with mappings among its fields, which its hash leaves out."""

    def __hash__(self) -> int:
        return hash(tuple([value for value in astuple(self) if not isinstance(value, Mapping)]))
