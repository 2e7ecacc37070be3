"""Encodes plain values as DynamoDB attributes and decodes them.

Integers, strings, booleans, None, lists and maps of them: all that the ledger keeps.
Source: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.LowLevelAPI.html
(2026-08).
"""

from collections.abc import Mapping
from typing import Any

AttributeValue = Mapping[str, Any]


def to_attribute(value: Any) -> dict[str, Any]:
    """Return a plain value as a typed attribute.

    Raises:
        TypeError: If it is of another type, such as a float.
    """
    if value is None:
        return {"NULL": True}
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, int):
        return {"N": str(value)}
    if isinstance(value, str):
        return {"S": str(value)}
    if isinstance(value, Mapping):
        return {"M": {str(key): to_attribute(entry) for key, entry in value.items()}}
    if isinstance(value, (list, tuple)):
        return {"L": [to_attribute(entry) for entry in value]}
    raise TypeError(f"cannot be written down: {value!r}")


def from_attribute(attribute: AttributeValue) -> Any:
    """Return the plain value of a typed attribute; lists and tuples both become lists.

    Raises:
        TypeError: If it is of a type that `to_attribute` does not write.
    """
    ((kind, value),) = attribute.items()
    if kind == "S":
        return value
    if kind == "N":
        return int(value)
    if kind == "BOOL":
        return value
    if kind == "NULL":
        return None
    if kind == "M":
        return from_item(value)
    if kind == "L":
        return [from_attribute(entry) for entry in value]
    raise TypeError(f"attribute type {kind!r} is not ours")


def to_item(row: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return a row as an item."""
    return {key: to_attribute(value) for key, value in row.items()}


def from_item(item: Mapping[str, AttributeValue]) -> dict[str, Any]:
    """Return an item as a row."""
    return {key: from_attribute(value) for key, value in item.items()}
