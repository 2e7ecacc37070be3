"""The process: threads, failures of the bus, and the end."""

import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Self

import pytest

from functions.forwarder import main as module
from functions.forwarder.main import Forwarder
from functions.forwarder.observer import STALE_AFTER
from functions.forwarder.views import PodView
from shared.model.errors import UnavailableError
from shared.model.messages.message import Message, MessageKind
from tests.unit.forwarder.views import T0

WAITING = PodView("shop", "p", "uid-p", "1", "", waits_for_capacity=True, occupies_node=True)


class Bus:
    """Keeps what was published; plays a script of refusals first."""

    def __init__(self, *script: Exception | tuple[int, ...]) -> None:
        self.script = list(script)
        self.heard: list[Message] = []
        self._changed = threading.Condition()

    def publish(self, messages: Sequence[Message]) -> tuple[int, ...]:
        with self._changed:
            answer = self.script.pop(0) if self.script else ()
            if isinstance(answer, Exception):
                raise answer
            self.heard += [message for n, message in enumerate(messages) if n not in answer]
            self._changed.notify_all()
            return answer

    def until(self, *kinds: MessageKind) -> None:
        with self._changed:
            heard = self._changed.wait_for(lambda: set(kinds) <= {m.kind for m in self.heard}, 5)
        assert heard, self.heard


class StillWatch:
    """A watch that syncs at once and reports what the test hands it."""

    def __init__(
        self,
        changed: Callable[[Any, Any], None],
        synced: Callable[[], None],
        served: Callable[[], None],
    ) -> None:
        self.changed = changed
        self.served = served
        self._synced = synced
        self.is_alive = False

    def start(self) -> None:
        self.is_alive = True
        self._synced()

    def stop(self, wait: timedelta = timedelta()) -> None:
        self.is_alive = False


class Parts:
    def __init__(self) -> None:
        self.watches: dict[str, StillWatch] = {}

    def watch(
        self,
        collection: str,
        view: Callable[[Any], Any],
        changed: Callable[[Any, Any], None],
        synced: Callable[[], None],
        served: Callable[[], None],
    ) -> StillWatch:
        self.watches[collection] = StillWatch(changed, synced, served)
        return self.watches[collection]


class Running:
    """A forwarder in a thread, with what `run` returned."""

    def __init__(self, bus: Bus) -> None:
        self.parts = Parts()
        self.forwarder = Forwarder("c1", bus, self.parts)
        self.clean: bool | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        self.clean = self.forwarder.run()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        began = time.monotonic()
        self.forwarder.stop()
        self._thread.join(5)
        assert not self._thread.is_alive()
        assert time.monotonic() - began < 2.0


def test_a_change_is_heard_on_the_bus() -> None:
    bus = Bus()
    with Running(bus) as running:
        bus.until(MessageKind.HEARTBEAT)
        assert running.forwarder.is_alive()
        assert running.forwarder.is_ready()
        running.parts.watches["pods"].changed(None, WAITING)
        bus.until(MessageKind.POD_PENDING)
    assert running.clean is True
    assert not running.forwarder.is_alive()


def test_it_is_not_ready_while_a_collection_is_no_longer_served() -> None:
    now = T0
    forwarder = Forwarder("c1", Bus(), parts := Parts(), lambda: now)
    assert not forwarder.is_ready()
    for watch in parts.watches.values():
        watch.start()
    assert forwarder.is_ready()
    now += STALE_AFTER
    for collection in ("nodes", "nodepools", "provisioners"):
        parts.watches[collection].served()
    assert not forwarder.is_ready()
    assert "dovetail_forwarder_synced 0" in forwarder.metrics()
    parts.watches["pods"].served()
    assert forwarder.is_ready()
    assert "dovetail_forwarder_synced 1" in forwarder.metrics()


def test_failed_publication_to_the_bus_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "functions.forwarder.outgoing_messages.FIRST_DELAY", timedelta(seconds=0.01)
    )
    bus = Bus(UnavailableError("down"), (0,))
    with Running(bus) as running:
        running.parts.watches["pods"].changed(None, WAITING)
        bus.until(MessageKind.POD_PENDING, MessageKind.HEARTBEAT)


def test_what_is_waiting_at_the_end_is_still_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("functions.forwarder.outgoing_messages.COALESCE", timedelta(seconds=60))
    bus = Bus()
    with Running(bus) as running:
        running.parts.watches["pods"].changed(None, WAITING)
    assert {message.kind for message in bus.heard} == {
        MessageKind.POD_PENDING,
        MessageKind.HEARTBEAT,
    }


@pytest.mark.parametrize("answer", [UnavailableError("down"), (0,)])
def test_a_dead_bus_does_not_hold_up_the_end(
    monkeypatch: pytest.MonkeyPatch, answer: Exception | tuple[int, ...]
) -> None:
    monkeypatch.setattr("functions.forwarder.outgoing_messages.COALESCE", timedelta(seconds=60))
    bus = Bus(*[answer] * 9)
    with Running(bus) as running:
        running.parts.watches["pods"].changed(None, WAITING)
    assert bus.heard == []
    assert running.clean is True


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_publisher_that_breaks_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TICK", timedelta(seconds=0.05))
    with Running(Bus(ZeroDivisionError())) as running:
        running._thread.join(5)
        assert running.clean is False


def test_a_missing_setting_is_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("DOVETAIL_CLUSTER", raising=False)
    assert module.main() == 2
    assert capsys.readouterr().err.startswith("forwarder: DOVETAIL_CLUSTER: is missing: set it")
