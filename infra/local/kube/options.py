"""How writes and deletes are to be made."""

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """How a write is to be made.

    Attributes:
        dry_run: Decide and answer, store nothing.
        validation: `Strict`, `Warn` or `Ignore` unknown fields.
        warnings: Filled with what the answer should warn of.
    """

    dry_run: bool = False
    validation: str = "Warn"
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """How a delete is to be made; None where the client said nothing."""

    grace_seconds: int | None = None
    uid: str | None = None
    version: str | None = None
    propagation: str | None = None
    dry_run: bool = False


def timestamp(moment: datetime) -> str:
    """Write a time as the API does: RFC 3339 in UTC, whole seconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
