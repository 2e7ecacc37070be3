"""One schedule: clusters, EC2, functions and timers, in virtual time."""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from shared.model.brakes import Brakes
from shared.model.ec2.instance_types import CapacityType, InstanceType, OfferingKey
from shared.model.errors import NotFoundError
from shared.model.messages.message import Message
from shared.model.messages.message_rate import MessageRate
from shared.model.values import replace
from shared.ports import ClusterPorts
from tests.builders import ZONES
from tests.fakes.catalog import FakeCatalog
from tests.fakes.decisions import FakeDecisions
from tests.fakes.ledger import FakeLedger
from tests.simulation.aws.delivery import Delivery
from tests.simulation.aws.functions import Functions
from tests.simulation.aws.machines import Machine
from tests.simulation.aws.outbox import Outbox
from tests.simulation.aws.region import Region, RegionCloud
from tests.simulation.aws.timers import Timers
from tests.simulation.cluster.apiserver import ApiServer
from tests.simulation.cluster.cloud_controller import CloudController
from tests.simulation.cluster.forwarding import Forwarder
from tests.simulation.cluster.kept import Bucket
from tests.simulation.cluster.kubelets import NodeSide
from tests.simulation.cluster.workloads import JOB
from tests.simulation.laws.invariants import Invariants
from tests.simulation.schedule.bystanders import Bystanders
from tests.simulation.schedule.crew import KernelCrew
from tests.simulation.schedule.faults import Action, CallFaults, Site
from tests.simulation.schedule.kernel import Kernel
from tests.simulation.schedule.recorder import ProcessClock, Recorder
from tests.simulation.schedule.region_faults import Weather
from tests.simulation.schedule.scenario import ClusterScene, Hold, Scene
from tests.simulation.schedule.seeded_random import between, chosen, draw, whole

_MINUTE: Final = 60.0
_AGAIN: Final = 30.0
_NOTICES: Final = {
    "interrupted": "EC2 Spot Instance Interruption Warning",
    "recommended": "EC2 Instance Rebalance Recommendation",
}


class _Attached:
    """A stand-in of one attached cluster."""

    drift = False

    def __init__(self, name: str) -> None:
        self.name = name


class Registry:
    """A stand-in of shared.aws.clusters.ClusterRegistry."""

    def __init__(self, names: Sequence[str], brakes: Callable[[str], Brakes]) -> None:
        self._names = names
        self.brakes = brakes

    def all(self) -> tuple[_Attached, ...]:
        return tuple(map(_Attached, self._names))

    def one(self, name: str) -> _Attached:
        assert name in self._names
        return _Attached(name)


class Wiring:
    """A stand-in of shared.runtime.wiring.Wiring that hands out ports of the model."""

    def __init__(self, world: "World") -> None:
        self._brakes = world.brakes
        self._rate = MessageRate()
        self.clock = ProcessClock(world.kernel)
        names = [cluster.name for cluster in world.scene.clusters]
        self.registry = Registry(names, lambda name: self.ports(name).brakes)
        self.ledger = world.recorder.port("ledger", world.ledger)
        self.outbox = world.recorder.port("outbox", world.outbox)
        self._ports = {
            cluster.name: ClusterPorts(
                cluster=world.recorder.port("cluster", world.apis[cluster.name], cluster.name),
                cloud=world.recorder.port("cloud", world.clouds[cluster.name], cluster.name),
                catalog=world.recorder.port("catalog", world.catalog),
                ledger=self.ledger,
                decisions=world.recorder.port("decisions", world.decisions),
                outbox=self.outbox,
                clock=self.clock,
                instance_profile="nodes",
                executor=KernelCrew(world.kernel),
                brakes=Brakes(ceiling=cluster.ceiling),
            )
            for cluster in world.scene.clusters
        }

    def admits(self, message: Message) -> bool:
        now = self.clock.now()
        return self._rate.dropped_before(message.cluster, message.kind, now) is not None

    def ports(self, cluster: str) -> ClusterPorts:
        if cluster not in self._ports:
            raise NotFoundError(f"cluster {cluster!r} is not attached")
        ports = self._ports[cluster]
        brakes = self._brakes.get(cluster)
        return ports if brakes is None else replace(ports, brakes=ports.brakes.stricter(brakes[1]))


@functools.lru_cache(8)
def _prices(types: tuple[InstanceType, ...]) -> dict[OfferingKey, int]:
    return {
        OfferingKey(
            instance_type=kind.name, zone=way.zone, capacity_type=way.capacity_type
        ): way.price_micros_per_hour
        for kind in types
        for way in kind.offerings
    }


class World:
    """Everything of one schedule.

    Attributes:
        api_servers, node_sides: What its clusters are made of.
        brakes: Of the clusters that are held back now: since when, and how.
        ceilings: Of each cluster as a whole.
        endings: Called for every machine that begins to end.
    """

    api_servers: type[ApiServer] = ApiServer
    node_sides: type[NodeSide] = NodeSide

    def __init__(self, scene: Scene, faults: CallFaults) -> None:
        self.scene = scene
        self.faults = faults
        self.kernel = Kernel()
        self.types: dict[str, InstanceType] = {type_.name: type_ for type_ in scene.types}
        self.invariants = Invariants(self)
        self.recorder = Recorder(self.kernel, faults, self.invariants)
        self.ledger = FakeLedger()
        self.decisions = FakeDecisions()
        self.copies = Bucket(faults, self.kernel)
        self.catalog = FakeCatalog(scene.types)
        self.region = Region(
            seed=faults.seed,
            kernel=self.kernel,
            faults=faults,
            surroundings=self,
            types=self.types,
            replay=scene.replay,
            slow=scene.slow,
        )
        self.brakes: dict[str, tuple[int, Brakes]] = {}
        self.ceilings = {cluster.name: cluster.ceiling for cluster in scene.clusters}
        self.endings: list[Callable[[Machine], None]] = []
        self.apis: dict[str, ApiServer] = {}
        self.sides: dict[str, NodeSide] = {}
        self.clouds: dict[str, RegionCloud] = {}
        names = tuple(cluster.name for cluster in scene.clusters)
        self.weather = Weather(self.kernel, faults, names, self._close)
        self.region.away = functools.partial(self.weather.is_away, "cloud")
        self.delivery = Delivery(self.kernel, faults, self._call)
        self.delivery.back_at = functools.partial(self.weather.back_at, "outbox")
        self.timers = Timers(self.kernel, faults, self._call)
        self.outbox = Outbox(self.kernel, self.delivery, self.timers)
        for cluster in scene.clusters:
            self._build(cluster)
        self.functions = Functions(
            self.kernel,
            self.recorder,
            Wiring(self),
            skew=scene.skew,
            binding_policy=scene.binding,
        )
        self.bystanders = Bystanders(self)
        self.recorder.between = self.bystanders.between
        self.recorder.asleep = self.bystanders.asleep
        for cluster in scene.clusters:
            Forwarder(self.kernel, faults, self.apis[cluster.name], self.delivery.publish)
        if scene.again_seconds < math.inf:
            self.kernel.after(scene.again_seconds, lambda: self._again(1))
        self._minutes = itertools.count(1)
        self.kernel.after(between(1, 59, scene.seed, "minute"), self._minute)

    def close(self) -> None:
        """Clear all references: the garbage collector finds reference cycles at great cost."""
        parts = (
            self.kernel,
            self.recorder,
            self.functions,
            self.delivery,
            self.timers,
            self.region,
            self.bystanders,
            self.invariants.launches,
            self.invariants.intents,
            self.invariants.trials,
            self.invariants,
            *self.apis.values(),
            *self.sides.values(),
            *self.clouds.values(),
            self,
        )
        for part in parts:
            vars(part).clear()

    def _call(self, function: str, event: Mapping[str, Any], over: Any) -> None:
        self.functions(function, event, over)

    def _build(self, cluster_scene: ClusterScene) -> None:
        api = self.api_servers(cluster_scene.name, self.kernel, self.copies)
        # Each schedule changes its workloads: they are copied.
        api.workloads = {w.name: dataclasses.replace(w) for w in cluster_scene.workloads}
        api.add(*cluster_scene.provisioners)
        side = self.node_sides(self.kernel, self.faults, api, self.types)
        side.region, side.sweeps = self.region, self.scene.sweeps
        side.cloud = CloudController(self.kernel, api, self.region)
        side.notices = self._notice
        side.startup_taints = frozenset(
            taint.key for p in cluster_scene.provisioners for taint in p.startup_taints
        )
        self.apis[cluster_scene.name], self.sides[cluster_scene.name] = api, side
        self.clouds[cluster_scene.name] = RegionCloud(
            cluster=cluster_scene.name,
            clock=ProcessClock(self.kernel),
            region=self.region,
            zones=tuple(sorted({way.zone for k in self.scene.types for way in k.offerings})),
            prices=_prices(self.scene.types),
        )
        for hold in cluster_scene.holds:
            self.kernel.after(
                hold.begin,
                lambda hold=hold: self._hold(cluster_scene.name, hold),  # type: ignore[misc]
            )
        for scaling in cluster_scene.scalings:
            self.kernel.after(
                scaling.seconds,
                lambda scaling=scaling: api.scale(  # type: ignore[misc]
                    scaling.workload, scaling.replicas
                ),
            )

    def _hold(self, cluster: str, hold: Hold) -> None:
        self.brakes[cluster] = (self.kernel.time, hold.brakes)
        self.kernel.after(hold.end - hold.begin, lambda: self._let_go(cluster))

    def _let_go(self, cluster: str) -> None:
        del self.brakes[cluster]

    def _again(self, number: int) -> None:
        """Let users scale everything up and down while the schedule goes on."""
        if self.kernel.time >= self.faults.until:
            return
        for name, api in self.apis.items():
            for workload in list(api.workloads.values()):
                if workload.kind != JOB:
                    api.scale(
                        workload.name, whole(0, 7, self.scene.seed, name, workload.name, number)
                    )
        self.kernel.after(_AGAIN, lambda: self._again(number + 1))

    # --- EC2's surroundings

    def launched(self, machine: Machine) -> None:
        self.invariants.launched(machine)
        self.sides[machine.cluster].launched(machine)

    def stopping(self, machine: Machine) -> None:
        self.sides[machine.cluster].stopping(machine)

    def ending(self, machine: Machine) -> None:
        self.sides[machine.cluster].ending(machine)
        for told in self.endings:
            told(machine)

    def _notice(self, machine: Machine, what: str) -> None:
        instance_id = machine.instance.instance_id
        if what in _NOTICES:
            offering = machine.instance.offering
            if offering.capacity_type is not CapacityType.SPOT:
                return
            self.region.lacking.add(offering)
        detail: dict[str, Any] = {"instance-id": instance_id}
        kind = _NOTICES.get(what, "EC2 Instance State-change Notification")
        if what not in _NOTICES:
            detail["state"] = what
        time = self.kernel.now().isoformat()
        event = {"source": "aws.ec2", "detail-type": kind, "detail": detail, "time": time}
        self.delivery.notice(event, lambda: self.ledger.cluster_of(instance_id) is not None)

    def _close(self, cluster: str, until: int) -> None:
        api = self.apis[cluster]
        api.away_until = max(api.away_until, until)

    # --- every minute

    def _minute(self) -> None:
        self.kernel.after(_MINUTE, self._minute)
        number = next(self._minutes)
        if self.scene.sweeps:
            self.functions("sweep", {"source": "aws.events"}, lambda outcome: None)
        seed = self.faults.seed
        for name, cloud in self.clouds.items():
            site = Site("ec2", "refusal", name)
            if self.faults.event(site, self.kernel.time, (Action.REFUSED, 0.05)) is not None:
                span = between(20, 120, seed, "refused for", name, number)
                cloud.refuse(number, self.kernel.time + int(span * 1e6))
            site = Site("ec2", "images", name)
            chances = ((Action.SILENT, 0.02), (Action.DEREGISTERED, 0.02))
            action = self.faults.event(site, self.kernel.time, *chances)
            span = between(10, 150, seed, "images for", name, number)
            if action is Action.SILENT:
                cloud.silent_until = self.kernel.time + int(span * 1e6)
            elif action is Action.DEREGISTERED:
                cloud.deregister(self.kernel.time + int(span * 1e6))
        self.weather.change(number)
        short = self.faults.event(
            Site("ec2", "capacity", "region"), self.kernel.time, (Action.SHORT, 0.08)
        )
        if short is not None:
            self._shorten(number)

    def _shorten(self, number: int) -> None:
        seed = self.faults.seed
        until = self.kernel.time + int(1e6 * between(60, 400, seed, "short", number))
        zones = ZONES if draw(seed, "everywhere", number) < 0.5 else ZONES[:1]
        names = chosen((("m5.large",), ("m5.large", "m5.xlarge"), ("m5.xlarge",)), seed, number)
        left = int(3 * draw(seed, "left", number))
        for name in names:
            for way in self.types[name].offerings:
                if way.zone in zones:
                    key = OfferingKey(
                        instance_type=name, zone=way.zone, capacity_type=way.capacity_type
                    )
                    self.region.run_out(key, until, left)
