"""Reads the three APIs again and again and feeds the timeline."""

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import urllib3
from botocore.exceptions import BotoCoreError, ClientError

from infra.local.aws.clients import instances_of
from infra.local.demo.cluster_client import ClusterClient, Object, Refused
from infra.local.demo.timeline import Timeline

_PERIOD = 0.4
_NODES = "api/v1/nodes"


class Observer:
    """A thread that looks at the cluster and EC2 a few times a second."""

    def __init__(
        self, cluster: ClusterClient, ec2: Any, on_change: Callable[[], None] | None = None
    ) -> None:
        self.timeline = Timeline()
        self.failures = 0
        # Held while the timeline is written or read as a whole.
        self.lock = threading.RLock()
        self._cluster = cluster
        self._ec2 = ec2
        self._on_change = on_change
        self._version = ""
        self._began = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="observer", daemon=True)

    def start(self) -> None:
        """Begin to look; the first reading is made before this returns."""
        self.look()
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join(timeout=10)

    def now(self) -> float:
        return time.monotonic() - self._began

    def look(self) -> None:
        # Instances first, nodes last: a node is never observed before its instance, and a pod never
        # where its node did not show yet what it waited for.
        instances = instances_of(self._ec2)
        pods = self._cluster.items("api/v1/namespaces/default/pods")
        listed = self._cluster.call("GET", _NODES)
        nodes = listed["items"]
        # Cordoned, deleted and gone between two readings: how a node last was is asked for.
        missed = self._missed(nodes)
        last = self._cluster.deleted(_NODES, self._version) if missed else []
        self._version = listed["metadata"]["resourceVersion"]
        with self.lock:
            now = self.now()
            if missed:
                gone = [node for node in last if node["metadata"]["uid"] in missed]
                self.timeline.observe(now, pods, [*nodes, *gone], instances)
            self.timeline.observe(now, pods, nodes, instances)

    def _missed(self, nodes: Iterable[Object]) -> set[str]:
        """Return the ids of nodes that are no longer listed and were never seen cordoned."""
        present = {node["metadata"]["uid"] for node in nodes}
        with self.lock:
            tracks = self.timeline.nodes.items()
            return {
                uid
                for uid, track in tracks
                if uid not in present and track.gone is None and track.cordoned is None
            }

    def _run(self) -> None:
        while not self._ended.wait(_PERIOD):
            try:
                self.look()
            except (Refused, urllib3.exceptions.HTTPError, ClientError, BotoCoreError):
                # The next reading will do; a world that stays silent fails its expectations.
                self.failures += 1
            if self._on_change is not None:
                self._on_change()
