"""The process: a watch of each collection, one publisher, and a clean end."""

import logging
import random
import signal
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

from functions.forwarder.health import serve_health
from functions.forwarder.logs import configure
from functions.forwarder.metrics import CONTENT_TYPE, exposition
from functions.forwarder.publish import Bus, Outgoing
from functions.forwarder.views import (
    View,
    view_node,
    view_node_pool,
    view_pod,
    view_provisioner,
)
from functions.forwarder.watch import Announcement, Collection, Observer
from shared.model.errors import AutoscalerError
from shared.runtime.forwarder import ForwarderParts, Watch, forwarder_parts
from shared.settings import SettingsError

TICK: Final = timedelta(seconds=1)
SILENT_FOR: Final = timedelta(seconds=60)
_LOG: Final = logging.getLogger(__name__)


class Parts(Protocol):
    """Where watches come from."""

    def watch(
        self,
        collection: str,
        view: Callable[[Any], Any],
        changed: Callable[[Any, Any], None],
        synced: Callable[[], None],
        served: Callable[[], None],
    ) -> Watch:
        """Return a watch of a collection, not yet started."""
        ...


def utc_now() -> datetime:
    """Return the current time."""
    return datetime.now(UTC)


class Forwarder:
    """Runs until `stop`: watches report into the observer, one thread publishes.

    Args:
        cluster: Its name.
        bus: Where messages go.
        parts: Where watches come from.
        now: The current time, UTC.
    """

    def __init__(
        self, cluster: str, bus: Bus, parts: Parts, now: Callable[[], datetime] = utc_now
    ) -> None:
        self._bus = bus
        self._now = now
        self._observer = Observer()
        self._outgoing = Outgoing(cluster, random.random)
        self._lock = threading.Lock()
        self._news = threading.Event()
        self._stopped = threading.Event()
        self._last_turn = now()
        self._began = now()
        self._watches = [
            parts.watch(
                collection,
                view,
                self._changed,
                self._synced_of(collection),
                self._served_of(collection),
            )
            for collection, view in (
                (Collection.PODS, view_pod),
                (Collection.NODES, view_node),
                (Collection.PROVISIONERS, view_provisioner),
                (Collection.NODE_POOLS, view_node_pool),
            )
        ]
        self._publisher = threading.Thread(target=self._publish, name="publisher", daemon=True)

    def is_alive(self) -> bool:
        """Return whether every thread runs and the publisher has had a turn lately."""
        return (
            self._publisher.is_alive()
            and all(watch.is_alive for watch in self._watches)
            and self._now() - self._last_turn < SILENT_FOR
        )

    def is_ready(self) -> bool:
        """Return whether all collections have been read and the API server still serves them."""
        with self._lock:
            return self._observer.is_current(self._now())

    def metrics(self) -> str:
        """Return what Prometheus reads."""
        with self._lock:
            return exposition(self._observer, self._outgoing, self._now())

    def run(self) -> bool:
        """Work until `stop`; return whether it ended because of `stop` alone."""
        for watch in self._watches:
            watch.start()
        self._publisher.start()
        while not self._stopped.wait(TICK.total_seconds()):
            if not self._publisher.is_alive():
                _LOG.error("the publisher has ended; so does the process, to be started again")
                break
        clean = self._publisher.is_alive() or self._stopped.is_set()
        self._end()
        return clean

    def stop(self) -> None:
        """Begin the end; `run` returns within two seconds."""
        self._stopped.set()
        self._news.set()

    def _end(self) -> None:
        self._stopped.set()
        self._news.set()
        for watch in self._watches:
            watch.stop(timedelta())
        for watch in self._watches:
            watch.stop(timedelta(seconds=0.1))
        self._publisher.join(1.2)
        with self._lock:
            left, counts = len(self._outgoing), self._outgoing
        _LOG.info(
            "stopped: %d messages sent, %d sent again, %d objects dropped, %d unsent",
            counts.sent,
            counts.failures,
            counts.lost,
            left,
        )

    # --- called by the watches' threads

    def _changed(self, old: View | None, new: View | None) -> None:
        with self._lock:
            now = self._now()
            self._say(self._observer.observe(old, new, now), now)

    def _synced_of(self, collection: Collection) -> Callable[[], None]:
        def synced() -> None:
            with self._lock:
                now = self._now()
                self._say(self._observer.synced(collection, now), now)
                complete = self._observer.is_synced
            if complete:
                _LOG.info(
                    "synced after %.1f s; %d pods wait for capacity",
                    (now - self._began).total_seconds(),
                    self._observer.waiting_pods,
                )

        return synced

    def _served_of(self, collection: Collection) -> Callable[[], None]:
        def served() -> None:
            with self._lock:
                self._observer.served(collection, self._now())

        return served

    def _say(self, announcements: list[Announcement], now: datetime) -> None:
        if announcements:
            self._outgoing.add(announcements, now)
            self._news.set()

    # --- the publisher's thread

    def _publish(self) -> None:
        while not self._stopped.is_set():
            self._turn(at_once=False)
            self._news.wait(self._idle_seconds())
            self._news.clear()
        self._turn(at_once=True)

    def _idle_seconds(self) -> float:
        """Return how long there is nothing to do, at most a tick."""
        with self._lock:
            due = self._outgoing.next_at()
        if due is None:
            return TICK.total_seconds()
        left = (due - self._now()).total_seconds()
        if left > 0 and not self._stopped.is_set():
            # News cannot make what is waiting due any sooner: sleep through them.
            self._stopped.wait(min(left, TICK.total_seconds()))
        return 0.0

    def _turn(self, *, at_once: bool) -> None:
        """Say what is due, call after call, until nothing is."""
        while True:
            with self._lock:
                now = self._last_turn = self._now()
                self._outgoing.add(self._observer.tick(now), now)
                messages = self._outgoing.take(now, at_once=at_once)
            if not messages:
                return
            try:
                refused = self._bus.publish(messages)
            except AutoscalerError as error:
                with self._lock:
                    self._outgoing.fail(messages, error, self._now())
                if at_once:
                    return
                continue
            with self._lock:
                self._outgoing.settle(messages, refused, self._now())
            if at_once and refused:
                return


def main() -> int:
    """Run until SIGTERM or SIGINT; return the process's exit code."""
    try:
        parts: ForwarderParts = forwarder_parts()
    except (SettingsError, AutoscalerError) as error:
        sys.stderr.write(f"forwarder: {error}\n")
        return 2
    settings = parts.settings
    configure(settings.cluster)
    forwarder = Forwarder(settings.cluster, parts.bus, parts)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: forwarder.stop())
    if settings.health_port:
        try:
            serve_health(
                settings.health_port,
                {"/healthz": forwarder.is_alive, "/readyz": forwarder.is_ready},
                {"/metrics": (CONTENT_TYPE, forwarder.metrics)},
            )
        except OSError as error:
            sys.stderr.write(
                f"forwarder: DOVETAIL_HEALTH_PORT: {settings.health_port}: {error}; "
                "choose a free port or 0\n"
            )
            return 2
    return 0 if forwarder.run() else 1
