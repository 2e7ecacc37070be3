"""What functions keep of a cluster, and leave to each other, over the model of its API server.

The code is the product's, from the feed on: copies are taken, followed, compared and left as in
Lambda. The API server's part is a log of what happened; that of S3 is a dictionary.
"""

from collections.abc import Callable, Iterator, Mapping, Sized
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Literal, TypeVar

from msgspec.structs import replace

from shared.kube.api import ExpiredError
from shared.kube.kept import stored
from shared.kube.kept.copy import KeptCopy, Versioned
from shared.kube.kept.state import KeptState
from shared.kube.kept.stored import StoredCopy
from shared.kube.lists import WatchEvent
from shared.model.errors import NotFoundError
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.ports.cluster import EachPage, nothing
from tests.simulation.laws.launches import fail
from tests.simulation.schedule.faults import Action, CallFaults, Site
from tests.simulation.schedule.kernel import Kernel, Process

# Of invocations, every fifth is the first of its process.
_FIRST: Final = 5
# An empty collection is listed each time; outside, each of less than a thousand objects.
_SMALL: Final = 1
# An API server remembers less than the five minutes of etcd where much happens.
_REMEMBERED: Final = 100_000_000
_CHANCES: Final = (
    (Action.LOST, 0.1),
    (Action.TORN, 0.04),
    (Action.OTHER_VERSION, 0.04),
    (Action.FOREIGN, 0.08),
    (Action.DRIFTED, 0.04),
)
# Functions whose wiring keeps what they read of whole clusters.
KEEPING: Final = frozenset({"provision", "sweep"})
_KINDS: Final[Mapping[str, type[Any]]] = {"pods": Pod, "nodes": Node}

T = TypeVar("T", bound=Versioned)


class Logged(dict[str, T]):
    """Objects by name, and what happened to them: (microsecond, former, new)."""

    def __init__(self, kernel: Kernel, begun: Mapping[str, T]) -> None:
        super().__init__(begun)
        self._kernel = kernel
        self.log: list[tuple[int, T | None, T | None]] = []

    def __setitem__(self, name: str, value: T) -> None:
        self.log.append((self._kernel.time, self.get(name), value))
        super().__setitem__(name, value)

    def __delitem__(self, name: str) -> None:
        self.log.append((self._kernel.time, self[name], None))
        super().__delitem__(name)


class LogFeed(Generic[T]):
    """Implements shared.kube.kept.feed.Feed over a log; versions are its lengths."""

    def __init__(
        self, kernel: Kernel, objects: Logged[T], belongs: Callable[[T], bool] | None = None
    ) -> None:
        self._kernel = kernel
        self._objects = objects
        self._counted = belongs is None
        self._belongs = belongs or (lambda _: True)

    def listed(self, each_page: EachPage) -> tuple[list[T], int]:
        each_page()
        values = [value for value in self._objects.values() if self._belongs(value)]
        return values, self.head()[0]

    def head(self) -> tuple[int, int | None]:
        # An API server does not count what a selector selects.
        return len(self._objects.log) + 1, len(self._objects) if self._counted else None

    def since(self, version: int, *, again: bool = False) -> Iterator[WatchEvent[T]]:
        missed = self._objects.log[version - 1 :]
        if missed and missed[0][0] < self._kernel.time - _REMEMBERED:
            raise ExpiredError("the version is too old")
        for number, (_, former, new) in enumerate(missed, start=version + 1):
            was = former if former is not None and self._belongs(former) else None
            comes = new if new is not None and self._belongs(new) else None
            if was is not None and (comes is None or comes.uid != was.uid):
                yield WatchEvent(number, was, gone=True)
            yield WatchEvent(number, comes)


@dataclass
class Bucket:
    """Implements shared.ports.copies.Copies for all clusters; what is put there may go wrong.

    Attributes:
        drifted: Copies that are not as their cluster is, wherever they lie.
    """

    faults: CallFaults
    kernel: Kernel
    documents: dict[str, bytes] = field(default_factory=dict)
    drifted: set[bytes] = field(default_factory=set)

    def get(self, key: str) -> bytes:
        if key not in self.documents:
            raise NotFoundError(f"{key}: no such document")
        return self.documents[key]

    def put(self, key: str, document: bytes) -> None:
        cluster, _, collection = key.split("/")
        site = Site("copies", collection, cluster)
        action = self.faults.event(site, self.kernel.time, *_CHANCES)
        if action is Action.LOST:
            return
        if action is Action.FOREIGN:
            others = [at for at in self.documents if at != key and at.endswith(collection)]
            document = self.documents[max(others)] if others else document
        elif action is not None:
            document = _spoilt(document, _KINDS[collection], action)
            if action is Action.DRIFTED:
                self.drifted.add(document)
        self.documents[key] = document


def _spoilt(document: bytes, kind: type[Any], action: Action) -> bytes:
    """Return the copy of which every second value is missing, but for what would show it.

    One that has drifted is as it would be had its writer missed that.
    """
    found = stored._DECODER.decode(document)
    head = found.head
    now = head.listed_at
    values = stored.read_copy(head.source, kind, document, now).values
    lacking = StoredCopy(values=values[::2], version=head.version, listed_at=now)
    spoilt = stored._DECODER.decode(stored.encode_copy(head.source, kind, lacking))
    head = head if action is Action.TORN else spoilt.head
    if action is Action.OTHER_VERSION:
        head = stored._with_digest(replace(head, form="another"), spoilt.body)
    return stored._ENCODER.encode(stored._Document(head, spoilt.body))


class KeepingProcess:
    """One process of a function: what it keeps of a cluster.

    Args:
        nodes: Of the cluster, as they are.

    Attributes:
        serves: Number of the invocation that it runs.
        wrong: Readings of each collection in a row that were not as the cluster is.
        drifted: Whether it went on from a copy that has drifted.
    """

    def __init__(self, state: KeptState, nodes: Sized) -> None:
        self.state = state
        self._nodes = nodes
        self.serves = 0
        self.wrong = {"bound_pods": 0, "nodes": 0}
        self.drifted = False

    def reads(self, what: Literal["bound_pods", "nodes"], shown: tuple[T, ...]) -> tuple[T, ...]:
        """Return what a reading finds, and check it against what the API server shows.

        A copy that has drifted is found when its node is looked at: once round all nodes, or twice
        as they come and go. Nodes without pods are looked at, too.
        """
        found: tuple[T, ...] = getattr(self.state, what)(nothing)
        self.wrong[what] = 0 if found == shown else self.wrong[what] + 1
        if self.wrong[what] > self._most(shown):
            kept, there = set(map(_version, found)), set(map(_version, shown))
            fail("copy", f"{what}: {sorted(kept ^ there)[:1]} for {self.wrong[what]} readings")
        return found

    def reads_on(self, what: Literal["bound_pods", "nodes"], shown: tuple[T, ...]) -> None:
        """Read as often as it takes to find that a copy has drifted."""
        for _ in range(self._most(shown) + 1):
            self.reads(what, shown)

    def _most(self, shown: Sized) -> int:
        """Return how many readings in a row may be wrong."""
        return 2 * max(len(shown), len(self._nodes)) + 2 if self.drifted else 0


def _version(value: Versioned) -> tuple[str, str]:
    return value.uid, value.resource_version


class Keeping:
    """What the processes of all functions keep of one cluster."""

    def __init__(
        self,
        name: str,
        kernel: Kernel,
        bucket: Bucket,
        objects: tuple[Logged[Pod], Logged[Node]],
        looks: tuple[Callable[[str], Any], Callable[[str], Any]],
    ) -> None:
        self._name = name
        self._kernel = kernel
        self._bucket = bucket
        self._objects = objects
        self._looks = looks
        self._processes: dict[str, KeepingProcess] = {}

    def of(self, process: Process) -> KeepingProcess:
        """Return the process of an invocation: a new one, or that of the last invocation."""
        found = self._processes.get(process.function)
        first = process.salt % _FIRST == 0 and found is not None and found.serves != process.number
        if found is None or first:
            found = self._processes[process.function] = self._new()
        found.serves = process.number
        return found

    def all(self) -> tuple[KeepingProcess, ...]:
        """Return the process of each function."""
        return tuple(self._processes.values())

    def _new(self) -> KeepingProcess:
        pods, nodes = self._objects
        now = self._kernel.now
        made: KeepingProcess
        shelves = stored.copy_stores(
            _Watched(self._bucket, lambda: made),
            cluster=self._name,
            server=f"server of {self._name}",
        )
        state = KeptState(
            KeptCopy(
                LogFeed(
                    self._kernel, pods, lambda pod: bool(pod.node_name) and not pod.is_terminal
                ),
                lambda pod: (pod.key, pod.uid),
                now,
                _SMALL,
                shelves("pods", Pod),
            ),
            KeptCopy(
                LogFeed(self._kernel, nodes),
                lambda node: node.name,
                now,
                _SMALL,
                shelves("nodes", Node),
            ),
            *self._looks,
        )
        made = KeepingProcess(state, nodes)
        return made


class _Watched:
    """Copies; it is noted which process takes one that has drifted, and leaves it to others."""

    def __init__(self, bucket: Bucket, process: Callable[[], KeepingProcess]) -> None:
        self._bucket = bucket
        self._process = process

    def get(self, key: str) -> bytes:
        document = self._bucket.get(key)
        if document in self._bucket.drifted:
            self._process().drifted = True
        return document

    def put(self, key: str, document: bytes) -> None:
        if self._process().drifted:
            self._bucket.drifted.add(document)
        self._bucket.put(key, document)
