"""EC2 in memory, for one cluster, that keeps the promises of the CloudProvider port."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Any, NamedTuple

from botocore.exceptions import ClientError

from infra.local.ec2.account import Account, Launch, Place, Template
from infra.local.ec2.instances import ENDING, Settings
from infra.local.ec2.instances import Instance as Model
from infra.local.ec2.model import Ec2
from infra.local.ec2.pools import PoolKey
from infra.local.ec2.refusals import ApiError, Reason
from shared.aws.ec2.fleets_and_images import fleet_answer
from shared.aws.errors import translated
from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType, OfferingKey
from shared.model.ec2.launches import FleetAnswer, Instance
from shared.model.ec2.selectors import Selector
from shared.model.errors import ThrottledError, UnavailableError
from shared.model.provisioner import NodeTemplate
from shared.model.values import replace
from shared.ports import Clock, ClusterEndpoint, MachineImage, Site, Subnet
from tests.fakes.clock import FakeClock
from tests.fakes.images import found_by, image_named

ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")


class Call(NamedTuple):
    """One call, and what it was about."""

    method: str
    subject: object = None


@dataclass
class Delays(Settings):
    """How long EC2 takes.

    Attributes:
        shown: Until an instance is found by DescribeInstances.
    """

    shown: timedelta = timedelta(0)


@dataclass
class FakeCloud(Account):
    """Implements shared.ports.CloudProvider over the model of EC2.

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
    ec2: Ec2 = field(init=False)
    prices: dict[OfferingKey, int] = field(default_factory=dict)
    missing_images: set[str] = field(default_factory=set)
    images: tuple[MachineImage, ...] = ()
    subnets: tuple[Subnet, ...] | None = None
    security_groups: tuple[str, ...] = ("sg-1",)
    forgets_tokens: bool = False
    calls: list[Call] = field(default_factory=list)
    fleets: list[Mapping[str, Any]] = field(default_factory=list)
    templates: dict[str, tuple[Mapping[str, Any], datetime]] = field(default_factory=dict)
    _errors: dict[str, list[Exception]] = field(default_factory=dict)
    _lose_answers: int = 0

    def __post_init__(self) -> None:
        self.ec2 = Ec2(self.clock.now)
        self._fresh = (f"10.0.{n // 256}.{n % 256}" for n in count(1))

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
        for offering in offerings:
            self.ec2.pools.set(pool_of(offering), left)

    def add(self, *instances: Instance) -> None:
        """Let instances exist that were not launched through this fake."""
        for instance in instances:
            machine = Model(
                instance_id=instance.instance_id,
                pool=pool_of(instance.offering),
                subnet_id="",
                launched_at=instance.launched_at or self.clock.now(),
                private_dns_name=instance.private_dns_name,
                image_id=instance.image_id,
                tags=dict(instance.tags),
            )
            machine.enter(machine.launched_at, (timedelta(0), instance.state))
            self.ec2.instances[machine.instance_id] = machine

    def end(self, *instance_ids: str) -> None:
        """Terminate machines, as an interruption or a user of the console does."""
        self._age()
        for instance_id in instance_ids:
            self.ec2.terminate(self.ec2.instances[instance_id])

    @property
    def all_instances(self) -> tuple[Instance, ...]:
        """Every instance there ever was as it is now, whether shown or not, sorted by id."""
        self._age()
        return self._seen(self.ec2.instances.values())

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
        found = map(self._now_free, self.all_subnets()) if template.subnet_selector else ()
        groups = self.security_groups if template.security_group_selector else ()
        ordered = sorted(
            found, key=lambda entry: (entry.zone, -entry.free_addresses, entry.subnet_id)
        )
        return Site(subnets=tuple(ordered), security_groups=groups)

    def image_ids(self, parameters: Sequence[str]) -> Mapping[str, str]:
        self._call("image_ids", tuple(parameters))
        return {
            parameter: image_named(parameter)
            for parameter in sorted({*parameters} - self.missing_images)
        }

    def find_images(self, selector: Selector) -> tuple[MachineImage, ...]:
        self._call("find_images", selector)
        return tuple(sorted(found_by(selector, self.images), key=lambda entry: entry.image_id))

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
        self.ec2.token_life = timedelta(0) if self.forgets_tokens else None
        token = request.get("ClientToken", "")
        with answering("CreateFleet"):
            answer = self.ec2.once(token, request, lambda: self._bought(request))
        if self._lose_answers:
            self._lose_answers -= 1
            raise UnavailableError("create_fleet: timed out")
        zones = {subnet.subnet_id: subnet.zone for subnet in self.all_subnets()}
        return fleet_answer(answer, request, zones)

    def instances(self, instance_ids: Sequence[str]) -> tuple[Instance, ...]:
        self._call("instances", tuple(instance_ids))
        known = self.ec2.instances
        return self._shown(known[value] for value in {*instance_ids} if value in known)

    def tagged_instances(self, tags: Mapping[str, str]) -> tuple[Instance, ...]:
        self._call("tagged_instances", dict(tags))
        wanted = {**tags, **self._ours}.items()
        found = [
            machine for machine in self.ec2.instances.values() if wanted <= machine.tags.items()
        ]
        return tuple(instance for instance in self._shown(found) if instance.state != "terminated")

    def terminate(self, instance_ids: Sequence[str]) -> None:
        self._call("terminate", tuple(instance_ids))
        for instance_id in instance_ids:
            machine = self.ec2.instances.get(instance_id)
            if machine is not None:
                self.ec2.terminate(machine)

    # --- the account that a launch is made in

    def template(self, specification: Mapping[str, Any]) -> Template:
        name = specification["LaunchTemplateName"]
        if name not in self.templates:
            code = "InvalidLaunchTemplateName.NotFoundException"
            raise ApiError(code, f"launch template {name}: no such template")
        return Template(specification=specification, launch=self.templates[name][0])

    def place(self, subnet_id: str) -> Place | None:
        found = next(
            (subnet for subnet in self.all_subnets() if subnet.subnet_id == subnet_id), None
        )
        if found is None:
            return None
        free = self._now_free(found).free_addresses
        return Place(subnet_id=subnet_id, zone=found.zone, free_addresses=free)

    def price(self, pool: PoolKey) -> int:
        return self.prices.get(_offering(pool), 0)

    def launch(self, launch: Launch) -> Iterator[str]:
        data = launch.option.template.launch
        for _ in range(launch.count):
            machine = self.made(launch)
            machine.image_id = str(data.get("ImageId", ""))
            machine.tags.update(launch.request_tags.get("instance", {}))
            self.ec2.admit(machine, self.fate(data))
            yield machine.instance_id

    def made(self, launch: Launch) -> Model:
        """Return a new instance."""
        now = self.ec2.now()
        address = self.ec2.addresses.take(launch.option.subnet_id, self._fresh, now)
        assert address is not None
        return Model(
            instance_id=f"i-{len(self.ec2.instances) + 1:017x}",
            pool=launch.pool,
            subnet_id=launch.option.subnet_id,
            launched_at=now,
            address=address,
            private_dns_name=f"ip-{address.replace('.', '-')}.ec2.internal",
        )

    # --- inside

    def _bought(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self.fleets.append(request)
        return self.ec2.create_fleet(self, request)

    @property
    def _ours(self) -> dict[str, str]:
        return {keys.TAG_CLUSTER: self.cluster, f"kubernetes.io/cluster/{self.cluster}": "owned"}

    def _call(self, method: str, subject: object = None) -> None:
        self._age()
        self.calls.append(Call(method, subject))
        waiting = self._errors.get(method)
        if waiting:
            raise waiting.pop(0)

    def _age(self) -> None:
        self.ec2.settings = self.delays
        self.delays.hidden = ((timedelta(0), self.delays.shown),)

    def all_subnets(self) -> tuple[Subnet, ...]:
        """Return the subnets with their sizes."""
        if self.subnets is not None:
            return self.subnets
        return tuple(
            Subnet(subnet_id=f"subnet-{zone}", zone=zone, free_addresses=250) for zone in self.zones
        )

    def _now_free(self, subnet: Subnet) -> Subnet:
        taken = self.ec2.addresses.taken(subnet.subnet_id, self.ec2.now())
        return replace(subnet, free_addresses=subnet.free_addresses - taken) if taken else subnet

    def _shown(self, machines: Iterable[Model]) -> tuple[Instance, ...]:
        return self._seen(machine for machine in machines if self.ec2.shows(machine))

    def _seen(self, machines: Iterable[Model]) -> tuple[Instance, ...]:
        found = (seen(self.ec2, machine) for machine in machines)
        return tuple(sorted(found, key=lambda entry: entry.instance_id))


@contextmanager
def answering(action: str) -> Iterator[None]:
    """Raise what the adapter of EC2 raises for an error of the API."""
    with translated(action):
        try:
            yield
        except ApiError as error:
            row = {"Error": {"Code": error.code, "Message": error.message}}
            raise ClientError(row, action) from error


def seen(ec2: Ec2, machine: Model) -> Instance:
    """Return an instance as DescribeInstances shows it."""
    state, reason = machine.state(ec2.now()), machine.reason
    if reason is None or state not in ENDING:
        reason = Reason("", "")
    return Instance(
        instance_id=machine.instance_id,
        state=state,
        offering=_offering(machine.pool),
        private_dns_name=ec2.name_of(machine),
        image_id=machine.image_id,
        launched_at=machine.launched_at.replace(microsecond=0),
        tags=dict(machine.tags),
        state_reason=reason.code,
        state_message=reason.message,
    )


def pool_of(offering: OfferingKey) -> PoolKey:
    """Return the capacity pool of an offering."""
    return (offering.instance_type, offering.zone, offering.capacity_type.value)


def _offering(pool: PoolKey) -> OfferingKey:
    kind, zone, bought_as = pool
    return OfferingKey(instance_type=kind, zone=zone, capacity_type=CapacityType(bought_as))
