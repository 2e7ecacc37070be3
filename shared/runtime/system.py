"""Clock, ids and environment of the process."""

import os
import secrets
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta


class SystemClock:
    """The real time."""

    def now(self) -> datetime:
        """Return the current time, aware, UTC."""
        return datetime.now(UTC)

    def sleep(self, span: timedelta) -> None:
        """Wait, as provision does while the list of pending pods still changes."""
        time.sleep(max(span.total_seconds(), 0))


def new_plan_id() -> str:
    """Return a plan id that sorts by time, such as `20261121t101500-3f9a1c`."""
    return f"{datetime.now(UTC):%Y%m%dt%H%M%S}-{secrets.token_hex(3)}"


def new_trace() -> str:
    """Return the header of a trace that begins now and is sampled.

    Source: https://docs.aws.amazon.com/xray/latest/devguide/xray-concepts.html#xray-concepts-tracingheader
    (2026-08).
    """
    begun = int(datetime.now(UTC).timestamp())
    return f"Root=1-{begun:08x}-{secrets.token_hex(12)};Sampled=1"


def environment() -> Mapping[str, str]:
    """Return the process's environment."""
    return os.environ


def region() -> str:
    """Return the Region this process works in.

    Lambda always sets it. Users may have it in their profile, as for the aws CLI.

    Raises:
        PermanentError: If the SDK's configuration is needed and cannot be used.
    """
    named = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if named:
        return named
    # Only here: the forwarder uses this module and does without boto3.
    from shared.aws.session import configured_region  # noqa: PLC0415

    return configured_region() or "us-east-1"


def function_name() -> str:
    """Return the name of the Lambda function this process is, `dovetail` elsewhere."""
    return os.environ.get("AWS_LAMBDA_FUNCTION_NAME") or "dovetail"
