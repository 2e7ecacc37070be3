"""Time as it would pass in Lambda: CPU time used here, by the share of a core, and waits by call.

The constants are assumptions, printed with each table; orders of growth do not hang on them.
"""

import heapq
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import urllib3

from shared.kube.api import JSON, Decode, KubeApi, Query, Reply, Stream
from shared.kube.bounds import POOLS
from shared.ports.executor import MAX_CONCURRENT_CALLS
from tests.fakes.clock import START
from tests.fakes.cloud import FakeCloud
from tests.fakes.copies import FakeCopies
from tests.fakes.outbox import FakeOutbox

# A function has a whole core at 1,769 MiB, and a part of one with less.
# Source: https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html (2026-11-24).
WHOLE_CORE_MIB: Final = 1769
DYNAMODB: Final = timedelta(milliseconds=20)
KUBERNETES: Final = timedelta(milliseconds=10)
LIST_PAGE: Final = timedelta(milliseconds=30)
CREATE_FLEET: Final = timedelta(seconds=2)
OTHER_EC2: Final = timedelta(milliseconds=100)
OUTBOX: Final = timedelta(milliseconds=20)
COPY: Final = timedelta(milliseconds=100)
# Of one core: what the SDK needs for a call, and for each KB of rows that it reads.
SDK_CALL: Final = timedelta(microseconds=500)
SDK_KILOBYTE: Final = timedelta(microseconds=330)
WAKE_WINDOW: Final = timedelta(seconds=1)
# From a launch until DescribeInstances shows the machine, and until it runs.
SHOWN: Final = timedelta(seconds=1)
RUNNING: Final = timedelta(seconds=5)
_NOTHING: Final = timedelta(0)
# What the adapter keeps from one invocation to the next.
_KEPT: Final = frozenset({"endpoint", "site", "image_ids", "find_images"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a piece of work took.

    Attributes:
        took: Time as it passes in Lambda.
        cpu_seconds: Of this machine.
        calls: Made to services.
    """

    took: timedelta
    cpu_seconds: float
    calls: int


class VirtualClock:
    """Implements shared.ports.Clock for a function with so much memory.

    Threads of adapters wait side by side, `MAX_CONCURRENT_CALLS` of them; their CPU time adds up.

    Attributes:
        calls: By service.
        marks: When something was first called for since `begin`, by name.
    """

    def __init__(self, memory_mib: int) -> None:
        self._share = min(memory_mib / WHOLE_CORE_MIB, 1.0)
        self._waited = timedelta(0)
        self._from = time.process_time()
        self._side: list[timedelta] = []
        self._alarms: list[tuple[datetime, int, Callable[[], None]]] = []
        self._lock = threading.RLock()
        self._quiet = False
        self.calls: Counter[str] = Counter()
        self.marks: dict[str, timedelta] = {}
        self.begin()

    def now(self) -> datetime:
        """Return the time; to the main thread, once all that was called for beside it is over."""
        with self._lock:
            if self._side and threading.current_thread() is threading.main_thread():
                self._waited, self._side = max(self._side), []
            used = (time.process_time() - self._from) / self._share
            return START + self._waited + timedelta(seconds=used)

    def latest(self) -> datetime:
        """Return when the last call of a thread that works beside is over."""
        with self._lock:
            return self.now() + max((end - self._waited for end in self._side), default=_NOTHING)

    def sleep(self, span: timedelta) -> None:
        """Wait."""
        if not self._quiet:
            self.now()
            self._waited += span

    def become(self, memory_mib: int, moment: datetime) -> None:
        """Count the time of another function from a moment on, be it past."""
        self._waited, self._from = moment - START, time.process_time()
        self._share = min(memory_mib / WHOLE_CORE_MIB, 1.0)

    def at(self, moment: datetime, action: Callable[[], None]) -> None:
        """Let something happen elsewhere at a time: it takes no time of this function."""
        heapq.heappush(self._alarms, (moment, len(self._alarms), action))

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """Let what the block does take no time."""
        used, self._quiet = time.process_time(), True
        try:
            yield
        finally:
            self._quiet = False
            self._from += time.process_time() - used
            self._cpu += time.process_time() - used

    def call(self, service: str, wait: timedelta, cpu: timedelta = timedelta(0)) -> None:
        """Let a call to a service take its time."""
        if self._quiet:
            return
        with self._lock:
            self.calls[service] += 1
            self.marks.setdefault(service, self.now() - self._begun)
            self._from -= cpu.total_seconds()
            if threading.current_thread() is threading.main_thread():
                self._waited += wait
                self._ring()
            else:
                self._side = self._side or [self._waited] * MAX_CONCURRENT_CALLS
                heapq.heapreplace(self._side, self._side[0] + wait)

    def _ring(self) -> None:
        while self._alarms and self._alarms[0][0] <= self.now():
            _, _, action = heapq.heappop(self._alarms)
            with self.elsewhere():
                action()

    def rows(self, name: str, size_bytes: int) -> None:
        """Let a call to the ledger take its time."""
        del name
        self.call("ledger", DYNAMODB, SDK_CALL + SDK_KILOBYTE * (size_bytes / 1024))

    def begin(self) -> None:
        """Measure from here."""
        self._begun, self._cpu = self.now(), time.process_time()
        self._calls_before = self.calls.total()
        self.marks.clear()

    def spent(self) -> Spent:
        """Return what was spent since `begin`."""
        return Spent(
            took=self.now() - self._begun,
            cpu_seconds=time.process_time() - self._cpu,
            calls=self.calls.total() - self._calls_before,
        )


class TimedApi(KubeApi):
    """An API server over HTTP whose answers take their time.

    Attributes:
        bindings: When each pod was bound, by path.
    """

    def __init__(self, url: str, clock: VirtualClock) -> None:
        pool = urllib3.PoolManager(maxsize=10)
        pool.pool_classes_by_scheme = POOLS
        super().__init__(url, pool, dict, timeout=timedelta(seconds=300), compress=True)
        self._clock = clock
        self.bindings: dict[str, datetime] = {}
        self._evictions: list[str] = []

    def evicted(self) -> list[str]:
        """Return the paths of the pods that were evicted since this was last asked."""
        found, self._evictions = self._evictions, []
        return found

    def send(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: Query = (),
        content_type: str = JSON,
        decode: Decode = json.loads,
    ) -> Reply:
        wait = LIST_PAGE if "limit" in dict(query) else KUBERNETES
        self._clock.call("kubernetes", wait)
        given: dict[str, Any] = {
            "body": body,
            "query": query,
            "content_type": content_type,
            "decode": decode,
        }
        reply = super().send(method, path, **given)
        if path.endswith("/binding") and reply.ok:
            self.bindings[path] = self._clock.latest()
        if path.endswith("/eviction") and reply.ok:
            self._evictions.append(path.removesuffix("/eviction"))
        return reply

    def stream(self, path: str, query: Query, read_seconds: float) -> Stream:
        self._clock.call(
            "kubernetes", LIST_PAGE + timedelta(seconds=read_seconds if read_seconds < 1 else 0)
        )
        return super().stream(path, query, read_seconds)


@dataclass
class TimedCloud(FakeCloud):
    """EC2 whose answers take their time."""

    def _call(self, method: str, subject: object = None) -> None:
        assert isinstance(self.clock, VirtualClock)
        if method == "create_fleet":
            self.clock.call(method, CREATE_FLEET, SDK_CALL)
        elif method not in _KEPT:
            self.clock.call("ec2", OTHER_EC2, SDK_CALL)
        super()._call(method, subject)


class TimedCopies(FakeCopies):
    """Implements shared.ports.copies.Copies."""

    def __init__(self, clock: VirtualClock, documents: Mapping[str, bytes]) -> None:
        super().__init__()
        self.documents.update(documents)
        self._clock = clock

    def put(self, key: str, document: bytes) -> None:
        """Write a copy."""
        self._clock.call("copies", COPY, SDK_CALL)
        super().put(key, document)

    def get(self, key: str) -> bytes:
        """Return a copy."""
        self._clock.call("copies", COPY, SDK_CALL)
        return super().get(key)


class TimedOutbox(FakeOutbox):
    """An outbox whose messages take their time."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock

    def _maybe_fail(self) -> None:
        self._clock.call("outbox", OUTBOX, SDK_CALL)
        super()._maybe_fail()


def constants() -> str:
    """Return the assumptions as one sentence."""
    said: Sequence[tuple[str, Any]] = (
        ("DynamoDB call", DYNAMODB),
        ("Kubernetes call", KUBERNETES),
        ("list page or watch", LIST_PAGE),
        ("CreateFleet", CREATE_FLEET),
        ("other call of EC2", OTHER_EC2),
        ("message or timer", OUTBOX),
        ("copy in S3", COPY),
        ("window of the queue", WAKE_WINDOW),
        ("launch until EC2 shows a machine", SHOWN),
        ("launch until it runs", RUNNING),
    )
    waits = ", ".join(f"{name} {span / timedelta(milliseconds=1):,.0f} ms" for name, span in said)
    sdk = f"SDK {SDK_CALL / timedelta(milliseconds=1)} ms of CPU a call"
    rows = f"{SDK_KILOBYTE / timedelta(milliseconds=1)} ms a KB of rows"
    core = f"one core at {WHOLE_CORE_MIB:,} MiB"
    return (
        f"{waits}; {sdk} and {rows}; {core}; {MAX_CONCURRENT_CALLS} calls of threads side by side"
    )
