"""Text for a terminal: names come from files and clusters, and may hold anything."""

from collections.abc import Collection, Iterable, Sequence


def printable(text: str) -> str:
    """Return the text with `?` in place of control characters, so that it is no command."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def printable_text(lines: Iterable[str]) -> str:
    """Return the lines as text, each with its line break."""
    return "".join(f"{printable(line)}\n" for line in lines)


def number_ranges(numbers: Iterable[int], most: int = 3) -> str:
    """Return ascending numbers as ranges, such as `1-3, 7`; with `…` for those beyond the most."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    shown = [f"{first}-{last}" if first != last else f"{first}" for first, last in ranges[:most]]
    return ", ".join([*shown, *(["…"] if len(ranges) > most else [])])


def markdown_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of cells, the headings first, as a table of Markdown, numbers to the right."""
    head, *body = [[cell.replace("|", "") for cell in row] for row in rows]
    marks = ["---", *["---:"] * (len(head) - 1)]
    return [f"| {' | '.join(row)} |" for row in (head, marks, *body)]


def aligned(rows: Sequence[Sequence[str]], right_aligned: Collection[int] = ()) -> list[str]:
    """Return rows of cells as lines; columns of these numbers are aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if number in right_aligned else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines
