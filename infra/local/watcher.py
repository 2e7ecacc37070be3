"""Watches over the processes of `dovetail up` until they end."""

import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from infra.local.demo.problem import Problem, last_words

_SERVERS: Final = ("aws", "kube", "sim")
_RESTARTS: Final = 5
_WITHIN_SECONDS: Final = 60.0


class Watcher:
    """Restarts the forwarder, as its Deployment would; the end of a server is the world's end."""

    def __init__(
        self, world: Any, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._world = world
        self._say = say
        self._clock = clock
        self._restarts: deque[float] = deque(maxlen=_RESTARTS)

    def watch(self) -> None:
        """Look twice a second, for ever."""
        while True:
            time.sleep(0.5)
            self.look()

    def look(self) -> None:
        """Look once."""
        for server in _SERVERS:
            if not self._world.children.alive(server):
                raise self._ended(server)
        if self._world.children.alive("forwarder"):
            return
        now = self._clock()
        full = len(self._restarts) == _RESTARTS
        if full and now - self._restarts[0] < _WITHIN_SECONDS:
            raise self._ended("forwarder")
        self._restarts.append(now)
        self._say(f"the forwarder ended and is started again; its log: {self._log('forwarder')}")
        self._world.children.stop("forwarder")
        self._world.start_forwarder()

    def _ended(self, name: str) -> Problem:
        said = last_words(self._log(name))
        return Problem(f"{name} ended by itself: {said} (--keep-logs DIR keeps all logs)")

    def _log(self, name: str) -> Any:
        return self._world.log(name)
