"""Text that UTF-8 cannot write: half of a surrogate pair, which an escape in a file can name."""

import re
from typing import Final

# A surrogate as JSON and YAML escape it.
_ESCAPED: Final = re.compile(r"\\[uU](?:0000)?[dD][89a-fA-F]")
REMEDY: Final = "holds half of a surrogate pair, which is no character; write the character itself"


def unencodable(text: str, value: object) -> tuple[str, str] | None:
    """Return path and content of the first string that cannot be written as UTF-8, or None.

    Args:
        text: The JSON or YAML, decoded strictly. Without an escape for a surrogate it has none.
        value: What was read from it.
    """
    if _ESCAPED.search(text) is None:
        return None
    seen: set[int] = set()
    stack: list[tuple[str, object]] = [("", value)]
    while stack:
        path, one = stack.pop()
        if isinstance(one, str):
            if not one.isascii() and _is_half(one):
                return path, one
        elif isinstance(one, (dict, list)) and id(one) not in seen:
            # Aliases of YAML refer to one object from many places.
            seen.add(id(one))
            stack.extend(reversed(_members(path, one)))
    return None


def _members(path: str, value: dict[str, object] | list[object]) -> list[tuple[str, object]]:
    if isinstance(value, list):
        return [(f"{path}[{number}]", member) for number, member in enumerate(value)]
    found: list[tuple[str, object]] = []
    for key, member in value.items():
        inner = f"{path}.{key}" if path else key
        found += [(inner, key), (inner, member)]
    return found


def _is_half(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)
