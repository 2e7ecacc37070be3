"""What is told to the person at the terminal, in one line, with what to do."""


class Problem(Exception):  # noqa: N818 - it is not the program's error but the person's news
    """Something the person must know: a missing tool, a busy port, an unreadable file."""
