"""What the pool must know of a Lambda function, read from moto, and what its handler sees.

Source of the variables:
https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html (2026-11-21).
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.local.aws.backends import backend


class FunctionNotFoundError(Exception):
    """There is no function of that name (or no such version or alias)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSpec:
    """One deployed function; equal values may share execution environments.

    `timeout_seconds` and `memory_mebibytes` are Lambda's own fields; `variables` are the
    configured environment variables sorted by name.
    """

    name: str
    arn: str
    version: str
    handler: str
    runtime: str
    role: str
    timeout_seconds: int
    memory_mebibytes: int
    variables: tuple[tuple[str, str], ...]
    code_sha256: str
    log_group: str
    reserved_concurrency: int | None
    allows_loops: bool

    @property
    def key(self) -> str:
        """Identity of code and configuration: another key needs a fresh environment."""
        text = repr((self.handler, self.role, self.variables, self.code_sha256, self.arn))
        text += repr((self.memory_mebibytes, self.timeout_seconds, self.log_group))
        return hashlib.sha256(text.encode()).hexdigest()


def read_function(account_id: str, region: str, name: str, qualifier: str | None) -> Any:
    """Find moto's function by name, partial ARN or ARN."""
    from moto.awslambda.exceptions import UnknownAliasException, UnknownFunctionException

    try:
        return backend("lambda", account_id, region).get_function(name, qualifier)
    except (UnknownFunctionException, UnknownAliasException, KeyError) as error:
        raise FunctionNotFoundError(f"Function not found: {name}") from error


def spec_of(function: Any) -> FunctionSpec:
    logging = getattr(function, "logging_config", None) or {}
    reserved = function.reserved_concurrency
    return FunctionSpec(
        name=function.function_name,
        arn=function.function_arn,
        version=str(function.version),
        handler=function.handler or "",
        runtime=function.run_time or "",
        role=function.role,
        timeout_seconds=int(function.timeout),
        memory_mebibytes=int(function.memory_size),
        variables=tuple(
            sorted((str(key), str(value)) for key, value in function.environment_vars.items())
        ),
        code_sha256=function.code_sha_256,
        log_group=logging.get("LogGroup") or f"/aws/lambda/{function.function_name}",
        reserved_concurrency=None if reserved is None else int(reserved),
        allows_loops=getattr(function, "recursive_loop", "Terminate") == "Allow",
    )


_INHERITED = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TMPDIR", "VIRTUAL_ENV")


def inherited() -> dict[str, str]:
    """Return what reaches a worker of the server's own environment.

    Nothing else does, so a developer's AWS profile or proxy settings cannot change what a function
    does.
    """
    return {name: os.environ[name] for name in _INHERITED if name in os.environ}


def surroundings(
    spec: FunctionSpec, *, url: str, region: str, folder: Path, stream: str
) -> dict[str, str]:
    """Build the environment of one worker, without credentials."""
    lambda_own = {
        "_HANDLER": spec.handler,
        "AWS_DEFAULT_REGION": region,
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{spec.runtime}",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(spec.memory_mebibytes),
        "AWS_LAMBDA_FUNCTION_NAME": spec.name,
        "AWS_LAMBDA_FUNCTION_VERSION": spec.version,
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_LAMBDA_LOG_GROUP_NAME": spec.log_group,
        "AWS_LAMBDA_LOG_STREAM_NAME": stream,
        "AWS_REGION": region,
        "LAMBDA_RUNTIME_DIR": str(folder),
        "LAMBDA_TASK_ROOT": str(folder),
        "TZ": ":UTC",
    }
    local = {
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL": url,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "NO_PROXY": "127.0.0.1,localhost",
        "PYTHONPATH": str(folder),
        "PYTHONSAFEPATH": "1",
    }
    return inherited() | lambda_own | dict(spec.variables) | local
