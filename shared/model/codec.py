"""Converts values of the model to plain JSON and back, for everything that Dovetail stores.

Structs become objects, tuples stay tuples (lists in JSON), sets become sorted lists,
enumerations their values, times RFC 3339 texts and durations ISO 8601 texts.
Source of the forms: https://jcristharif.com/msgspec/supported-types.html (2026-11-29).
"""

import json
import re
from collections.abc import Hashable, Iterator, Mapping
from functools import cache
from itertools import repeat
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import fields

from shared.model.resources import WITH_ZEROS, Resources

T = TypeVar("T")

# Where msgspec found the error: "Expected `int`, got `str` - at `$.pods[0].labels[...]`".
_PLACE: Final = re.compile(r" - at (?:`key` in )?`\$(.*)`$", re.DOTALL)
_PART: Final = re.compile(r"[^.\[\]]+")


class CodecError(ValueError):
    """Plain JSON that has not the form of a value; `str()` is one line that names the path."""

    def __init__(self, problem: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(f"{'.'.join(path)}: {problem}" if path else problem)
        self.problem = problem
        self.path = path

    def inside(self, part: str) -> "CodecError":
        """Return the same error with `part` prepended to its path."""
        return CodecError(self.problem, (part, *self.path))


def to_plain(value: Any) -> Any:
    """Return a value as plain JSON."""
    return msgspec.to_builtins(value, order="deterministic", enc_hook=_other)


def from_plain(kind: type[T], plain: object, *, exact: bool = False) -> T:
    """Return the value of a type that plain JSON represents; missing fields take their defaults.

    Args:
        exact: Whether unknown fields, which are otherwise left out, and resources in another form
            than the model's are errors.

    Raises:
        CodecError: If it has another form.
    """
    try:
        value = msgspec.convert(plain, kind)
    except msgspec.ValidationError as error:
        raise _located(error) from error
    if exact:
        _check(value, plain)
    return value


def from_json(kind: type[T], text: str) -> T:
    """Return the value of a type in a JSON text; missing fields take their defaults.

    Raises:
        CodecError: If it is no JSON or has another form.
    """
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as error:
        raise _located(error) from error


def _located(error: msgspec.DecodeError) -> CodecError:
    problem = str(error)
    place = _PLACE.search(problem)
    path = tuple(_PART.findall(place[1])) if place else ()
    return CodecError(_PLACE.sub("", problem), path)


def _other(value: Any) -> Any:
    """Return a value that msgspec does not know as one that it does."""
    if isinstance(value, Mapping):
        return dict(value)
    raise NotImplementedError(f"no plain form is known for {type(value)!r}")


def _check(value: Any, plain: Any, *, zeros: bool = False) -> None:
    if isinstance(value, Resources):
        normal = tuple(sorted(dict(value.items).items()))
        if value.items != normal or not (zeros or all(amount for _, amount in normal)):
            also = "" if zeros else ", and no amount of 0"
            raise CodecError(f"must have each resource once, sorted by name{also}")
    for name, member, entry, with_zeros in _members(value, plain):
        if isinstance(entry, (dict, list, tuple)):
            try:
                _check(member, entry, zeros=with_zeros)
            except CodecError as error:
                raise error.inside(name) from error


def _members(value: Any, plain: Any) -> Iterator[tuple[str, Any, Any, bool]]:
    """Yield the name, value and plain form of each member, and whether its zeros are kept."""
    if isinstance(plain, (list, tuple)):
        # The members of a set are in another order, but have the same fields.
        values = value if isinstance(value, tuple) else repeat(next(iter(value), None))
        for number, (member, entry) in enumerate(zip(values, plain, strict=False)):
            yield str(number), member, entry, False
        return
    kind: Any = type(value)
    known = _fields(kind)
    for name, entry in plain.items():
        if known is None:
            yield name, value[name], entry, False
        elif name in known:
            yield name, getattr(value, name), entry, known[name]
        else:
            raise CodecError(f"{kind.__name__} has no field {name!r}")


@cache
def _fields(kind: Hashable) -> dict[str, bool] | None:
    """Return the fields of a Struct, each with whether its zeros are kept; else None."""
    if not isinstance(kind, type) or not issubclass(kind, Struct):
        return None
    return {
        known.name: WITH_ZEROS in getattr(known.type, "__metadata__", ()) for known in fields(kind)
    }


_ENCODER: Final = msgspec.json.Encoder(order="sorted", enc_hook=_other)


def to_json(value: Any) -> bytes:
    """Return a value as canonical JSON: equal values have equal bytes."""
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:
        # Half of a surrogate pair, which has no UTF-8.
        return json.dumps(to_plain(value), sort_keys=True, separators=(",", ":")).encode()
