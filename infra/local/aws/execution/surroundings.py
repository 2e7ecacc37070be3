"""The environment variables a handler sees: Lambda's own, the function's, the local endpoint.

Source: https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html (2026-11-21).
"""

import os
from pathlib import Path

from infra.local.aws.execution.function import FunctionSpec

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
