"""Scripts of lists and watches, and a reflector whose waits take no time."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from shared.kube.reflector import Reflector, ReflectorOptions
from tests.contract.kube.scripted import Answer, ScriptedServer, scripted
from tests.waiting import until

Seen = tuple[str, str]  # uid, resourceVersion
PATH = "/api/v1/pods"


def pod(uid: str, version: int, **more: Any) -> dict[str, Any]:
    return {"metadata": {"uid": uid, "name": uid, "resourceVersion": str(version), **more}}


def event(kind: str, uid: str, version: int) -> dict[str, Any]:
    return {"type": kind, "object": pod(uid, version)}


def bookmark(version: int) -> dict[str, Any]:
    return {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version)}}}


def error(code: int, reason: str) -> dict[str, Any]:
    status = {"kind": "Status", "code": code, "reason": reason, "message": "scripted"}
    return {"type": "ERROR", "object": status}


def listed(version: int, *items: Any, token: str = "") -> Answer:
    metadata = {"resourceVersion": str(version), "continue": token}
    return Answer(body={"metadata": metadata, "items": list(items)})


def status(code: int, reason: str = "x") -> Answer:
    return Answer(status=code, body={"kind": "Status", "code": code, "reason": reason})


HANG = Answer(lines=[], then="hang")


def project(raw: Any) -> Seen:
    return raw["metadata"]["uid"], raw["metadata"]["resourceVersion"]


class Watched:
    """A reflector whose waits take no time, with what it reported."""

    def __init__(
        self, server: ScriptedServer, max_pauses: int = 50, *, optional: bool = False
    ) -> None:
        self.server = server
        self.changes: list[tuple[str | None, str | None]] = []
        self.pauses: list[float] = []
        self.synced = threading.Event()
        self._arrived = threading.Condition()
        self._max_pauses = max_pauses
        self.now = 0.0
        self.reflector = Reflector(
            server.api,
            PATH,
            project,
            self._changed,
            synced=self.synced.set,
            options=ReflectorOptions(
                optional=optional,
                page_size=2,
                clock=lambda: self.now,
                spread=lambda: 0.5,
                pause=self._pause,
            ),
        )

    def _changed(self, old: Seen | None, new: Seen | None) -> None:
        with self._arrived:
            self.changes.append((old and ":".join(old), new and ":".join(new)))
            self._arrived.notify_all()

    def _pause(self, seconds: float) -> bool:
        with self._arrived:
            self.pauses.append(seconds)
            self._arrived.notify_all()
        return len(self.pauses) >= self._max_pauses

    def until(self, condition: Callable[[], bool]) -> None:
        with self._arrived:
            assert self._arrived.wait_for(condition, 60), (self.changes, self.server.requests)

    def until_requests(self, count: int) -> None:
        until(lambda: len(self.server.requests) >= count, f"{count} requests")

    @property
    def watched_from(self) -> list[str]:
        return [
            request.query["resourceVersion"]
            for request in self.server.requests
            if "watch" in request.query
        ]

    @property
    def lists(self) -> int:
        return sum("watch" not in request.query for request in self.server.requests)


@contextmanager
def watching(*script: Answer, max_pauses: int = 50, optional: bool = False) -> Iterator[Watched]:
    with scripted(script) as server:
        watched = Watched(server, max_pauses, optional=optional)
        watched.reflector.start()
        try:
            yield watched
        finally:
            watched.reflector.stop(timedelta(seconds=60))
        assert not watched.reflector.is_alive
