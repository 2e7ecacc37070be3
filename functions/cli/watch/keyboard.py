"""Keys of the terminal, read one by one."""

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

# What terminals send for keys that have no character.
# Source: https://invisible-island.net/xterm/ctlseqs/ctlseqs.html (PC-Style Function Keys, 2026-11).
_NAMES: Final = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
}
_MOST_BYTES: Final = 16


@contextmanager
def pressed_keys(file: int | None = None) -> Iterator[Callable[[float], str]]:
    """Yield a function that waits for a key at most so many seconds, and returns it.

    It returns the key's character or its name, and an empty text if no key was pressed or there is
    no keyboard. While the block lasts the terminal shows no key; Ctrl-C interrupts as ever.

    Args:
        file: Descriptor of the terminal; standard input if None.
    """
    keyboard = sys.stdin.fileno() if file is None else file
    if not os.isatty(keyboard):
        yield _none
        return

    def wait(seconds: float) -> str:
        ready, _, _ = select.select([keyboard], [], [], seconds)
        text = os.read(keyboard, _MOST_BYTES).decode(errors="replace") if ready else ""
        return _NAMES.get(text, text[:1])

    before = termios.tcgetattr(keyboard)
    tty.setcbreak(keyboard)
    try:
        yield wait
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


def _none(seconds: float) -> str:
    time.sleep(seconds)
    return ""
