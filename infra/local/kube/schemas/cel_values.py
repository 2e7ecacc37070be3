"""Operators and functions of the CEL subset, over plain Python values."""

import re
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")
_UNIT_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


class CelError(Exception):
    """A rule cannot be read, or cannot be decided for a value."""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def equal(left: Any, right: Any) -> bool:
    """Whether two values are equal; true is not 1."""
    if isinstance(left, bool) is not isinstance(right, bool):
        return False
    return bool(left == right)


def _ordered(left: Any, right: Any) -> None:
    same = type(left) is type(right) and isinstance(left, str | bool | timedelta)
    if not same and not (_is_number(left) and _is_number(right)):
        raise CelError(f"no such overload: {type(left).__name__} < {type(right).__name__}")


def _less(left: Any, right: Any) -> bool:
    _ordered(left, right)
    return bool(left < right)


def _contained(left: Any, right: Any) -> bool:
    if isinstance(right, dict):
        return left in right
    if isinstance(right, list):
        return any(equal(left, item) for item in right)
    raise CelError("no such overload: in needs a list or a map")


def _add(left: Any, right: Any) -> Any:
    addable = isinstance(left, str | list | timedelta) and type(left) is type(right)
    if addable or (_is_number(left) and _is_number(right)):
        return left + right
    raise CelError(f"no such overload: {type(left).__name__} + {type(right).__name__}")


def _arithmetic(sign: str, left: Any, right: Any) -> Any:
    if not (_is_number(left) and _is_number(right)):
        raise CelError(f"no such overload: {type(left).__name__} {sign} {type(right).__name__}")
    if sign == "-":
        return left - right
    if sign == "*":
        return left * right
    if right == 0:
        raise CelError("divide by zero")
    whole = isinstance(left, int) and isinstance(right, int)
    quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    if sign == "/":
        return quotient if whole else left / right
    return left - right * quotient


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": equal,
    "!=": lambda left, right: not equal(left, right),
    "<": _less,
    ">": lambda left, right: _less(right, left),
    "<=": lambda left, right: not _less(right, left),
    ">=": lambda left, right: not _less(left, right),
    "in": _contained,
    "+": _add,
    "-": lambda left, right: _arithmetic("-", left, right),
    "*": lambda left, right: _arithmetic("*", left, right),
    "/": lambda left, right: _arithmetic("/", left, right),
    "%": lambda left, right: _arithmetic("%", left, right),
}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise CelError(f"no such overload: a string is needed, found {type(value).__name__}")
    return value


def _size(value: Any) -> int:
    if not isinstance(value, str | list | dict):
        raise CelError(f"no such overload: size({type(value).__name__})")
    return len(value)


def _int(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError) as error:
        raise CelError(f"int(): {value!r} is not an integer") from error


def _double(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise CelError(f"double(): {value!r} is not a number") from error


def _string(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _duration(value: Any) -> timedelta:
    text = _text(value)
    sign = -1 if text.startswith("-") else 1
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text.lstrip("+-"):
        raise CelError(f"duration(): {text!r} is not a duration")
    return sign * timedelta(seconds=sum(float(n) * _UNIT_SECONDS[unit] for n, unit in parts))


def _matches(value: Any, pattern: Any) -> bool:
    try:
        return re.search(_text(pattern), _text(value)) is not None
    except re.error as error:
        raise CelError(f"matches(): {error}") from error


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise CelError(f"no such overload: a list is needed, found {type(value).__name__}")
    return value


def _is_sorted(value: Any) -> bool:
    items = _list(value)
    return not any(_less(right, left) for left, right in pairwise(items))


def _split(value: Any, separator: Any) -> list[str]:
    return _text(value).split(_text(separator))


def _join(value: Any, separator: Any = "") -> str:
    return _text(separator).join(_text(item) for item in _list(value))


def _substring(value: Any, start: Any, end: Any = None) -> str:
    return _text(value)[start:end]


def _replace(value: Any, old: Any, new: Any) -> str:
    return _text(value).replace(_text(old), _text(new))


FUNCTIONS: dict[str, tuple[int, int, Callable[..., Any]]] = {
    "size": (1, 1, _size),
    "int": (1, 1, _int),
    "double": (1, 1, _double),
    "string": (1, 1, _string),
    "duration": (1, 1, _duration),
    "matches": (2, 2, _matches),
    "startsWith": (2, 2, lambda text, start: _text(text).startswith(_text(start))),
    "endsWith": (2, 2, lambda text, end: _text(text).endswith(_text(end))),
    "contains": (2, 2, lambda text, part: _text(part) in _text(text)),
    "indexOf": (2, 2, lambda text, part: _text(text).find(_text(part))),
    "lowerAscii": (1, 1, lambda text: _text(text).lower()),
    "upperAscii": (1, 1, lambda text: _text(text).upper()),
    "trim": (1, 1, lambda text: _text(text).strip()),
    "replace": (3, 3, _replace),
    "split": (2, 2, _split),
    "substring": (2, 3, _substring),
    "join": (1, 2, _join),
    "isSorted": (1, 1, _is_sorted),
    "sum": (1, 1, lambda items: sum(_list(items))),
    "min": (1, 1, lambda items: min(_list(items))),
    "max": (1, 1, lambda items: max(_list(items))),
}
"""Name: least and most arguments (the receiver is the first), and what it does."""


def select(value: Any, name: str) -> Any:
    """Return a field of a map.

    Raises:
        CelError: There is none.
    """
    if isinstance(value, dict) and name in value:
        return value[name]
    raise CelError(f"no such key: {name}")


def index(value: Any, key: Any) -> Any:
    """Return an item of a list or map.

    Raises:
        CelError: There is none.
    """
    if isinstance(value, dict) and key in value:
        return value[key]
    if isinstance(value, list) and isinstance(key, int) and 0 <= key < len(value):
        return value[key]
    raise CelError(f"index out of bounds or no such key: {key!r}")


def items_of(value: Any) -> list[Any]:
    """Return what a macro walks over: the items of a list, the keys of a map.

    Raises:
        CelError: The value is neither.
    """
    if isinstance(value, dict):
        return list(value)
    return _list(value)
