"""One execution environment: a process with AWS's runtime client and a Runtime API for it.

The Runtime API is the small HTTP contract between the Lambda service and a runtime.
Source: https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html (2026-11-21).
"""

import json
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from infra.local.aws.execution.function import FunctionSpec
from infra.local.aws.execution.template import Template
from infra.local.aws.listener import LOOPBACK, Environ, Listener, StartResponse

INIT_SECONDS = 60.0
_INVOCATION = "/2018-06-01/runtime/invocation/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One event on its way to a handler."""

    request_id: str
    payload: bytes
    arn: str
    timeout_seconds: int
    trace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came back; `error_type` is None when the handler returned.

    `broken` says that the environment cannot be used again.
    """

    payload: bytes
    error_type: str | None = None
    broken: bool = False

    @staticmethod
    def failure(error_type: str, message: str) -> "Outcome":
        """An error of the environment itself, in the shape Lambda reports it."""
        body = json.dumps({"errorType": error_type, "errorMessage": message}).encode()
        return Outcome(payload=body, error_type=error_type, broken=True)


class ExecutionEnvironment:
    """One worker process; it handles one invocation at a time."""

    def __init__(
        self,
        spec: FunctionSpec,
        template: Template,
        *,
        folder: Path,
        variables: Mapping[str, str],
        on_line: Callable[[str], None],
    ) -> None:
        self.spec = spec
        self._broken = False
        self._on_line = on_line
        self._inbox: queue.SimpleQueue[Invocation | None] = queue.SimpleQueue()
        self._outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        self._ready = threading.Event()
        self._init_failure: Outcome | None = None
        self._listener = Listener(self._runtime_api)
        self._listener.start()
        ours, theirs = os.pipe()
        lifeline, held = os.pipe()
        self._output, self._lifeline = os.fdopen(ours, "rb"), os.fdopen(held, "wb")
        try:
            self._worker = template.fork(
                spec.handler,
                folder,
                dict(variables) | {"AWS_LAMBDA_RUNTIME_API": f"{LOOPBACK}:{self._listener.port}"},
                lifeline=lifeline,
                output=theirs,
            )
        finally:
            os.close(lifeline)
            os.close(theirs)
        threading.Thread(target=self._follow_output, daemon=True).start()

    @property
    def pid(self) -> int:
        return self._worker.pid

    @property
    def is_alive(self) -> bool:
        return self._worker.is_alive

    @property
    def is_usable(self) -> bool:
        """Whether another invocation may be sent: it lives and never failed as a whole."""
        return not self._broken and self._init_failure is None and self.is_alive

    def wait_ready(self) -> Outcome | None:
        """Wait for the end of initialisation; a failed one is returned."""
        if not self._ready.wait(INIT_SECONDS):
            return Outcome.failure(
                "Runtime.InitTimeout", f"initialisation took longer than {INIT_SECONDS:.0f} s"
            )
        return self._init_failure

    def invoke(self, invocation: Invocation) -> Outcome:
        """Run the handler on one event; the caller kills a broken environment."""
        self._inbox.put(invocation)
        try:
            outcome = self._outcomes.get(timeout=invocation.timeout_seconds)
        except queue.Empty:
            outcome = Outcome.failure(
                "Sandbox.Timedout",
                f"RequestId: {invocation.request_id} Error: Task timed out after "
                f"{invocation.timeout_seconds:.2f} seconds",
            )
        self._broken = outcome.broken
        return outcome

    def kill(self) -> None:
        """End the process group at once and free the port."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._worker.pid, signal.SIGKILL)
        self._inbox.put(None)
        self._worker.wait()
        self._lifeline.close()
        threading.Thread(target=self._listener.stop, daemon=True).start()

    def _follow_output(self) -> None:
        with self._output:
            for raw in self._output:
                self._on_line(raw.decode("utf-8", "replace").rstrip("\r\n"))
        code = self._worker.wait()
        how = f"exit status {code}" if code >= 0 else f"signal: {signal.Signals(-code).name}"
        failure = Outcome.failure("Runtime.ExitError", f"Runtime exited with error: {how}")
        if not self._ready.is_set():
            self._init_failure = failure
            self._ready.set()
        self._outcomes.put(failure)

    def _runtime_api(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        body = environ["wsgi.input"].read()
        if path == _INVOCATION + "next":
            return self._next(start_response)
        if path.endswith("/response"):
            self._outcomes.put(Outcome(payload=body))
        elif path.startswith(_INVOCATION) and path.endswith("/error"):
            self._outcomes.put(Outcome(payload=body, error_type=_error_type(body)))
        elif path == "/2018-06-01/runtime/init/error":
            self._init_failure = Outcome(payload=body, error_type=_error_type(body), broken=True)
            self._ready.set()
        else:
            start_response("404 Not Found", [])
            return [b""]
        start_response("202 Accepted", [("Content-Type", "application/json")])
        return [b'{"status":"OK"}']

    def _next(self, start_response: StartResponse) -> Iterable[bytes]:
        self._ready.set()
        invocation = self._inbox.get()
        if invocation is None:
            start_response("410 Gone", [])
            return [b""]
        deadline = int((time.time() + invocation.timeout_seconds) * 1000)
        start_response(
            "200 OK",
            [
                ("Content-Type", "application/json"),
                ("Lambda-Runtime-Aws-Request-Id", invocation.request_id),
                ("Lambda-Runtime-Deadline-Ms", str(deadline)),
                ("Lambda-Runtime-Invoked-Function-Arn", invocation.arn),
                ("Lambda-Runtime-Trace-Id", invocation.trace),
            ],
        )
        return [invocation.payload]


def _error_type(body: bytes) -> str:
    try:
        error = json.loads(body)
    except ValueError:
        return "Unknown"
    return str(error.get("errorType", "Unknown")) if isinstance(error, dict) else "Unknown"
