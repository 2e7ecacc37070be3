"""The known word that is nearest to one that nothing knows, for errors that say what to write."""

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str], least_ratio: float = 0.6) -> str:
    """Return the known word that a misspelt one most likely means, empty where none is near.

    Args:
        least_ratio: Of the letters that both share, 1 where they are equal.

    Source: https://docs.python.org/3/library/difflib.html#difflib.get_close_matches (2026-11).
    """
    return next(iter(difflib.get_close_matches(word, sorted(known), n=1, cutoff=least_ratio)), "")


def nearest_first(word: str, known: Iterable[str]) -> list[str]:
    """Return the known words, the one first that shares most letters with a misspelt one."""
    return sorted(
        known, key=lambda name: (-difflib.SequenceMatcher(None, name, word).ratio(), name)
    )


def write_instead(word: str, known: Iterable[str], least_ratio: float = 0.6) -> str:
    """Return what to write instead of an unknown word: the nearest, else one of all.

    Args:
        least_ratio: As for `nearest`.
    """
    names = sorted(known)
    near = nearest(word, names, least_ratio)
    return f"write {near}" if near else f"known are {', '.join(names)}"
