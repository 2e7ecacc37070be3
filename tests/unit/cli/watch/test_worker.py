"""The process that proves bounds beside `dovetail watch` and `dovetail top`."""

import multiprocessing
import os
import signal
import time

from functions.cli.watch.worker import proving_worker


def test_ctrl_c_in_the_terminal_leaves_the_worker_alone_and_its_end_waits_for_no_proof() -> None:
    before = signal.getsignal(signal.SIGINT)
    with proving_worker() as worker:
        process = worker.submit(os.getpid).result(timeout=60)
        os.kill(process, signal.SIGINT)
        assert worker.submit(os.nice, 0).result(timeout=60) == min(os.nice(0) + 10, 19)
        proof = worker.submit(time.sleep, 300)
    assert proof.done()
    assert not multiprocessing.active_children()
    assert signal.getsignal(signal.SIGINT) == before
