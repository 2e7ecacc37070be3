"""What counts as served: a whole list, a watch that opens, and a kind that need not exist."""

from collections.abc import Iterator
from typing import Any, cast

import pytest

from shared.aws.event_bus import EventBusPublisher
from shared.kube.api import KubeApi, Reply
from shared.kube.reflector import Reflector
from shared.model.errors import UnauthorizedError
from shared.runtime.forwarder import ForwarderParts
from shared.settings import ForwarderSettings

SETTINGS = ForwarderSettings(cluster="c1", bus="bus")
BUS = EventBusPublisher("bus")
LISTED = Reply(status=200, body={"metadata": {"resourceVersion": "5"}, "items": []})
MORE = Reply(status=200, body={"metadata": {"resourceVersion": "5", "continue": "x"}, "items": []})
FORBIDDEN = Reply(status=403, body={"message": "forbidden"})
ABSENT = Reply(status=404, body={"message": "no such kind"})


class Quiet:
    """A watch that ends at once."""

    def lines(self) -> Iterator[bytes]:
        return iter(())

    def interrupt(self) -> None:
        pass

    def close(self) -> None:
        pass


class Api:
    """Plays a script of answers, each to a list or a watch, and then ends the watch."""

    def __init__(self, *script: Reply | Quiet | Exception) -> None:
        self._script = list(script)
        self.watch: Reflector[Any] | None = None

    def send(self, *_: Any, **__: Any) -> Any:
        return self._next()

    def stream(self, *_: Any, **__: Any) -> Any:
        return self._next()

    def _next(self) -> Reply | Quiet:
        answer = self._script.pop(0)
        if not self._script:
            assert self.watch is not None
            self.watch.stop()
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize(
    ("collection", "script", "served"),
    [
        ("pods", [LISTED, UnauthorizedError("watch: 403")], 1),
        ("pods", [MORE, FORBIDDEN], 0),
        ("pods", [FORBIDDEN], 0),
        ("pods", [ABSENT], 0),
        ("nodepools", [ABSENT], 1),
        ("nodepools", [FORBIDDEN], 0),
        ("pods", [LISTED, Quiet()], 2),
    ],
    ids=[
        "list without watch",
        "half a list",
        "nothing",
        "no pods",
        "no NodePools",
        "NodePools without a right",
        "list and watch",
    ],
)
def test_what_the_api_server_serves_is_reported(
    collection: str, script: list[Reply | Quiet | Exception], served: int
) -> None:
    reported: list[str] = []
    api = Api(*script)
    parts = ForwarderParts(settings=SETTINGS, bus=BUS, api=cast("KubeApi", api))
    watch = parts.watch(
        collection, dict, lambda *_: None, lambda: None, lambda: reported.append(collection)
    )
    api.watch = cast("Reflector[Any]", watch)
    api.watch.run()
    assert len(reported) == served
