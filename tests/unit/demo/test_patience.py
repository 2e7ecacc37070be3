"""Limits are counted in time in which the world was served."""

import os
import threading
import time

from infra.local.patience import Patience, awaited, waits_below

SECOND = 1_000_000_000


class Machine:
    """A clock, and what threads have waited."""

    def __init__(self) -> None:
        self.now = 100.0
        self.waits = {1: 7 * SECOND, 2: 0}

    def patience(self) -> Patience:
        return Patience(lambda: self.waits, lambda: self.now)

    def passes(self, seconds: float, **waited: float) -> None:
        self.now += seconds
        for thread, more in waited.items():
            number = int(thread.removeprefix("t"))
            self.waits[number] = self.waits.get(number, 0) + round(more * SECOND)


def test_the_longest_wait_of_any_thread_does_not_count() -> None:
    machine = Machine()
    patience = machine.patience()
    machine.passes(10.0)
    assert patience.served() == 10.0
    assert patience.slowness() == 1.0
    machine.passes(10.0, t1=2.0, t2=6.0)
    assert patience.served() == 14.0
    assert round(patience.slowness(), 3) == round(20 / 14, 3)


def test_a_thread_that_is_new_has_waited_since_it_began() -> None:
    machine = Machine()
    patience = machine.patience()
    machine.passes(4.0, t3=3.0)
    assert patience.served() == 1.0


def test_a_limit_ends_even_where_all_threads_wait() -> None:
    machine = Machine()
    patience = machine.patience()
    machine.passes(100.0, t1=400.0)
    assert patience.served() == 5.0


def test_looks_within_half_a_second_are_one() -> None:
    machine = Machine()
    patience = machine.patience()
    machine.passes(0.2)
    assert patience.served() == 0.0
    assert patience.slowness() == 1.0
    machine.passes(0.4)
    assert round(patience.served(), 3) == 0.6


def test_a_wait_ends_with_the_first_true_answer_and_with_the_last_one_once_its_time_is_over() -> (
    None
):
    answers = iter(["", "", "here"])
    assert awaited(lambda: next(answers), 60) == "here"
    assert awaited(lambda: "", 0) == ""


def test_linux_counts_the_wait_of_each_thread_of_a_process() -> None:
    ended = threading.Event()
    other = threading.Thread(target=ended.wait)
    other.start()
    try:
        assert {os.getpid(), other.native_id} <= waits_below(os.getpid()).keys()
        assert all(waited >= 0 for waited in waits_below(os.getpid()).values())
    finally:
        ended.set()
        other.join()


def test_a_process_that_is_gone_has_no_threads() -> None:
    assert waits_below(2**22 + 1) == {}


def test_patience_of_this_machine_is_at_most_the_time_that_passed() -> None:
    began = time.monotonic()
    patience = Patience()
    assert 0.0 <= patience.served() <= time.monotonic() - began
