"""Reads a large JSON text value by value: only the current value is in memory."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

# An object of Kubernetes has at most 1.5 MiB.
MAX_VALUE: Final = 16 * 2**20
_SPACE: Final = re.compile(r"[ \t\n\r]*")


class JsonProblemError(ValueError):
    """JSON that is malformed or beyond the bounds.

    Attributes:
        place: Line and column.
    """

    def __init__(self, reason: str, place: str) -> None:
        super().__init__(reason)
        self.place = place


class JsonPieces:
    """Reads one text that arrives in pieces.

    Args:
        pieces: Pieces of the text.
        pairs: Returns an object of its keys and values; its errors are passed on.
    """

    def __init__(
        self, pieces: Iterator[str], pairs: Callable[[list[tuple[str, Any]]], dict[str, Any]]
    ) -> None:
        self._pieces = pieces
        self._decoder = json.JSONDecoder(object_pairs_hook=pairs)
        self._text = ""
        self._at = 0
        self._lines = 0  # lines that are no longer in memory
        self._column = 0  # of the first character in memory

    def next(self) -> str:
        """Return the next character that is no space, empty at the end, without consuming it."""
        while True:
            found = _SPACE.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def consume(self, *expected: str) -> str:
        """Consume the next character and return it.

        Raises:
            JsonProblemError: If it is none of `expected`.
        """
        found = self.next()
        if found not in expected or not found:
            raise self._problem(f"expected {' or '.join(expected)}")
        self._at += 1
        return found

    def value(self) -> Any:
        """Consume the next value and return it.

        Raises:
            JsonProblemError: If it is malformed, larger than `MAX_VALUE`, or nested too deeply.
        """
        self.next()
        while True:
            try:
                found, end = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                # It may end in the next piece.
                if not self._more():
                    self._at = error.pos
                    raise self._problem(error.msg.lower()) from error
            except RecursionError as error:
                raise self._problem("is nested too deep") from error
            else:
                if end < len(self._text) or not self._more():
                    self._at = end
                    return found

    def members(self) -> Iterator[str]:
        """Yield the keys of the next object; the caller consumes each value before the next key."""
        self.consume("{")
        if self.next() == "}":
            self.consume("}")
            return
        separator, seen = ",", set()
        while separator == ",":
            if self.next() != '"':
                raise self._problem("expected a key")
            key = self.value()
            if key in seen:
                raise self._problem(f"{key!r} is said twice, keep one of them")
            seen.add(key)
            self.consume(":")
            yield key
            separator = self.consume(",", "}")

    def items(self) -> Iterator[Any]:
        """Yield the values of the next list."""
        self.consume("[")
        if self.next() == "]":
            self.consume("]")
            return
        separator = ","
        while separator == ",":
            yield self.value()
            separator = self.consume(",", "]")

    def _more(self) -> bool:
        """Drop the consumed text and read at least as much as is buffered.

        So the total time is linear.
        """
        taken, rest = self._text[: self._at], self._text[self._at :]
        if len(rest) > MAX_VALUE:
            raise self._problem(f"is a value of more than {MAX_VALUE >> 20} MiB")
        lines = taken.count("\n")
        self._lines += lines
        self._column = len(taken) - taken.rfind("\n") - 1 + (0 if lines else self._column)
        read = []
        waiting = max(len(rest), 1)
        while waiting > 0 and (piece := next(self._pieces, None)) is not None:
            read.append(piece)
            waiting -= len(piece)
        self._text, self._at = "".join([rest, *read]), 0
        return bool(read)

    def _problem(self, reason: str) -> JsonProblemError:
        before = self._text[: self._at]
        lines = before.count("\n")
        column = len(before) - before.rfind("\n") - 1 + (0 if lines else self._column)
        place = f"line {self._lines + lines + 1}, column {column + 1}"
        return JsonProblemError(reason, place)
