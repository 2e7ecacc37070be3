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
from functions.forwarder.logs import configure_logs
from functions.forwarder.metrics import CONTENT_TYPE, metrics_text
from functions.forwarder.observer import Announcement, Collection, Observer
from functions.forwarder.outgoing_messages import EventBus, OutgoingMessages
from functions.forwarder.views import (
    View,
    view_node,
    view_node_pool,
    view_pod,
    view_provisioner,
)
from shared.model.errors import AutoscalerError
from shared.runtime.forwarder import ForwarderParts, Watch, forwarder_parts
from shared.settings import SettingsError

TICK: Final = timedelta(seconds=1)
SILENT_FOR: Final = timedelta(seconds=60)
_LOG: Final = logging.getLogger(__name__)


class WatchFactory(Protocol):
    """Makes watches."""

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
        cluster: Name of the cluster.
        bus: The bus that messages are published on.
        parts: Makes the watches.
        now: The current time, UTC.
    """

    def __init__(
        self,
        cluster: str,
        bus: EventBus,
        parts: WatchFactory,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._bus = bus
        self._now = now
        self._observer = Observer()
        self._outgoing = OutgoingMessages(cluster, random.random)
        self._lock = threading.Lock()
        self._wake_publisher = threading.Event()
        self._stopped = threading.Event()
        self._last_published_at = now()
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
        """Return whether all threads run and the publisher has looped in the last minute."""
        return (
            self._publisher.is_alive()
            and all(watch.is_alive for watch in self._watches)
            and self._now() - self._last_published_at < SILENT_FOR
        )

    def is_ready(self) -> bool:
        """Return whether all collections have been read and the API server still serves them."""
        with self._lock:
            return self._observer.is_current(self._now())

    def metrics(self) -> str:
        """Return the metrics in the text format of Prometheus."""
        with self._lock:
            return metrics_text(self._observer, self._outgoing, self._now())

    def run(self) -> bool:
        """Run until `stop`; return whether nothing but `stop` ended it."""
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
        """Stop; `run` returns within two seconds."""
        self._stopped.set()
        self._wake_publisher.set()

    def _end(self) -> None:
        self._stopped.set()
        self._wake_publisher.set()
        for watch in self._watches:
            watch.stop(timedelta())
        for watch in self._watches:
            watch.stop(timedelta(seconds=0.1))
        self._publisher.join(1.2)
        with self._lock:
            unsent, counts = len(self._outgoing), self._outgoing
        _LOG.info(
            "stopped: %d messages sent, %d sent again, %d objects dropped, %d unsent",
            counts.sent,
            counts.failures,
            counts.dropped,
            unsent,
        )

    # --- called by the watches' threads

    def _changed(self, old: View | None, new: View | None) -> None:
        with self._lock:
            now = self._now()
            self._add_announcements(self._observer.observe(old, new, now), now)

    def _synced_of(self, collection: Collection) -> Callable[[], None]:
        def synced() -> None:
            with self._lock:
                now = self._now()
                self._add_announcements(self._observer.collection_synced(collection, now), now)
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
                self._observer.collection_served(collection, self._now())

        return served

    def _add_announcements(self, announcements: list[Announcement], now: datetime) -> None:
        if announcements:
            self._outgoing.add(announcements, now)
            self._wake_publisher.set()

    # --- the publisher's thread

    def _publish(self) -> None:
        while not self._stopped.is_set():
            self._publish_due(at_once=False)
            self._wake_publisher.wait(self._idle_seconds())
            self._wake_publisher.clear()
        self._publish_due(at_once=True)

    def _idle_seconds(self) -> float:
        """Return how many seconds there is nothing to do, at most a tick."""
        with self._lock:
            due = self._outgoing.due_at()
        if due is None:
            return TICK.total_seconds()
        left = (due - self._now()).total_seconds()
        if left > 0 and not self._stopped.is_set():
            # New announcements cannot make the queued ones due any sooner: sleep through them.
            self._stopped.wait(min(left, TICK.total_seconds()))
        return 0.0

    def _publish_due(self, *, at_once: bool) -> None:
        """Publish the announcements that are due until none is left."""
        while True:
            with self._lock:
                now = self._last_published_at = self._now()
                self._outgoing.add(self._observer.announcements_due(now), now)
                messages = self._outgoing.next_messages(now, at_once=at_once)
            if not messages:
                return
            try:
                refused = self._bus.publish(messages)
            except AutoscalerError as error:
                with self._lock:
                    self._outgoing.record_failure(messages, error, self._now())
                if at_once:
                    return
                continue
            with self._lock:
                self._outgoing.record_response(messages, refused, self._now())
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
    configure_logs(settings.cluster)
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
