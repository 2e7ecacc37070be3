"""What the pool must know of a Lambda function, read from moto at each invocation."""

import hashlib
from dataclasses import dataclass
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
