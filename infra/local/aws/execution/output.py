"""Where the output of functions goes: a file per function, and CloudWatch Logs.

The cloud copy is written in batches by a thread and is best effort; the file is not. Lambda writes
it under the function's role, some time after the invocation: a log group that was deleted is made
again if the role allows that, and without the right lines are dropped while the function goes on.
Source: https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs.html and
https://github.com/aws/aws-cdk/issues/32689 (2026-11-28).
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from infra.local.aws.backends import backend
from infra.local.aws.background import repeat
from infra.local.aws.execution.function import FunctionSpec

FLUSH_SECONDS = 1.0
_Stream = tuple[str, str, str]
"""Log group, name of the stream, ARN of the role that writes it."""


class FunctionOutput:
    """Collects the lines all functions print."""

    def __init__(
        self, *, account_id: str, region: str, folder: Path | None, may: Callable[[str, str], bool]
    ) -> None:
        self._account_id = account_id
        self._region = region
        self._folder = folder
        self._may = may
        self._lock = threading.Lock()
        self._copying = threading.Lock()
        self._life = 0
        self._lines: dict[_Stream, list[tuple[int, str]]] = defaultdict(list)
        self._stopped = threading.Event()
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def start(self) -> None:
        repeat(self.flush, name="output", every_seconds=FLUSH_SECONDS, stopped=self._stopped)

    def stop(self) -> None:
        self._stopped.set()

    def clear(self) -> None:
        """Drop what was not copied yet, and what environments started before still print (reset).

        Returns when no copy is under way any more.
        """
        with self._copying, self._lock:
            self._life += 1
            self._lines.clear()

    def writer(self, spec: FunctionSpec, stream: str) -> Callable[[str], None]:
        """Return where one environment's lines go."""
        life = self._life

        def write(line: str) -> None:
            if life == self._life:
                self._write(spec, stream, line)

        return write

    def _write(self, spec: FunctionSpec, stream: str, line: str) -> None:
        if not line:
            return
        with self._lock:
            rows = self._lines[spec.log_group, stream, spec.role]
            rows.append((int(time.time() * 1000), line))
            if self._folder is not None:
                with (self._folder / f"{spec.name}.log").open("a", encoding="utf-8") as file:
                    file.write(line + "\n")

    def flush(self) -> None:
        with self._copying:
            with self._lock:
                lines, self._lines = self._lines, defaultdict(list)
            for (group, stream, role), events in sorted(lines.items()):
                self._put_lines(group, stream, role, events)

    def _put_lines(self, group: str, stream: str, role: str, events: list[tuple[int, str]]) -> None:
        logs = backend("logs", self._account_id, self._region)
        if self._may(role, "logs:CreateLogGroup"):
            logs.ensure_log_group(group)
        # Looked up once: another thread may delete it meanwhile, and the lines with it.
        log = logs.groups.get(group)
        if log is None:
            return
        if stream not in log.streams and self._may(role, "logs:CreateLogStream"):
            log.create_log_stream(stream)
        if stream in log.streams and self._may(role, "logs:PutLogEvents"):
            rows = [{"timestamp": at, "message": text} for at, text in events]
            log.put_log_events(stream, rows)
