"""The processes of the embedded world: started, awaited, and ended whatever happens."""

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from infra.local.demo.problem import Problem, last_words
from infra.local.patience import awaited

ROOT = Path(__file__).parents[3]
_START_SECONDS = 60.0
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_STOP_SECONDS = 8.0


class Children:
    """Child processes, each with a log file; ending them leaves nothing behind."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # What they leave in the temporary folder goes with ours.
        self._temporary = folder / "tmp"
        self._temporary.mkdir()
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._logs: list[IO[bytes]] = []

    def start(
        self, name: str, arguments: Sequence[str], *, environment: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Start `python -m ...` and wait for its ready file."""
        self.launch(name, arguments, environment=environment)
        return self.ready(name)

    def launch(
        self, name: str, arguments: Sequence[str], *, environment: Mapping[str, str] | None = None
    ) -> None:
        """Start `python -m ...`, which writes a ready file; `ready` waits for it."""
        telling = ["--ready-file", str(self._ready_file(name))]
        self._ready_file(name).unlink(missing_ok=True)
        self.begin(name, ["-m", *arguments, *telling], environment=environment)

    def ready(self, name: str) -> dict[str, Any]:
        """Wait for the ready file of a child that was launched; return its JSON."""

        def read() -> list[dict[str, Any]]:
            if not self.alive(name):
                raise Problem(f"{name} ended at start: {self._told(name)}")
            try:
                return [json.loads(self._ready_file(name).read_text(encoding="utf-8"))]
            except (FileNotFoundError, json.JSONDecodeError):
                return []

        found = awaited(read, _START_SECONDS)
        if not found:
            raise Problem(f"{name} was not ready after {_START_SECONDS:.0f} s: {self._told(name)}")
        return found[0]

    def begin(
        self, name: str, arguments: Sequence[str], *, environment: Mapping[str, str] | None = None
    ) -> None:
        """Start `python ...` and wait for nothing."""
        self.spawn(name, [sys.executable, *arguments], environment=environment)

    def spawn(
        self, name: str, command: Sequence[str], *, environment: Mapping[str, str] | None = None
    ) -> None:
        """Start any program and wait for nothing.

        It ends with the thread that started it, at the latest.
        """
        log = (self._folder / f"{name}.log").open("ab")
        self._logs.append(log)
        # A group of its own: Ctrl-C at the terminal is ours to hand on, in the right order.
        process = subprocess.Popen(
            list(command),
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONUNBUFFERED": "1",
                "TMPDIR": str(self._temporary),
                **(environment or {}),
            },
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509
        )
        self._running[name] = process

    def wait(self, name: str) -> int:
        """Wait until a child ends by itself; return its exit code."""
        code = self._running[name].wait()
        self.stop(name)
        return code

    def alive(self, name: str) -> bool:
        return name in self._running and self._running[name].poll() is None

    def pid(self, name: str) -> int:
        return self._running[name].pid

    def stop(self, name: str, *, hard: bool = False) -> None:
        """End one child and what it started; `hard` kills it as a crash would."""
        process = self._running.pop(name)
        _signal(process, signal.SIGKILL if hard else signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_SECONDS)
        _signal(process, signal.SIGKILL)
        process.wait()
        if process.stdin is not None:
            process.stdin.close()

    def stop_all(self) -> None:
        """End all children: told at once, the last started first, and waited for in that order."""
        names = list(reversed(self._running))
        for name in names:
            _signal(self._running[name], signal.SIGTERM)
        for name in names:
            self.stop(name)
        for log in self._logs:
            log.close()
        self._logs.clear()

    def _ready_file(self, name: str) -> Path:
        return self._folder / f"{name}.ready"

    def _told(self, name: str) -> str:
        said = last_words(self._folder / f"{name}.log")
        return f"{said} (--keep-logs DIR keeps all it said)"


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Ignore signals that ask for the end: while the world is ending, they ask for nothing new."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asking = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [(signals, signal.signal(signals, signal.SIG_IGN)) for signals in asking]
    try:
        yield
    finally:
        for signals, handler in before:
            signal.signal(signals, handler)


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _end_with_parent() -> None:
    """Ask the kernel to end this child when its parent dies, even of SIGKILL."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
