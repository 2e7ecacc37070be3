"""A process for proofs, which would hold up everything else in the command's own."""

import multiprocessing
import os
import signal
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Final

_NICE: Final = 10


@contextmanager
def proving_worker() -> Iterator[Executor]:
    """Yield an executor with one process, which is terminated at the end even if it is busy.

    A terminal sends Ctrl-C to all processes of a command. This one ignores it from the start: it is
    started while the signal is ignored here, and inherits that. Must be called by the main thread.
    """
    before = multiprocessing.active_children()
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as worker:
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            worker.submit(os.nice, _NICE)
        finally:
            signal.signal(signal.SIGINT, handler)
        try:
            yield worker
        finally:
            for process in multiprocessing.active_children():
                if process not in before:
                    process.terminate()
            worker.shutdown(wait=True, cancel_futures=True)
