import logging
import threading

import pytest

from infra.local.aws.background import repeat, shielded


def test_a_failing_step_is_logged_and_repeated(caplog: pytest.LogCaptureFixture) -> None:
    stopped, seen = threading.Event(), threading.Semaphore(0)

    def step() -> None:
        seen.release()
        raise ValueError("surprise")

    with caplog.at_level(logging.ERROR):
        repeat(step, name="test", every_seconds=0.001, stopped=stopped)
        assert seen.acquire(timeout=60)
        assert seen.acquire(timeout=60)
        stopped.set()
    assert "surprise" in caplog.text


def test_arguments_reach_a_shielded_call() -> None:
    got: list[tuple[int, str]] = []

    def call(number: int, *, text: str) -> None:
        got.append((number, text))

    shielded(call)(1, text="x")
    assert got == [(1, "x")]
