"""Copies of a cluster's objects, for processes that start later; few functions load this."""

from typing import Protocol


class Copies(Protocol):
    """Documents that are overwritten. Each may be lost: its content can be read again."""

    def put(self, key: str, document: bytes) -> None:
        """Write a document; it replaces the existing one."""
        ...

    def get(self, key: str) -> bytes:
        """Return a document.

        Raises:
            NotFoundError: If there is none.
        """
        ...
