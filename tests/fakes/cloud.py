"""EC2 in memory, for one cluster, that keeps the promises of the CloudProvider port."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from shared.model import labels as keys
from shared.model.errors import NotFoundError, ThrottledError, UnavailableError
from shared.model.instance_types import CapacityType, OfferingKey
from shared.model.launch import FleetAnswer, FleetError, FleetInstance, Instance
from shared.model.provisioner import NodeTemplate
from shared.ports import Clock, ClusterEndpoint, MachineImage, Site, Subnet
from tests.fakes.clock import FakeClock
from tests.fakes.images import found_by, image_launched, image_named

ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
_NOTHING = timedelta(0)


class Call(NamedTuple):
    """One call, and what it was about."""

    method: str
    subject: object = None


@dataclass
class _Machine:
    instance: Instance
    launched_at: datetime
    ended_at: datetime | None = None


@dataclass
class Delays:
    """How long EC2 takes.

    Attributes:
        shown: Until an instance is found by DescribeInstances.
        named: Until it has a private DNS name.
        running: Until it is no longer pending.
        terminated: Until it is no longer shutting down.
    """

    shown: timedelta = _NOTHING
    named: timedelta = _NOTHING
    running: timedelta = _NOTHING
    terminated: timedelta = _NOTHING


@dataclass
class FakeCloud:
    """Implements shared.ports.CloudProvider.

    Capacity is endless unless `capacity` says how many machines of an offering are left; a fleet
    takes offerings in the order of `prices`, then of the request. A request whose ClientToken was
    seen before gets the answer it got then, unless `forgets_tokens`.

    Every call is in `calls`. `fail_next("create_fleet", error)` makes the next call of a method
    raise and do nothing; `lose_next_answer()` makes the next fleet launch and its answer be lost.
    """

    cluster: str = "test"
    clock: Clock = field(default_factory=FakeClock)
    zones: tuple[str, ...] = ZONES
    version: str = "1.33"
    service_cidr: str = "172.20.0.0/16"
    delays: Delays = field(default_factory=Delays)
    capacity: dict[OfferingKey, int] = field(default_factory=dict)
    prices: dict[OfferingKey, int] = field(default_factory=dict)
    missing_images: set[str] = field(default_factory=set)
    images: tuple[MachineImage, ...] = ()
    subnets: tuple[Subnet, ...] | None = None
    security_groups: tuple[str, ...] = ("sg-1",)
    forgets_tokens: bool = False
    calls: list[Call] = field(default_factory=list)
    fleets: list[Mapping[str, Any]] = field(default_factory=list)
    templates: dict[str, tuple[Mapping[str, Any], datetime]] = field(default_factory=dict)
    _machines: dict[str, _Machine] = field(default_factory=dict)
    _answers: dict[str, FleetAnswer] = field(default_factory=dict)
    _errors: dict[str, list[Exception]] = field(default_factory=dict)
    _lose_answers: int = 0

    # --- what a test arranges

    def fail_next(self, method: str, *errors: Exception) -> None:
        """Make the next calls of a method raise these, one each."""
        self._errors.setdefault(method, []).extend(errors)

    def throttle_next(self, method: str = "create_fleet", times: int = 1) -> None:
        """Make the next calls of a method be throttled."""
        self.fail_next(method, *(ThrottledError(f"{method}: slow down") for _ in range(times)))

    def lose_next_answer(self) -> None:
        """Make the next fleet call launch its machines and time out."""
        self._lose_answers += 1

    def run_out_of(self, *offerings: OfferingKey, left: int = 0) -> None:
        """Leave so many machines of each of these offerings."""
        self.capacity.update(dict.fromkeys(offerings, left))

    def add(self, *instances: Instance) -> None:
        """Let instances exist that nobody launched through this fake."""
        for one in instances:
            born = one.launched_at or self.clock.now()
            self._machines[one.instance_id] = _Machine(replace(one, launched_at=born), born)

    def end(self, *instance_ids: str) -> None:
        """Let machines die: an interruption, or somebody in the console."""
        for one in instance_ids:
            self._machines[one].ended_at = self.clock.now()

    @property
    def all_instances(self) -> tuple[Instance, ...]:
        """Every instance there ever was as it is now, whether shown or not, sorted by id."""
        return tuple(self._seen(self._machines[one]) for one in sorted(self._machines))

    def called(self, method: str) -> list[object]:
        """Return what the calls of a method were about, in order."""
        return [call.subject for call in self.calls if call.method == method]

    # --- the port

    def endpoint(self) -> ClusterEndpoint:
        self._call("endpoint")
        return ClusterEndpoint(
            name=self.cluster,
            endpoint=f"https://{self.cluster}.example",
            certificate_authority="Y2VydGlmaWNhdGU=",
            version=self.version,
            service_cidr=self.service_cidr,
        )

    def site(self, template: NodeTemplate) -> Site:
        self._call("site", template)
        found = self._all_subnets() if template.subnet_selector else ()
        groups = self.security_groups if template.security_group_selector else ()
        ordered = sorted(found, key=lambda one: (one.zone, -one.free_addresses, one.subnet_id))
        return Site(subnets=tuple(ordered), security_groups=groups)

    def image_ids(self, parameters: Sequence[str]) -> Mapping[str, str]:
        self._call("image_ids", tuple(parameters))
        return {one: image_named(one) for one in sorted({*parameters} - self.missing_images)}

    def find_images(self, selector: Mapping[str, str]) -> tuple[MachineImage, ...]:
        self._call("find_images", dict(selector))
        return tuple(sorted(found_by(selector, self.images), key=lambda one: one.image_id))

    def ensure_launch_template(self, name: str, launch_data: Mapping[str, Any]) -> None:
        self._call("ensure_launch_template", name)
        self.templates.setdefault(name, (launch_data, self.clock.now()))

    def launch_templates(self) -> tuple[tuple[str, datetime], ...]:
        self._call("launch_templates")
        return tuple(sorted((name, born) for name, (_, born) in self.templates.items()))

    def delete_launch_template(self, name: str) -> None:
        self._call("delete_launch_template", name)
        self.templates.pop(name, None)

    def create_fleet(self, request: Mapping[str, Any]) -> FleetAnswer:
        self._call("create_fleet", request)
        for config in request["LaunchTemplateConfigs"]:
            name = config["LaunchTemplateSpecification"]["LaunchTemplateName"]
            if name not in self.templates:
                raise NotFoundError(f"launch template {name}: no such template")
        token = request.get("ClientToken", "")
        answer = None if self.forgets_tokens else self._answers.get(token)
        if answer is None:
            answer = self._launch(request)
            self.fleets.append(request)
            if token:
                self._answers[token] = answer
        if self._lose_answers:
            self._lose_answers -= 1
            raise UnavailableError("create_fleet: timed out")
        return answer

    def instances(self, instance_ids: Sequence[str]) -> tuple[Instance, ...]:
        self._call("instances", tuple(instance_ids))
        return tuple(one for one in self._shown() if one.instance_id in instance_ids)

    def tagged_instances(self, tags: Mapping[str, str]) -> tuple[Instance, ...]:
        self._call("tagged_instances", dict(tags))
        wanted = {**tags, **self._ours}.items()
        return tuple(
            one
            for one in self._shown()
            if one.state != "terminated" and wanted <= dict(one.tags).items()
        )

    def terminate(self, instance_ids: Sequence[str]) -> None:
        self._call("terminate", tuple(instance_ids))
        for one in instance_ids:
            machine = self._machines.get(one)
            if machine is not None and machine.ended_at is None:
                machine.ended_at = self.clock.now()

    @property
    def _ours(self) -> dict[str, str]:
        return {keys.TAG_CLUSTER: self.cluster, f"kubernetes.io/cluster/{self.cluster}": "owned"}

    def _call(self, method: str, subject: object = None) -> None:
        self.calls.append(Call(method, subject))
        waiting = self._errors.get(method)
        if waiting:
            raise waiting.pop(0)

    def _all_subnets(self) -> tuple[Subnet, ...]:
        if self.subnets is not None:
            return self.subnets
        return tuple(
            Subnet(subnet_id=f"subnet-{zone}", zone=zone, free_addresses=250) for zone in self.zones
        )

    def _launch(self, request: Mapping[str, Any]) -> FleetAnswer:
        target = request["TargetCapacitySpecification"]
        bought_as = CapacityType(target["DefaultTargetCapacityType"])
        zone_of = {one.subnet_id: one.zone for one in self._all_subnets()}
        asked = [
            OfferingKey(
                instance_type=one["InstanceType"],
                zone=zone_of[one["SubnetId"]],
                capacity_type=bought_as,
            )
            for config in request["LaunchTemplateConfigs"]
            for one in config["Overrides"]
        ]
        missing = int(target["TotalTargetCapacity"])
        launched: list[FleetInstance] = []
        refused: list[OfferingKey] = []
        for offering in sorted(asked, key=lambda one: self.prices.get(one, 0)):
            left = self.capacity.get(offering, missing)
            count = min(left, missing)
            if offering in self.capacity:
                self.capacity[offering] = left - count
            launched.extend(self._start(offering, request) for _ in range(count))
            missing -= count
            if not missing:
                break
            refused.append(offering)
        return FleetAnswer(
            fleet_id=f"fleet-{len(self.fleets) + 1}",
            instances=tuple(launched),
            errors=tuple(
                FleetError(
                    code="InsufficientInstanceCapacity",
                    message=f"no {one.instance_type} in {one.zone}",
                    offering=one,
                )
                for one in sorted(refused)
            ),
        )

    def _start(self, offering: OfferingKey, request: Mapping[str, Any]) -> FleetInstance:
        number = len(self._machines) + 1
        instance_id = f"i-{number:017x}"
        now = self.clock.now()
        self._machines[instance_id] = _Machine(
            Instance(
                instance_id=instance_id,
                state="running",
                offering=offering,
                private_dns_name=f"ip-10-0-{number // 256}-{number % 256}.ec2.internal",
                image_id=image_launched(request, self.templates, offering.instance_type),
                launched_at=now,
                tags=_tags(request),
            ),
            now,
        )
        return FleetInstance(instance_id=instance_id, offering=offering)

    def _shown(self) -> Iterable[Instance]:
        now = self.clock.now()
        return [
            self._seen(self._machines[one])
            for one in sorted(self._machines)
            if self._machines[one].launched_at + self.delays.shown <= now
        ]

    def _seen(self, machine: _Machine) -> Instance:
        now, instance = self.clock.now(), machine.instance
        if machine.ended_at is not None:
            over = machine.ended_at + self.delays.terminated <= now
            return replace(instance, state="terminated" if over else "shutting-down")
        if machine.launched_at + self.delays.named > now:
            instance = replace(instance, private_dns_name="")
        if machine.launched_at + self.delays.running > now:
            instance = replace(instance, state="pending")
        return instance


def _tags(request: Mapping[str, Any]) -> dict[str, str]:
    return {
        tag["Key"]: tag["Value"]
        for one in request.get("TagSpecifications", ())
        if one["ResourceType"] == "instance"
        for tag in one["Tags"]
    }
