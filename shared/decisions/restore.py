"""Restores values of the model from plain JSON: the inverse of `shared.decisions.record`."""

import dataclasses
import types
from collections.abc import Callable, Hashable, Mapping
from datetime import datetime, timedelta
from enum import Enum
from functools import cache
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from msgspec import ValidationError, convert

from shared.model.resources import WITH_ZEROS, Resources

_Value = TypeVar("_Value")
_Read = Callable[[Any], Any]


class RestoreError(ValueError):
    """JSON that does not have the form of a value; `str()` is one line that names the path."""

    def __init__(self, problem: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(f"{'.'.join(path)}: {problem}" if path else problem)
        self.problem = problem
        self.path = path

    def inside(self, part: str) -> "RestoreError":
        """Return the same error with `part` prepended to its path."""
        return RestoreError(self.problem, (part, *self.path))


def restore(kind: type[_Value], plain: object) -> _Value:
    """Return the value of a model type that plain JSON represents.

    Supports the types that the model uses: frozen dataclasses, enumerations, tuples, frozensets,
    mappings, optional values, times, durations, strings, numbers and booleans. Missing fields take
    their defaults.

    Raises:
        RestoreError: If a value has another form.
    """
    read: _Read = _reader(cast("Hashable", kind))
    return cast("_Value", read(plain))


@cache
def _reader(hint: Hashable) -> _Read:
    """Return the function that reads plain JSON of a type hint.

    Raises:
        TypeError: If the model does not use this kind of hint.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is types.UnionType:
        kept = [argument for argument in arguments if argument is not type(None)]
        if len(kept) == 1:
            return _optional(_reader(kept[0]))
    if origin is tuple and arguments[-1] is Ellipsis:
        return _many(_reader(arguments[0]), tuple)
    if origin is tuple:
        return _exactly(tuple(_reader(argument) for argument in arguments))
    if origin is frozenset:
        return _many(_reader(arguments[0]), frozenset)
    if origin is Mapping:
        return _mapping(_reader(arguments[1]))
    if isinstance(hint, type):
        return _of_class(hint)
    raise TypeError(f"no plain form is known for {hint!r}")


def _of_class(kind: type[Any]) -> _Read:
    if kind is Resources:
        return _normal_resources
    if dataclasses.is_dataclass(kind):
        return _object(kind)
    if issubclass(kind, Enum):
        return _called(kind, kind, str)
    if kind is datetime:
        return _called(datetime.fromisoformat, kind, str)
    if kind is timedelta:
        return _called(_span, kind, int, float, str)
    if kind in (str, int, bool):
        return _called(lambda value: value, kind, kind)
    raise TypeError(f"no plain form is known for {kind!r}")


def _span(plain: Any) -> timedelta:
    """Return a duration, given in seconds or as ISO 8601 text."""
    if isinstance(plain, str):
        return convert(plain, timedelta)
    return timedelta(seconds=plain)


def _object(kind: type[Any]) -> _Read:
    hints = get_type_hints(kind)
    fields = {
        field.name: _optional(_limits)
        if field.metadata == WITH_ZEROS
        else _reader(hints[field.name])
        for field in dataclasses.fields(kind)
    }
    needed = frozenset(
        field.name
        for field in dataclasses.fields(kind)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    )

    def read(plain: Any) -> Any:
        if type(plain) is not dict:
            raise RestoreError(f"must be an object ({kind.__name__})")
        if not needed <= plain.keys():
            missing = ", ".join(sorted(needed - plain.keys()))
            raise RestoreError(f"{kind.__name__} lacks {missing}")
        values = {}
        for name, value in plain.items():
            if name not in fields:
                raise RestoreError(f"{kind.__name__} has no field {name!r}")
            try:
                values[name] = fields[name](value)
            except RestoreError as error:
                raise error.inside(name) from error
        try:
            return kind(**values)
        except ValueError as error:
            raise RestoreError(str(error)) from error

    return read


def _normal_resources(plain: Any) -> Resources:
    found: Resources = _object(Resources)(plain)
    if found != Resources.from_mapping(dict(found.items)):
        raise RestoreError("must have each resource once, sorted by name, and no amount of 0")
    return found


def _limits(plain: Any) -> Resources:
    """Return limits, in which a zero is kept: it means that none is allowed."""
    found: Resources = _object(Resources)(plain)
    if found.items != tuple(sorted(dict(found.items).items())):
        raise RestoreError("must have each resource once, sorted by name")
    return found


def _many(read_entry: _Read, build: Callable[[list[Any]], Any]) -> _Read:
    def read(plain: Any) -> Any:
        if type(plain) is not list:
            raise RestoreError("must be a list")
        found = []
        for number, value in enumerate(plain):
            try:
                found.append(read_entry(value))
            except RestoreError as error:
                raise error.inside(str(number)) from error
        return build(found)

    return read


def _exactly(members: tuple[_Read, ...]) -> _Read:
    def read(plain: Any) -> Any:
        if type(plain) is not list or len(plain) != len(members):
            raise RestoreError(f"must be a list of {len(members)}")
        return tuple(member(value) for member, value in zip(members, plain, strict=True))

    return read


def _mapping(of_value: _Read) -> _Read:
    def read(plain: Any) -> Any:
        if type(plain) is not dict:
            raise RestoreError("must be an object")
        return {name: of_value(value) for name, value in plain.items()}

    return read


def _optional(read_value: _Read) -> _Read:
    return lambda plain: None if plain is None else read_value(plain)


def _called(make: Callable[[Any], Any], kind: type[Any], *given: type[Any]) -> _Read:
    """Return a function that checks the type of a plain value and converts it."""

    def read(plain: Any) -> Any:
        if type(plain) not in given:
            raise RestoreError(
                f"must be a {given[0].__name__} ({kind.__name__}), not {plain!r:.60}"
            )
        try:
            return make(plain)
        except (ValueError, OverflowError, ValidationError) as error:
            raise RestoreError(f"{plain!r:.60} is no {kind.__name__}") from error

    return read
