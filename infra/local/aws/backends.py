"""moto's state, by service: the emulated resources themselves.

Everything here is `Any` on purpose. What moto keeps is private to it, the repairs' self-tests
and the version guard say when it changes.
"""

from importlib import import_module
from typing import Any

_PARTITIONED = frozenset({"iam", "s3", "sts"})
"""Services whose state belongs to the partition, not to a Region."""


def backend(service: str, account_id: str, region: str) -> Any:
    from moto.backends import get_backend

    place = "aws" if service in _PARTITIONED else region
    everything: Any = get_backend(service)  # type: ignore[call-overload]
    return everything[account_id][place]


def machine_backend(account_id: str, region: str) -> Any:
    """Return the backend whose state machines really run."""
    return import_module("moto.stepfunctions.parser.models").stepfunctions_parser_backends[
        account_id
    ][region]


def moto_name(module: str, name: str) -> Any:
    """Return a name of a moto module, for example a class that a repair changes."""
    return getattr(import_module(f"moto.{module}"), name)
