"""What a program writes into a page: the result that opens it, and the part between two marks."""

import re
from typing import Final

_RESULT: Final = re.compile(r"\A(# .*\n\n)\*\*.*\*\*$", re.MULTILINE)


def replaced(page: str, text: str, marks: tuple[str, str]) -> str:
    """Return a page with what stands between the marks replaced.

    Raises:
        ValueError: If the page has the marks not once each.
    """
    before, rest = page.split(marks[0])
    _, after = rest.split(marks[1])
    return f"{before}{marks[0]}\n\n{text}\n\n{marks[1]}{after}"


def with_result(page: str, result: str) -> str:
    """Return a page with the bold line under its title replaced.

    Raises:
        ValueError: If the page has no such line.
    """
    written, found = _RESULT.subn(lambda opening: f"{opening[1]}**{result}.**", page)
    if not found:
        raise ValueError("the page has no result: add a bold line under its title")
    return written
