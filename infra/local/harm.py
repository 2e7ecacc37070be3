"""What went wrong on purpose, as the embedded AWS API counts it, in words."""

from collections.abc import Callable, Mapping
from typing import Any, Final

Harm = Mapping[tuple[str, str], int]
"""How often, by kind and by what it struck."""

KILLED_AT_LAUNCH: Final = "function killed at launch"
_TOLD: Final[Mapping[str, str]] = {
    "call throttled": "AWS refused {n} of the calls of functions to {struck}",
    "capacity refused": "EC2 had no capacity for {struck}, asked {times}",
    "event delivered twice": "events delivered twice: {n} of {struck}",
    "event lost": "events lost: {n} of {struck}",
    "function killed": "{struck} was killed at work, {times}",
    KILLED_AT_LAUNCH: "{struck} was killed between launch and answer, {times}",
    "spot warning": "EC2 warned that it takes the spot instance {struck}",
}


def read_harm(control: Callable[..., Any]) -> dict[tuple[str, str], int]:
    """Return what went wrong so far; `control` calls a verb of the embedded AWS API."""
    rows = control("harm")["harm"]
    return {(row["kind"], row["struck"]): row["count"] for row in rows}


def since(before: Harm, after: Harm) -> dict[tuple[str, str], int]:
    """Return what went wrong between two readings."""
    grown = {key: count - before.get(key, 0) for key, count in after.items()}
    return {key: count for key, count in grown.items() if count > 0}


def told(harm: Harm) -> list[str]:
    """Return a line for each, in a fixed order; a kind without words here is told as it is."""
    return [
        _TOLD.get(kind, f"{kind}: {{struck}}, {{times}}").format(
            n=n, struck=struck, times=_times(n)
        )
        for (kind, struck), n in sorted(harm.items())
    ]


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
