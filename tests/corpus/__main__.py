"""Judges a folder of manifests as its index says: `make corpus DIR=folder`.

The folder has a file INDEX.md with a table whose first column names a file and whose last one says
what is expected of it (`judging.expected`).
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from shared.model.errors import InvalidManifestError
from tests.corpus.judging import differences, expected, judge

INDEX = "INDEX.md"


def rows(index: str) -> Iterator[tuple[str, str]]:
    """Yield file and expectation of each row of an index; heads and rules are left out."""
    for line in index.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.lstrip().startswith("|") and cells[0].endswith((".yaml", ".yml", ".json")):
            yield cells[0], cells[-1]


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def main(arguments: list[str]) -> int:
    """Judge each file of a folder; return 1 when an answer differs, 2 when there is none."""
    folder = Path(arguments[0]) if arguments and arguments[0] else None
    if folder is None or not (folder / INDEX).is_file():
        _say(f"DIR: {folder or 'not given'}: name a folder of manifests with an {INDEX}")
        return 2
    listed = list(rows((folder / INDEX).read_text(encoding="utf-8")))
    if not listed:
        _say(f"DIR: {folder}: its {INDEX} names no file: name a folder with some")
        return 2
    accepted = differing = 0
    for name, cell in listed:
        try:
            answer = judge(name, (folder / name).read_bytes())
            wrong = list(differences(expected(cell), answer))
            accepted += not answer.refusals
        except (OSError, ValueError, InvalidManifestError) as error:
            wrong = [str(error)]
        differing += bool(wrong)
        for text in wrong:
            _say(f"{name}: {text} (expected: {cell})")
    _say(f"{len(listed) - differing} of {len(listed)} as expected; {accepted} accepted")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
