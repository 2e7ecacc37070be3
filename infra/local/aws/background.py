"""Threads that outlive a surprise: what moto throws is logged, and the work goes on."""

import logging
import threading
from collections.abc import Callable
from typing import ParamSpec

P = ParamSpec("P")
_LOG = logging.getLogger(__name__)


def shielded(call: Callable[P, None]) -> Callable[P, None]:
    """Wrap the outermost function of a thread so that a failure is logged, not lost."""

    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            call(*args, **kwargs)
        except Exception:  # noqa: BLE001 - outermost, see below
            # Outermost: a pool would drop the error, and a loop would end for good.
            _LOG.exception("%s failed", getattr(call, "__qualname__", call))

    return run


def repeat(
    step: Callable[[], None], *, name: str, every_seconds: float, stopped: threading.Event
) -> None:
    """Run `step` again and again in a daemon thread until `stopped` is set."""
    safe = shielded(step)

    def run() -> None:
        while not stopped.wait(every_seconds):
            safe()

    threading.Thread(target=run, daemon=True, name=name).start()
