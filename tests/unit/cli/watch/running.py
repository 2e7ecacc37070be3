"""A cluster in memory for `Live`: watches that tests report changes through."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from datetime import timedelta
from typing import Any

from functions.cli.watch.cluster_watch import ClusterRecords, ClusterWatch, WatchedPod
from functions.cli.watch.live import LiveCluster
from shared.kube.reflector import Reflector
from shared.model.ec2.instance_types import InstanceType
from shared.model.ec2.launches import LaunchIntent, Slot
from shared.model.errors import AutoscalerError, NotAttachedError
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.nodes import Node
from shared.model.provisioner import Provisioner
from shared.nodes.launch.launch_results import LaunchResult, results_of_plan
from tests.builders import CATALOG, provisioner
from tests.fakes.clock import FakeClock
from tests.unit.worlds import World


class Watched(Reflector[Any]):
    """A watch whose changes a test reports."""

    def __init__(self, changed: Callable[..., None], served: Callable[[], None]) -> None:
        self.changed = changed
        self.served = served
        self.has_synced = False
        self.running = False

    def start(self) -> None:
        self.running = True

    def stop(self, wait: timedelta = timedelta(0)) -> None:
        del wait
        self.running = False


class WatchedCluster(ClusterWatch):
    """Raises `failure` in place of lists."""

    def __init__(self, *owners: Provisioner) -> None:
        self.found = owners or (provisioner(),)
        self.failure: AutoscalerError | None = None
        self.watches: list[Watched] = []

    def nodes(
        self,
        changed: Callable[[Node | None, Node | None], None],
        served: Callable[[], None] = lambda: None,
    ) -> Watched:
        return self._made(changed, served)

    def pods(
        self,
        changed: Callable[[WatchedPod | None, WatchedPod | None], None],
        served: Callable[[], None] = lambda: None,
    ) -> Watched:
        return self._made(changed, served)

    def owners(self, changed: Callable[[], None]) -> tuple[Watched, ...]:
        return (self._made(changed),)

    def provisioners(self) -> tuple[Provisioner, ...]:
        if self.failure is not None:
            raise self.failure
        return self.found

    def daemonsets(self) -> tuple[DaemonSet, ...]:
        return ()

    def synced(self) -> None:
        for watch in self.watches:
            watch.has_synced = True

    def _made(
        self, changed: Callable[..., None], served: Callable[[], None] = lambda: None
    ) -> Watched:
        self.watches.append(Watched(changed, served))
        return self.watches[-1]


class AtOnce(Executor):
    """Runs what it is given when it is given it, in this thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 -- as an executor does
            future.set_exception(error)
        return future


class WorldRecords(ClusterRecords):
    """The records of a world in memory."""

    cluster = "test"
    bucket = "archive"

    def __init__(self, world: World) -> None:
        self.world = world
        self.types: tuple[InstanceType, ...] = CATALOG

    def slots(self) -> tuple[Slot, ...]:
        return self.world.ports.ledger.slots(self.cluster)

    def open_intents(self) -> tuple[LaunchIntent, ...]:
        return self.world.ports.ledger.open_intents(self.cluster)

    def launch_results(self, plan_id: str) -> tuple[LaunchResult, ...]:
        return results_of_plan(self.world.ports.ledger, self.cluster, plan_id)

    def decisions(self, day: str, after: str) -> tuple[str, ...]:
        return self.world.decisions.keys(f"decisions/{self.cluster}/{day}/", after)

    def document(self, key: str) -> bytes:
        return self.world.decisions.get(key)

    def instance_types(self) -> tuple[InstanceType, ...]:
        return self.types


class Scene:
    """A live cluster whose threads never run: a test takes each step."""

    def __init__(self, records: WorldRecords | None = None, **cluster: Any) -> None:
        self.clock = records.world.clock if records is not None else FakeClock()
        self.cluster = WatchedCluster(**cluster)
        self.failure = NotAttachedError("attached clusters: none; name one with --cluster")
        self.records = records
        self.live = LiveCluster(
            self.cluster, "cluster", self._connect, CATALOG, AtOnce(), self.clock.now
        )
        self.nodes, self.pods, self.owners = self.cluster.watches

    def _connect(self) -> WorldRecords:
        if self.records is None:
            raise self.failure
        return self.records

    def see(self, *values: Any) -> None:
        for value in values:
            if hasattr(value, "scheduling"):
                self.pods.changed(None, WatchedPod(value, ""))
            else:
                self.nodes.changed(None, value)

    def turn(self) -> Any:
        self.clock.advance(timedelta(seconds=2))
        return self.live.next_change()

    def read(self) -> None:
        self.live._read_records()

    def prove(self) -> float:
        return self.live._prove_bound()
