"""EC2 of one Region as it can be: late to show, short of capacity, throttled, forgetful.

What is known of ClientTokens:
https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-idempotency.html (2026-11).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

from infra.local.ec2.account import Launch, Ordered, Place
from infra.local.ec2.instances import SPOT_REASON, USER_REASON, Step
from infra.local.ec2.instances import Instance as Model
from infra.local.ec2.model import Ec2, Replay
from infra.local.ec2.refusals import Reason, failed_launch, refusal
from shared.model.ec2.instance_types import CapacityType, InstanceType, OfferingKey
from shared.model.ec2.launches import FleetAnswer
from shared.model.errors import ThrottledError
from shared.ports import Subnet
from tests.fakes.cloud import FakeCloud, pool_of, seen
from tests.simulation.aws.machines import Machine, Surroundings
from tests.simulation.aws.token_bucket import TokenBucket
from tests.simulation.schedule.faults import Action, CallFaults, Site
from tests.simulation.schedule.kernel import START, Kernel, micros
from tests.simulation.schedule.seeded_random import between, chosen, draw

_API: Final = "CreateFleet"
_NO_CAPACITY: Final = "InsufficientInstanceCapacity"
_KEY: Final = "the key of its disks may not be used"
_FULL: Final = "a subnet is full"
_REASONS: Final = (
    "InvalidGroup.NotFound",
    "InvalidParameterValue",
    "UnauthorizedOperation",
    _FULL,
    _KEY,
)
_BURST: Final = 8
_PER_SECOND: Final = 3.0
_TOKEN_LIFE: Final = timedelta(seconds=150)
_NOTHING: Final = timedelta(0)
# Length of the id of an image that no other has replaced, and the part that SSM names while it
# answers in part.
_IMAGE: Final = len("ami-00000000")
_NAMED: Final = 0.5
_ASKS_AGAIN: Final = 0.5


@dataclass
class Region:
    """What all clusters of the account share.

    Attributes:
        machines: By instance id, all there ever were.
        lacking: Offerings that EC2 itself gave reason to think it is short of: it said so, gave
            fewer than asked for without a reason, or ended a machine.
        failed: CreateFleet calls that launched nothing.
        calls: CreateFleet calls that reached EC2.
        first_success: Number of the first call that launched anything.
        away: Returns whether EC2 does not answer.
        asks_again: Whether a ClientToken of a fleet that launched nothing leads to another try:
            what is documented is the answer to one whose request succeeded.
    """

    seed: int
    kernel: Kernel
    faults: CallFaults
    surroundings: Surroundings
    types: Mapping[str, InstanceType]
    replay: Replay
    slow: bool = False
    machines: dict[str, Machine] = field(default_factory=dict)
    lacking: set[OfferingKey] = field(default_factory=set)
    calls: int = 0
    throttled: int = 0
    failed: int = 0
    first_success: int = 0
    away: Callable[[], bool] = lambda: False

    def __post_init__(self) -> None:
        self.ec2 = Ec2(self.kernel.now, changed=self._changed)
        self.ec2.replay = self.replay
        self.asks_again = draw(self.seed, "asks again") < _ASKS_AGAIN
        self.ec2.token_life = _TOKEN_LIFE if self.replay is Replay.FORGOTTEN else None
        self.bucket = TokenBucket(
            burst=_BURST,
            per_second=_PER_SECOND,
            monotonic=lambda: self.kernel.time / 1_000_000,
            tokens=_BURST,
        )

    def run_out(self, offering: OfferingKey, until: int, left: int) -> None:
        """Leave so many machines of an offering until a microsecond."""
        self.ec2.pools.set(pool_of(offering), left, START + timedelta(microseconds=until))

    def spend(self) -> None:
        """Take one of the account's CreateFleet tokens.

        Raises:
            ThrottledError: If there is none.
        """
        allowed = self.bucket.take()
        others = self.faults.event(
            Site("ec2", _API, "tokens"), self.kernel.time, (Action.THROTTLED_BY_OTHERS, 0.05)
        )
        if not allowed or others is not None:
            self.throttled += 1
            raise ThrottledError("CreateFleet: RequestLimitExceeded")

    def end(self, machine: Machine) -> None:
        """End a machine; again is fine."""
        if machine.taken:
            self.lacking.add(machine.instance.offering)
        span = between(2, 25, self.seed, "ending", machine.instance.instance_id)
        self.ec2.settings.terminated = timedelta(seconds=span)
        spot = machine.taken and machine.instance.offering.capacity_type is CapacityType.SPOT
        self.ec2.terminate(machine.model, SPOT_REASON if spot else USER_REASON)

    def stop(self, machine: Machine) -> None:
        """Stop a machine as a user would; a spot machine of an instant fleet cannot be stopped.

        Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Stop_Start.html (2026-11).
        """
        if machine.instance.offering.capacity_type is CapacityType.ON_DEMAND:
            span = between(2, 25, self.seed, "stopping", machine.instance.instance_id)
            self.ec2.settings.stopped = timedelta(seconds=span)
            self.ec2.stop(machine.model)

    def kept(self, cluster: str) -> list[Machine]:
        """Return Dovetail's machines whose termination has not begun, stopped ones included."""
        return [
            machine
            for machine in self.machines.values()
            if machine.cluster == cluster and machine.is_ours and machine.ended is None
        ]

    def alive(self, cluster: str) -> list[Machine]:
        """Return Dovetail's machines whose stop or termination has not begun."""
        return [machine for machine in self.kept(cluster) if not machine.leaves]

    def launched(self, machine: Machine) -> None:
        """Let a machine exist; one that cannot start ends by itself."""
        self.machines[machine.instance.instance_id] = machine
        self.surroundings.launched(machine)
        end = machine.model.entered("shutting-down")
        if end is not None:
            self.kernel.at(micros(end - START), lambda: self._ended(machine))

    def _changed(self, model: Model, steps: list[Step]) -> None:
        machine = self.machines.get(model.instance_id)
        if machine is not None and steps[0].state == "stopping":
            machine.stopped = micros(steps[0].at - START)
            self.surroundings.stopping(machine)
        elif machine is not None:
            self._ended(machine)

    def _ended(self, machine: Machine) -> None:
        if machine.ended is None:
            ended, gone = machine.model.steps[-2:]
            machine.ended, machine.gone = micros(ended.at - START), micros(gone.at - START)
            self.surroundings.ending(machine)


@dataclass
class RegionCloud(FakeCloud):
    """Implements shared.ports.CloudProvider for one cluster of the Region.

    Attributes:
        locked_until: Microsecond until which EBS may not use the key of the cluster's disks.
        full_until: Subnet id to the microsecond until which it has no free address.
        silent_until: Microsecond until which SSM names a part of the images only.
        images_gone: How often all images were deregistered and others took their place.
        named_from: Microsecond from which SSM names those.
    """

    region: Region = field(kw_only=True)
    locked_until: int = 0
    full_until: dict[str, int] = field(default_factory=dict)
    silent_until: int = 0
    images_gone: int = 0
    named_from: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.metadata_tags = True
        self.ec2 = self.region.ec2
        self.subnets = tuple(
            Subnet(subnet_id=f"subnet-{self.cluster}-{zone}", zone=zone, free_addresses=4000)
            for zone in self.zones
        )

    def refuse(self, number: int, until: int) -> None:
        """Let launches of this cluster be refused until a microsecond, for a reason of its own."""
        what = chosen(_REASONS, self.region.seed, "refused", self.cluster, number)
        if what == _KEY:
            self.locked_until = until
        elif what == _FULL:
            zone = chosen(self.zones, self.region.seed, "full", self.cluster, number)
            self.full_until[f"subnet-{self.cluster}-{zone}"] = until
        else:
            end = START + timedelta(microseconds=until)
            self.ordered = [Ordered(refusal=refusal(what), until=end)]

    def deregister(self, named_from: int) -> None:
        """Let every image be gone; SSM names the next ones from a microsecond on."""
        self.images_gone, self.named_from = self.images_gone + 1, named_from

    def image_ids(self, parameters: Sequence[str]) -> Mapping[str, str]:
        time, number = self.region.kernel.time, self.images_gone
        silent = time < self.silent_until
        named = number - 1 if number and time < self.named_from else number
        return {
            parameter: f"{image}{named:x}" if named else image
            for parameter, image in super().image_ids(parameters).items()
            if not silent or draw(self.region.seed, "named", parameter, self.silent_until) < _NAMED
        }

    def architecture(self, image_id: str) -> str | None:
        """Return what an image runs on: anything, or None for one that is deregistered."""
        number = int(image_id[_IMAGE:] or "0", 16)
        return "" if number >= self.images_gone else None

    def place(self, subnet_id: str) -> Place | None:
        found = super().place(subnet_id)
        full = found and self.full_until.get(subnet_id, 0) > self.region.kernel.time
        return replace(found, free_addresses=0) if found and full else found

    def fate(self, launch: Mapping[str, Any]) -> Reason | None:
        locked = self.region.kernel.time < self.locked_until
        return failed_launch("Client.InternalError") if locked else super().fate(launch)

    def create_fleet(self, request: Mapping[str, Any]) -> FleetAnswer:
        self.region.calls += 1
        self.region.spend()
        answer = super().create_fleet(request)
        if not answer.instances and self.region.asks_again:
            self.ec2.forget(request["ClientToken"])
        return answer

    def launch(self, launch: Launch) -> Iterator[str]:
        for instance_id in super().launch(launch):
            model = self.ec2.instances[instance_id]
            machine = Machine(
                cluster=self.cluster,
                model=model,
                instance=seen(self.ec2, model),
                user_data=launch.option.template.launch["UserData"],
            )
            self.region.launched(machine)
            yield instance_id

    def terminate(self, instance_ids: Sequence[str]) -> None:
        for instance_id in instance_ids:
            machine = self.region.machines.get(instance_id)
            if machine is not None:
                self.region.end(machine)

    def made(self, launch: Launch) -> Model:
        model, seed = super().made(launch), self.region.seed
        longest = 16.0 if self.region.slow else 8.0
        late = timedelta(seconds=longest * draw(seed, "shown", model.instance_id) ** 2)
        self.ec2.settings.running = late + timedelta(seconds=2)
        model.hidden = ((_NOTHING, late),)
        if draw(seed, "flicker", model.instance_id) < 0.5:
            again = late + timedelta(seconds=between(0.1, 3, seed, "unknown", model.instance_id))
            length = between(0.1, 3, seed, "unknown for", model.instance_id)
            model.hidden += ((again, again + timedelta(seconds=length)),)
        return model

    def _bought(self, request: Mapping[str, Any]) -> dict[str, Any]:
        region, wanted = self.region, dict(request["TargetCapacitySpecification"])
        site, total = Site("ec2", _API, "answer"), int(wanted["TotalTargetCapacity"])
        if region.faults.event(site, region.kernel.time, (Action.PARTIAL, 0.1)) and total > 1:
            wanted["TotalTargetCapacity"] = total - 1
            region.lacking |= self.asked(request)
        answer = self.ec2.create_fleet(self, {**request, "TargetCapacitySpecification": wanted})
        if not answer["Instances"]:
            region.failed += 1
        elif not region.first_success:
            region.first_success = region.calls
        if any(error["ErrorCode"] == _NO_CAPACITY for error in answer["Errors"]):
            region.lacking |= self.asked(request)
        return {**answer, "Errors": self._named(answer["Errors"])}

    def asked(self, request: Mapping[str, Any]) -> set[OfferingKey]:
        """Return what a request asks for: EC2 names only a part of what it is short of."""
        zones = {subnet.subnet_id: subnet.zone for subnet in self.all_subnets()}
        bought_as = CapacityType(
            request["TargetCapacitySpecification"]["DefaultTargetCapacityType"]
        )
        return {
            OfferingKey(
                instance_type=override["InstanceType"],
                zone=zones[override["SubnetId"]],
                capacity_type=bought_as,
            )
            for config in request["LaunchTemplateConfigs"]
            for override in config["Overrides"]
        }

    def _named(self, errors: list[Any]) -> list[Any]:
        """Return those of the errors that EC2 names: of a shortage mostly one.

        Source: https://github.com/kubernetes-sigs/karpenter/issues/3198 (2026-08): 88 % of
        failures name a single offering.
        """
        whole = draw(self.region.seed, "named", self.region.calls)
        short = [error for error in errors if error["ErrorCode"] == _NO_CAPACITY]
        if whole < 0.12 or not short:
            return errors
        kept = short[: 1 if whole < 0.95 else 0]
        return [error for error in errors if error not in short or error in kept]

    def _call(self, method: str, subject: object = None) -> None:
        """Remember nothing: schedules are many."""
