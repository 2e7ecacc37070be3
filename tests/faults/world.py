"""One schedule: clusters, EC2, functions and timers, in virtual time."""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from shared.messages.wake import MAX_OBJECTS, Kind, ObjectRef, encode, wake
from shared.model.errors import NotFoundError
from shared.model.instance_types import InstanceType, OfferingKey
from shared.ports import ClusterPorts, TimerKind
from tests.builders import ZONES
from tests.fakes.catalog import FakeCatalog
from tests.fakes.decisions import FakeDecisions
from tests.fakes.ledger import FakeLedger
from tests.faults.apiserver import ApiServer
from tests.faults.chances import between, chosen, draw
from tests.faults.delivery import Delivery
from tests.faults.faults import Action, CallFaults, Site
from tests.faults.forwarding import Forwarder
from tests.faults.invariants import Invariants
from tests.faults.invoking import Functions
from tests.faults.kernel import Kernel
from tests.faults.machines import Machine
from tests.faults.nodeside import NodeSide
from tests.faults.recorder import ProcessClock, Recorder
from tests.faults.region import Region, RegionCloud
from tests.faults.scenario import ClusterScene, Scene
from tests.faults.timers import Timers

_MINUTE: Final = 60.0


class Outbox:
    """Implements shared.ports.Outbox."""

    def __init__(self, kernel: Kernel, delivery: Delivery, timers: Timers) -> None:
        self._kernel = kernel
        self._delivery = delivery
        self._timers = timers

    def wake(self, cluster: str, delay: timedelta) -> None:
        text = json.dumps(encode(wake(Kind.RESUME, cluster, self._kernel.now())))
        seconds = min(max(delay.total_seconds(), 0.0), 900.0)
        self._delivery.send(text, float(-(-seconds // 1)))

    def start_timer(self, kind: TimerKind, name: str, payload: Mapping[str, Any]) -> bool:
        return self._timers.start(kind.value, name, payload)

    def invoke_bind(self, cluster: str, nodes: Sequence[str]) -> None:
        objects = [ObjectRef(name=one) for one in nodes[:MAX_OBJECTS]]
        event = encode(wake(Kind.NODE_READY, cluster, self._kernel.now(), objects=objects))
        self._delivery.messages += 1
        self._kernel.after(0.1, lambda: self._delivery.invoke("bind", event))


class _Attached:
    """Stands for one attached cluster."""

    def __init__(self, name: str) -> None:
        self.name = name


class Registry:
    """Stands for shared.aws.clusters.ClusterRegistry."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def all(self) -> tuple[_Attached, ...]:
        return tuple(map(_Attached, self._names))


class Wiring:
    """Stands for shared.runtime.wiring.Wiring: hands out ports of the model."""

    def __init__(self, world: "World") -> None:
        self.clock = ProcessClock(world.kernel)
        self.registry = Registry([one.name for one in world.scene.clusters])
        self.ledger = world.recorder.port("ledger", world.ledger)
        self.outbox = world.recorder.port("outbox", world.outbox)
        self._ports = {
            one.name: ClusterPorts(
                cluster=world.recorder.port("cluster", world.apis[one.name], one.name),
                cloud=world.recorder.port("cloud", world.clouds[one.name], one.name),
                catalog=world.recorder.port("catalog", world.catalog),
                ledger=self.ledger,
                decisions=world.recorder.port("decisions", world.decisions),
                outbox=self.outbox,
                clock=self.clock,
                instance_profile="nodes",
            )
            for one in world.scene.clusters
        }

    def ports(self, cluster: str) -> ClusterPorts:
        if cluster not in self._ports:
            raise NotFoundError(f"cluster {cluster!r} is not attached")
        return self._ports[cluster]


class World:
    """Everything of one schedule."""

    def __init__(self, scene: Scene, faults: CallFaults) -> None:
        self.scene = scene
        self.faults = faults
        self.kernel = Kernel()
        self.types: dict[str, InstanceType] = {one.name: one for one in scene.types}
        self.invariants = Invariants(self)
        self.recorder = Recorder(self.kernel, faults, self.invariants)
        self.ledger = FakeLedger()
        self.decisions = FakeDecisions()
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
        self.apis: dict[str, ApiServer] = {}
        self.sides: dict[str, NodeSide] = {}
        self.clouds: dict[str, RegionCloud] = {}
        self.delivery = Delivery(self.kernel, faults, self._call)
        self.timers = Timers(self.kernel, faults, self._call)
        self.outbox = Outbox(self.kernel, self.delivery, self.timers)
        for one in scene.clusters:
            self._build(one)
        self.functions = Functions(
            self.kernel,
            self.recorder,
            Wiring(self),
            skew=scene.skew,
            binding_policy=scene.binding,
        )
        for one in scene.clusters:
            Forwarder(self.kernel, faults, self.apis[one.name], self.delivery.publish)
        self._minutes = itertools.count(1)
        self.kernel.after(between(1, 59, scene.seed, "minute"), self._minute)

    def _call(self, function: str, event: Mapping[str, Any], over: Any) -> None:
        self.functions(function, event, over)

    def _build(self, one: ClusterScene) -> None:
        api = ApiServer(one.name, self.kernel)
        # Each schedule changes its workloads: they are copied.
        api.workloads = {w.name: replace(w) for w in one.workloads}
        api.add(*one.provisioners)
        side = NodeSide(self.kernel, self.faults, api, self.types)
        side.region = self.region
        side.notices = self._notice
        side.startup_taints = frozenset(
            taint.key for p in one.provisioners for taint in p.startup_taints
        )
        self.apis[one.name], self.sides[one.name] = api, side
        self.clouds[one.name] = RegionCloud(
            cluster=one.name,
            clock=ProcessClock(self.kernel),
            region=self.region,
            zones=tuple(sorted({way.zone for k in self.scene.types for way in k.offerings})),
            prices={
                OfferingKey(
                    instance_type=kind.name, zone=way.zone, capacity_type=way.capacity_type
                ): way.price_micros_per_hour
                for kind in self.scene.types
                for way in kind.offerings
            },
        )
        for scaling in one.scalings:
            self.kernel.after(
                scaling.seconds,
                lambda scaling=scaling: api.scale(  # type: ignore[misc]
                    scaling.workload, scaling.replicas
                ),
            )

    # --- EC2's surroundings

    def launched(self, machine: Machine) -> None:
        self.invariants.launched(machine)
        self.sides[machine.cluster].launched(machine)

    def ending(self, machine: Machine) -> None:
        self.sides[machine.cluster].ending(machine)

    def _notice(self, machine: Machine, what: str) -> None:
        instance_id = machine.instance.instance_id
        detail: dict[str, Any] = {"instance-id": instance_id}
        kind = "EC2 Spot Instance Interruption Warning"
        if what != "interrupted":
            kind = "EC2 Instance State-change Notification"
            detail["state"] = what
        self.delivery.notice({"source": "aws.ec2", "detail-type": kind, "detail": detail})

    # --- every minute

    def _minute(self) -> None:
        self.kernel.after(_MINUTE, self._minute)
        number = next(self._minutes)
        if self.scene.sweeps:
            self.functions("sweep", {"source": "aws.events"}, lambda outcome: None)
        seed = self.faults.seed
        for name, api in self.apis.items():
            site = Site("api", "outage", name)
            if self.faults.event(site, self.kernel.time, (Action.OUTAGE, 0.02)) is not None:
                span = 5 + 170 * draw(seed, "outage", name, number) ** 2
                api.away_until = self.kernel.time + int(span * 1e6)
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
                    self.region.out_of[key] = (until, left)
