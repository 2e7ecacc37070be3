"""Decisions in memory."""

from shared.model.errors import ConflictError, NotFoundError


class FakeDecisions:
    """Implements shared.ports.Decisions; `documents` holds what was written, by key."""

    def __init__(self) -> None:
        self.documents: dict[str, bytes] = {}
        self.calls: list[tuple[str, str]] = []

    def put(self, key: str, document: bytes) -> None:
        self.calls.append(("put", key))
        if self.documents.setdefault(key, bytes(document)) != document:
            raise ConflictError(f"{key}: other bytes are stored already")

    def get(self, key: str) -> bytes:
        self.calls.append(("get", key))
        if key not in self.documents:
            raise NotFoundError(f"{key}: no such document")
        return self.documents[key]

    def keys(self, prefix: str, after: str = "") -> tuple[str, ...]:
        self.calls.append(("keys", prefix))
        return tuple(
            sorted(key for key in self.documents if key.startswith(prefix) and key > after)
        )
