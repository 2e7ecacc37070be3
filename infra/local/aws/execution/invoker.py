"""The Lambda service: synchronous and asynchronous invocations of deployed functions."""

import hashlib
import io
import shutil
import threading
import time
import uuid
import zipfile
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from infra.local.aws.backends import backend
from infra.local.aws.execution.environment import Invocation, Outcome
from infra.local.aws.execution.function import FunctionSpec, read_function, spec_of, surroundings
from infra.local.aws.execution.output import FunctionOutput
from infra.local.aws.execution.pool import EnvironmentPool
from infra.local.aws.execution.recursion import continued

_REMEMBERED = 20_000


class ThrottledError(Exception):
    """The function's reserved concurrency is used up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InvocationRecord:
    """One finished invocation, for tests and the demo."""

    function: str
    request_id: str
    started_at: datetime
    duration_millis: float
    cold: bool
    error_type: str | None

    def as_json(self) -> dict[str, Any]:
        """The record as the control verb answers it."""
        return {
            "function": self.function,
            "requestId": self.request_id,
            "at": self.started_at.isoformat(),
            "durationMillis": round(self.duration_millis, 2),
            "cold": self.cold,
            "error": self.error_type,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class InvocationResult:
    """Outcome of one synchronous invocation."""

    outcome: Outcome
    request_id: str
    version: str

    @property
    def failed(self) -> bool:
        return self.outcome.error_type is not None


class Invoker:
    """Runs functions that live in moto's Lambda backend."""

    def __init__(
        self,
        *,
        url: str,
        account_id: str,
        region: str,
        workers: int,
        code_root: Path,
        output: FunctionOutput,
    ) -> None:
        self.account_id = account_id
        self.region = region
        self._url = url
        self._code = CodeStore(code_root)
        self._output = output
        self._pool = EnvironmentPool(self._prepare, workers=workers)
        self._lock = threading.Lock()
        self._running: Counter[str] = Counter()
        self._records: deque[InvocationRecord] = deque(maxlen=_REMEMBERED)

    def invoke(
        self, name: str, payload: bytes, *, qualifier: str | None = None, traces: Sequence[str] = ()
    ) -> InvocationResult:
        """Run a function and wait for its answer.

        Raises:
            ThrottledError: its reserved concurrency is used up.
            RecursiveLoopError: its chain of requests has invoked it too often.
        """
        spec = spec_of(read_function(self.account_id, self.region, name, qualifier))
        trace = continued(spec.arn, traces, allowed=spec.allows_loops)
        self._enter(spec)
        started, clock = datetime.now(UTC), time.monotonic()
        request_id = str(uuid.uuid4())
        try:
            outcome, cold = self._run(spec, payload, request_id, trace)
        finally:
            with self._lock:
                self._running[spec.name] -= 1
        record = InvocationRecord(
            function=spec.name,
            request_id=request_id,
            started_at=started,
            duration_millis=(time.monotonic() - clock) * 1000,
            cold=cold,
            error_type=outcome.error_type,
        )
        with self._lock:
            self._records.append(record)
        return InvocationResult(outcome=outcome, request_id=request_id, version=spec.version)

    def exists(self, name: str, qualifier: str | None = None) -> FunctionSpec:
        return spec_of(read_function(self.account_id, self.region, name, qualifier))

    def records(self, name: str | None) -> list[dict[str, Any]]:
        """Finished invocations, oldest first, of one function or all."""
        with self._lock:
            return [row.as_json() for row in self._records if name in (None, row.function)]

    def processes(self) -> tuple[int, ...]:
        return self._pool.processes()

    def kill(self, name: str) -> int:
        """Kill the environments of a function that are at work; return how many."""
        return self._pool.kill_busy(name)

    def reset(self) -> None:
        self._pool.kill_all()
        self._output.clear()
        with self._lock:
            self._records.clear()

    def stop(self) -> None:
        self._pool.stop()

    def _enter(self, spec: FunctionSpec) -> None:
        with self._lock:
            limit = spec.reserved_concurrency
            if limit is not None and self._running[spec.name] >= limit:
                raise ThrottledError(f"Rate Exceeded: {spec.name} has {limit} reserved")
            self._running[spec.name] += 1

    def _run(
        self, spec: FunctionSpec, payload: bytes, request_id: str, trace: str
    ) -> tuple[Outcome, bool]:
        if not spec.runtime.startswith("python"):
            message = f"runtime {spec.runtime!r} is not emulated: only python functions run here"
            return Outcome.failure("Runtime.NotEmulated", message), False
        invocation = Invocation(
            request_id=request_id,
            payload=payload or b"{}",
            arn=spec.arn,
            timeout_seconds=spec.timeout_seconds,
            trace=trace,
        )
        return self._pool.run(spec, invocation)

    def _prepare(self, spec: FunctionSpec) -> tuple[Path, Mapping[str, str], Callable[[str], None]]:
        function = read_function(self.account_id, self.region, spec.name, None)
        folder = self._code.folder_of(function.code_bytes)
        stream = f"{datetime.now(UTC):%Y/%m/%d}/[$LATEST]{uuid.uuid4().hex}"
        variables = surroundings(
            spec, url=self._url, region=self.region, folder=folder, stream=stream
        )
        variables |= self._credentials(spec)
        return folder, variables, self._output.writer(spec, stream)

    def _credentials(self, spec: FunctionSpec) -> dict[str, str]:
        role = backend("sts", self.account_id, self.region).assume_role(
            region_name=self.region,
            role_session_name=spec.name[:64],
            role_arn=spec.role,
            policy="",
            duration=43_200,
            external_id="",
        )
        return {
            "AWS_ACCESS_KEY_ID": role.access_key_id,
            "AWS_SECRET_ACCESS_KEY": role.secret_access_key,
            "AWS_SESSION_TOKEN": role.session_token,
        }


class CodeStore:
    """Unpacks deployment packages into `root`, one folder per content hash."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()

    def folder_of(self, package: bytes) -> Path:
        """Return the folder that holds the unpacked zip; it may be shared by functions."""
        digest = hashlib.sha256(package).hexdigest()[:24]
        folder = self._root / digest
        with self._lock:
            if not folder.exists():
                partial = self._root / f"{digest}.partial"
                shutil.rmtree(partial, ignore_errors=True)
                with zipfile.ZipFile(io.BytesIO(package)) as archive:
                    archive.extractall(partial)
                partial.rename(folder)
        return folder
