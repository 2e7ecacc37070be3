"""Copies in memory."""

from collections.abc import Callable

from shared.model.errors import AutoscalerError, NotFoundError


class FakeCopies:
    """Implements shared.ports.copies.Copies; `documents` holds what was written last, by key.

    While `error` is set, each call raises it.
    """

    def __init__(self) -> None:
        self.documents: dict[str, bytes] = {}
        self.error: AutoscalerError | None = None

    def put(self, key: str, document: bytes) -> None:
        if self.error is not None:
            raise self.error
        self.documents[key] = bytes(document)

    def get(self, key: str) -> bytes:
        if self.error is not None:
            raise self.error
        if key not in self.documents:
            raise NotFoundError(f"{key}: no such document")
        return self.documents[key]

    def change(self, change: Callable[[bytes], bytes]) -> None:
        """Change what was written, behind the back of who wrote it."""
        self.documents = {key: change(text) for key, text in self.documents.items()}
