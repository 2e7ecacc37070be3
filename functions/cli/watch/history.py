"""Dollars per hour over time: a series that is thinned instead of cut off."""

from typing import Final, NamedTuple

MOST_POINTS: Final = 720


class Point(NamedTuple):
    """One moment.

    Attributes:
        at: Seconds since 1970.
        price: Of all nodes, in micro-dollars per hour.
        owned: Of Dovetail's nodes.
        bound: What their pods cost at least, None while that is not proved.
    """

    at: float
    price: int
    owned: int
    bound: int | None


class History:
    """The points so far, oldest first."""

    def __init__(self) -> None:
        self._points: list[Point] = []

    @property
    def points(self) -> tuple[Point, ...]:
        """The points so far."""
        return tuple(self._points)

    def add(self, point: Point) -> bool:
        """Take in a point unless it says what the last two say; return whether it was new.

        The last point of a level stretch moves with the time: lines stay level without points.
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
