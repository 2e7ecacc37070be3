"""Keys of a terminal, read from a pseudo-terminal."""

import os
import termios

import pytest

from functions.cli.watch.keyboard import pressed_keys


@pytest.mark.parametrize(
    ("typed", "key"),
    [(b"q", "q"), (b"\x1b[A", "up"), (b"\x1b[6~", "page down"), (b"sss", "s"), (b"\x1b[Z", "\x1b")],
)
def test_a_key_is_read_without_enter_and_the_terminal_is_left_as_it_was(
    typed: bytes, key: str
) -> None:
    ours, theirs = os.openpty()
    before = termios.tcgetattr(theirs)
    with pressed_keys(theirs) as next_key:
        assert next_key(0.0) == ""
        os.write(ours, typed)
        assert next_key(60.0) == key
    assert termios.tcgetattr(theirs) == before
    os.close(ours)
    os.close(theirs)


def test_what_is_no_terminal_has_no_keys() -> None:
    reads, writes = os.pipe()
    os.write(writes, b"q")
    with pressed_keys(reads) as next_key:
        assert next_key(0.0) == ""
    os.close(reads)
    os.close(writes)
