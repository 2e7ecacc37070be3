"""Dollars per hour over time: a series that is thinned instead of cut off."""

from collections.abc import Iterable
from typing import Final, NamedTuple

MOST_POINTS: Final = 720


class Point(NamedTuple):
    """One moment.

    Attributes:
        at: Seconds since 1970.
        price: Price of all nodes, in micro-dollars per hour.
        owned: Price of Dovetail's nodes.
        bound: Lower bound for the pods on these, None while it is not proved.
        nodes: Number of all nodes.
    """

    at: float
    price: int
    owned: int
    bound: int | None
    nodes: int


class History:
    """The points so far, oldest first."""

    def __init__(self) -> None:
        self._points: list[Point] = []

    @property
    def points(self) -> tuple[Point, ...]:
        """The points so far."""
        return tuple(self._points)

    def precede(self, points: Iterable[Point]) -> None:
        """Put points, oldest first, before those there are."""
        self._points[:0] = points

    def add(self, point: Point) -> bool:
        """Add a point; return whether one was added.

        If the last two points have the same values, the last one moves to the new time instead.
        """
        level = len(self._points) > 1 and all(
            before[1:] == point[1:] for before in self._points[-2:]
        )
        if level:
            self._points[-1] = point
            return False
        self._points.append(point)
        if len(self._points) > MOST_POINTS:
            half = MOST_POINTS // 2
            self._points[:half] = self._points[:half:2]
        return True
