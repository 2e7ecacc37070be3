"""Several things are worked at at the same time, as if one came after the other."""

import threading

import pytest

from shared.model.errors import ConflictError, UnavailableError
from shared.ports.executor import MAX_CONCURRENT_CALLS
from shared.runtime.threads import Threads


def test_as_many_wait_side_by_side_as_there_are_threads_and_answers_keep_their_order() -> None:
    barrier = threading.Barrier(MAX_CONCURRENT_CALLS, timeout=20)

    def work(thing: int) -> int:
        barrier.wait()
        return -thing

    things = range(2 * MAX_CONCURRENT_CALLS)
    assert Threads().each(work, things) == [-thing for thing in things]


def test_the_first_error_in_their_order_is_raised_once_all_are_over() -> None:
    later, over = threading.Event(), []

    def work(thing: int) -> None:
        if thing == 1:
            later.wait(20)
            raise ConflictError("first")
        if thing == 2:
            later.set()
            raise UnavailableError("second")
        over.append(thing)

    with pytest.raises(ConflictError, match="first"):
        Threads().each(work, range(20))
    assert len(over) == 18


def test_nothing_and_one_thing_need_no_thread() -> None:
    here = threading.get_ident()
    assert Threads().each(lambda _: threading.get_ident(), [0]) == [here]
    assert Threads().each(lambda _: 1, []) == []
