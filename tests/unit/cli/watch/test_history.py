"""Dollars per hour over time."""

from hypothesis import given
from hypothesis import strategies as st

from functions.cli.watch.history import MOST_POINTS, History, Point


def test_a_level_stretch_has_two_points_and_ends_now() -> None:
    history = History()
    added = [history.add(Point(at, 5, 5, None, 1)) for at in range(10)]
    assert added == [True, True, *[False] * 8]
    assert [point.at for point in history.points] == [0, 9]


def test_a_step_keeps_the_end_of_the_stretch_before_it() -> None:
    history = History()
    for at in range(3):
        history.add(Point(at, 5, 5, None, 1))
    history.add(Point(3, 7, 7, 6, 2))
    assert [(point.at, point.price) for point in history.points] == [(0, 5), (2, 5), (3, 7)]


@given(st.integers(MOST_POINTS, 4 * MOST_POINTS))
def test_a_long_history_is_thinned_and_keeps_its_first_and_last_point(count: int) -> None:
    history = History()
    for at in range(count):
        history.add(Point(at, at, at, None, 1))
    points = history.points
    assert len(points) <= MOST_POINTS
    assert (points[0].at, points[-1].at) == (0, count - 1)
    assert [point.at for point in points] == sorted(point.at for point in points)
