"""Errors on order: the next calls of an API fail, before or after the work is done."""

import threading
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One error.

    Attributes:
        code: AWS error code.
        status: HTTP status.
        after: the call is carried out and only its answer is lost, as in a broken connection.
    """

    code: str
    status: int
    after: bool


class Faults:
    """Ordered errors by API name; each is used up by one call, oldest first."""

    def __init__(self) -> None:
        self._ordered: dict[str, list[Fault]] = {}
        self._lock = threading.Lock()

    def order(self, api: str, fault: Fault, count: int) -> None:
        """Let the next `count` calls of an API fail, behind those ordered before."""
        with self._lock:
            self._ordered.setdefault(api, []).extend([fault] * count)

    def next(self, api: str) -> Fault | None:
        """Take the error of this call, if any."""
        with self._lock:
            waiting = self._ordered.get(api)
            return waiting.pop(0) if waiting else None

    def reset(self) -> None:
        """Cancel all orders."""
        with self._lock:
            self._ordered.clear()
