"""Text that UTF-8 cannot encode: half of a surrogate pair, which an escape in a file can name."""

import re
from typing import Final

# A surrogate as JSON and YAML escape it.
_ESCAPED: Final = re.compile(r"\\[uU](?:0000)?[dD][89a-fA-F]")
SURROGATE_REMEDY: Final = (
    "holds half of a surrogate pair, which is no character; write the character itself"
)


def escapes_surrogate(text: str) -> bool:
    """Return whether a JSON or YAML text escapes a surrogate.

    Only then its documents, strictly decoded, may have one. The answer is for the whole text: a
    file of many documents is searched once.
    """
    return _ESCAPED.search(text) is not None


def first_surrogate(document: object) -> tuple[str, str] | None:
    """Return path and content of the first string that UTF-8 cannot encode, or None."""
    seen: set[int] = set()
    stack: list[tuple[str, object]] = [("", document)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, str):
            if not value.isascii() and _is_half(value):
                return path, value
        elif isinstance(value, (dict, list)) and id(value) not in seen:
            # Aliases of YAML refer to one object from many places.
            seen.add(id(value))
            stack.extend(reversed(_members(path, value)))
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
