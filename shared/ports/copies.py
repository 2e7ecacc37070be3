"""Copies of what a cluster has, for processes that begin; few functions load this."""

from typing import Protocol


class Copies(Protocol):
    """Documents that are overwritten: what they hold can be read anew, so each may be lost."""

    def put(self, key: str, document: bytes) -> None:
        """Write a document over the one that is there."""
        ...

    def get(self, key: str) -> bytes:
        """Return a document.

        Raises:
            NotFoundError: If there is none.
        """
        ...
