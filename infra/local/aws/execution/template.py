"""The template process of all execution environments, as the server sees it."""

import json
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from infra.local.aws.execution.function import inherited

_WORKER = Path(__file__).with_name("worker.py")
_LIMIT = 1 << 16


@dataclass(slots=True)
class Worker:
    """A process that was forked for one environment."""

    pid: int
    _code: int = 0
    _ended: threading.Event = field(default_factory=threading.Event)

    @property
    def is_alive(self) -> bool:
        return not self._ended.is_set()

    def wait(self) -> int:
        """Wait for its end; return its exit code, which is negative for a signal."""
        self._ended.wait()
        return self._code

    def end(self, code: int) -> None:
        self._code = code
        self._ended.set()


class Template:
    """Forks processes from one that is started when the first is asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._forked: queue.SimpleQueue[Worker | None] = queue.SimpleQueue()

    def fork(
        self,
        handler: str,
        folder: Path,
        variables: Mapping[str, str],
        *,
        lifeline: int,
        output: int,
    ) -> Worker:
        """Start the runtime client for a handler, in the folder of its code.

        Args:
            lifeline: Descriptor at whose end it leaves.

        Raises:
            RuntimeError: If the template cannot be started.
        """
        order = {"handler": handler, "folder": str(folder), "variables": dict(variables)}
        text = json.dumps(order).encode()
        with self._lock:
            # One that was killed is started anew; one that cannot start tells its error itself.
            worker = self._ask(text, [lifeline, output]) or self._ask(text, [lifeline, output])
        if worker is None:
            raise RuntimeError("the template of the functions' processes ended at its start")
        return worker

    def stop(self) -> None:
        """End the template; what it has forked ends by its lifeline."""
        with self._lock:
            self._end()

    def _ask(self, order: bytes, descriptors: list[int]) -> Worker | None:
        control = self._control or self._start()
        with suppress(BrokenPipeError):
            socket.send_fds(control, [order], descriptors)
        worker = self._forked.get()
        if worker is None:
            self._end()
        return worker

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(  # fixed command
                [sys.executable, "-P", "-u", str(_WORKER), str(theirs.fileno())],
                env=inherited(),
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                process_group=0,
            )
        self._control, self._forked = ours, queue.SimpleQueue()
        threading.Thread(target=_follow, args=(ours, self._forked), daemon=True).start()
        return ours

    def _end(self) -> None:
        if self._control is None or self._process is None:
            return
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        self._process.kill()
        self._process.wait()
        self._control.close()
        self._control = None


def _follow(control: socket.socket, forked: "queue.SimpleQueue[Worker | None]") -> None:
    """Hand out what is forked, note what has ended; all has when the template has."""
    workers: dict[int, Worker] = {}
    with suppress(OSError):
        while message := control.recv(_LIMIT):
            told = json.loads(message)
            if "code" in told:
                workers.pop(told["pid"]).end(told["code"])
            else:
                worker = workers[told["pid"]] = Worker(told["pid"])
                forked.put(worker)
    for worker in workers.values():
        worker.end(-signal.SIGKILL)
    forked.put(None)
