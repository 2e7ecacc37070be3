"""The embedded AWS API as a child process with a Python handle, for tests and the demo."""

import json
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from infra.local.aws.clients import Access, clients_of
from infra.local.aws.control import ACCOUNT_ID, ControlError, Json
from infra.local.aws.service import Options
from infra.local.patience import awaited

_ROOT = Path(__file__).parents[3]
_START_SECONDS = 60.0
_STOP_SECONDS = 10.0


class EmbeddedAws(AbstractContextManager["EmbeddedAws"]):
    """Starts the server, waits until it answers, ends it with the block."""

    account_id = ACCOUNT_ID

    def __init__(self, options: Options | None = None, *, port: int = 0) -> None:
        self._options = options or Options()
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None
        self.access: Access
        self.region = self._options.region

    @property
    def url(self) -> str:
        return self.access.url

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def __enter__(self) -> Self:
        with tempfile.TemporaryDirectory() as folder:
            ready = Path(folder) / "ready.json"
            self._process = subprocess.Popen(
                self._command(ready),
                env=_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
            )
            self.access = Access.read(json.loads(self._await(ready)))
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.terminate()
        self._process.stdin.close()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def client(self, service: str) -> Any:
        return clients_of(self.access)(service)

    def control(self, verb: str, arguments: Json | None = None) -> Any:
        return call_verb(self.access, verb, arguments)

    def reset(self) -> None:
        self.control("reset")

    def _command(self, ready: Path) -> list[str]:
        options = self._options
        command = [sys.executable, "-m", "infra.local.aws", "--with-parent"]
        command += ["--port", str(self._port), "--ready-file", str(ready)]
        command += ["--region", options.region, "--workers", str(options.workers)]
        command.append("--async-retry-seconds")
        command.append(",".join(str(seconds) for seconds in options.retry_seconds))
        if options.log_dir is not None:
            command += ["--log-dir", str(options.log_dir)]
        return command

    def _await(self, ready: Path) -> str:
        assert self._process is not None
        process = self._process
        if not awaited(lambda: ready.exists() or process.poll() is not None, _START_SECONDS):
            process.kill()
            raise RuntimeError(f"the embedded AWS API was not ready in {_START_SECONDS:.0f} s")
        if process.poll() is not None:
            raise RuntimeError(
                f"the embedded AWS API ended with code {process.returncode} at start: "
                "its error is on standard error"
            )
        return ready.read_text(encoding="utf-8")


def _environment() -> dict[str, str]:
    """This process's environment, with this very project importable from any folder."""
    paths = [str(_ROOT), os.environ.get("PYTHONPATH", "")]
    return dict(os.environ) | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def call_verb(access: Access, verb: str, arguments: Json | None = None) -> Any:
    """Call a control verb of a server, signed with its key."""
    url, body = f"{access.url}/_dovetail/{verb}", json.dumps(arguments or {}).encode()
    headers = {"Content-Type": "application/json"}
    signed = AWSRequest(method="POST", url=url, data=body, headers=headers)
    SigV4Auth(Credentials(access.key_id, access.secret), "dovetail", access.region).add_auth(signed)
    request = urllib.request.Request(  # noqa: S310 - the URL is our own loopback server
        url, data=body, headers=dict(signed.headers.items()), method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310 - as above
            return json.loads(response.read())
    except urllib.error.HTTPError as error:
        answer = json.loads(error.read())
        raise ControlError(answer.get("error") or answer["message"]) from None
