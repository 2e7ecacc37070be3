"""The part of a page that a program writes, between two marks."""


def replaced(page: str, text: str, marks: tuple[str, str]) -> str:
    """Return a page with what stands between the marks replaced.

    Raises:
        ValueError: If the page has the marks not once each.
    """
    before, rest = page.split(marks[0])
    _, after = rest.split(marks[1])
    return f"{before}{marks[0]}\n\n{text}\n\n{marks[1]}{after}"
