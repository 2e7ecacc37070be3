"""The garbage collector rests while a function works."""

import gc
from typing import Any

import pytest

from functions.interrupt.handler import handler as interrupt
from functions.provision.handler import handler as provision
from functions.replacement.handler import handler as replacement
from functions.sweep.handler import handler as sweep
from shared.runtime.python_gc import python_gc_afterwards
from tests.functions.conftest import Context

CONTEXT = Context()


class Ring:
    """Refers to itself."""

    def __init__(self) -> None:
        self.me = self


def rings() -> int:
    return sum(1 for found in gc.get_objects() if isinstance(found, Ring))


def test_what_refers_to_itself_is_collected_once_the_work_is_done() -> None:
    def work(*_: object) -> int:
        assert not gc.isenabled()
        for _number in range(10_000):
            Ring()
        return rings()

    try:
        assert python_gc_afterwards(work)({}, CONTEXT) == 10_000
        assert gc.isenabled()
        gc.unfreeze()
        assert rings() == 0
    finally:
        gc.unfreeze()


def test_the_collector_works_again_after_a_failure() -> None:
    def work(*_: object) -> None:
        raise ValueError("no")

    try:
        with pytest.raises(ValueError, match="no"):
            python_gc_afterwards(work)({}, CONTEXT)
        assert gc.isenabled()
    finally:
        gc.unfreeze()


@pytest.mark.parametrize("handler", [provision, sweep, replacement, interrupt])
def test_functions_that_read_whole_clusters_do_without_it(handler: Any) -> None:
    wrapped: Any = python_gc_afterwards(lambda event, context: None)
    assert handler.__code__ is wrapped.__code__
