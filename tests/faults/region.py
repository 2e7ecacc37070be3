"""EC2 of one Region as it can be: late to show, short of capacity, throttled, forgetful."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

from shared.aws.decay import TokenBucket
from shared.model.errors import NotFoundError, PermanentError, ThrottledError
from shared.model.instance_types import CapacityType, InstanceType, OfferingKey
from shared.model.launch import FleetAnswer, FleetError, FleetInstance, Instance
from tests.fakes.cloud import FakeCloud
from tests.faults.chances import between, draw
from tests.faults.faults import Action, CallFaults, Site
from tests.faults.kernel import Kernel
from tests.faults.machines import Machine, Replay, Surroundings

_BURST: Final = 8
_PER_SECOND: Final = 3.0
_TOKEN_LIFE: Final = timedelta(seconds=150)


@dataclass
class _Told:
    """An answer EC2 has given to a ClientToken."""

    answer: FleetAnswer
    time: int


@dataclass
class Region:
    """What all clusters of the account share.

    Attributes:
        machines: By instance id, all there ever were.
        out_of: Until when an offering cannot be had, and how many are left of it.
        failed: CreateFleet calls that launched nothing.
        calls: CreateFleet calls that reached EC2.
        first_success: Number of the first call that launched anything.
    """

    seed: int
    kernel: Kernel
    faults: CallFaults
    surroundings: Surroundings
    types: Mapping[str, InstanceType]
    replay: Replay
    slow: bool = False
    machines: dict[str, Machine] = field(default_factory=dict)
    out_of: dict[OfferingKey, tuple[int, int]] = field(default_factory=dict)
    told: dict[str, _Told] = field(default_factory=dict)
    calls: int = 0
    throttled: int = 0
    failed: int = 0
    first_success: int = 0
    bucket: TokenBucket | None = None

    def room_for(self, offering: OfferingKey, asked: int) -> int:
        until, left = self.out_of.get(offering, (0, asked))
        return asked if self.kernel.time >= until else min(left, asked)

    def take(self, offering: OfferingKey, count: int) -> None:
        if offering in self.out_of:
            until, left = self.out_of[offering]
            self.out_of[offering] = (until, max(left - count, 0))

    def spend(self) -> None:
        """Take one of the account's CreateFleet tokens.

        Raises:
            ThrottledError: If there is none.
        """
        now = self.kernel.now()
        kept = self.bucket or TokenBucket.full(_BURST, now)
        bucket = kept.refilled(_BURST, _PER_SECOND, now)
        taken = bucket.taken()
        self.bucket = taken or bucket
        others = self.faults.event(
            Site("ec2", "CreateFleet", "tokens"),
            self.kernel.time,
            (Action.THROTTLED_BY_OTHERS, 0.05),
        )
        if taken is None or others is not None:
            self.throttled += 1
            raise ThrottledError("CreateFleet: RequestLimitExceeded")

    def end(self, machine: Machine) -> None:
        """End a machine; again is fine."""
        if machine.ended is None:
            machine.ended = self.kernel.time
            span = between(2, 25, self.seed, "ending", machine.instance.instance_id)
            machine.gone = machine.ended + int(span * 1e6)
            self.surroundings.ending(machine)

    def state(self, machine: Machine) -> str:
        if machine.ended is not None:
            return "terminated" if self.kernel.time >= machine.gone else "shutting-down"
        return "running" if self.kernel.time >= machine.running else "pending"

    def alive(self, cluster: str) -> list[Machine]:
        return [m for m in self.machines.values() if m.cluster == cluster and m.ended is None]

    def launch(
        self, cluster: str, offering: OfferingKey, tags: Mapping[str, str], user_data: str
    ) -> FleetInstance:
        number = len(self.machines) + 1
        instance_id = f"i-{number:017x}"
        longest = 16.0 if self.slow else 8.0
        late = longest * draw(self.seed, "shown", instance_id) ** 2
        machine = Machine(
            cluster=cluster,
            instance=Instance(
                instance_id=instance_id,
                state="pending",
                offering=offering,
                private_dns_name=f"ip-10-0-{number // 256}-{number % 256}.ec2.internal",
                image_id="ami-1",
                launched_at=self.kernel.now().replace(microsecond=0),
                tags=dict(tags),
            ),
            born=self.kernel.time,
            shown=self.kernel.time + int(late * 1e6),
            running=self.kernel.time + int(1e6 * (late + 2)),
            user_data=user_data,
        )
        self.machines[instance_id] = machine
        self.surroundings.launched(machine)
        return FleetInstance(instance_id=instance_id, offering=offering)


@dataclass
class RegionCloud(FakeCloud):
    """Implements shared.ports.CloudProvider for one cluster of the Region."""

    region: Region = field(kw_only=True)

    def create_fleet(self, request: Mapping[str, Any]) -> FleetAnswer:
        region = self.region
        region.calls += 1
        for config in request["LaunchTemplateConfigs"]:
            name = config["LaunchTemplateSpecification"]["LaunchTemplateName"]
            if name not in self.templates:
                raise NotFoundError(f"launch template {name}: no such template")
        region.spend()
        token = request["ClientToken"]
        told = region.told.get(token)
        if told is not None:
            again = self._replayed(told)
            if again is not None:
                return again
        answer = self._filled(request)
        region.told[token] = _Told(answer, region.kernel.time)
        if not answer.instances:
            region.failed += 1
        elif not region.first_success:
            region.first_success = region.calls
        return answer

    def instances(self, instance_ids: Sequence[str]) -> tuple[Instance, ...]:
        machines = self.region.machines
        return tuple(
            self._seen_of(machines[one] for one in sorted(instance_ids) if one in machines)
        )

    def terminate(self, instance_ids: Sequence[str]) -> None:
        for one in instance_ids:
            machine = self.region.machines.get(one)
            if machine is not None:
                self.region.end(machine)

    def _replayed(self, told: _Told) -> FleetAnswer | None:
        region = self.region
        if region.replay is Replay.FORGOTTEN:
            span = timedelta(microseconds=region.kernel.time - told.time)
            return told.answer if span < _TOKEN_LIFE else None
        if region.replay is Replay.MISMATCH:
            raise PermanentError("CreateFleet: IdempotentParameterMismatch")
        if region.replay is Replay.PART:
            return replace(told.answer, instances=told.answer.instances[:1])
        return told.answer

    def _filled(self, request: Mapping[str, Any]) -> FleetAnswer:
        region = self.region
        target = request["TargetCapacitySpecification"]
        bought_as = CapacityType(target["DefaultTargetCapacityType"])
        zone_of = {one.subnet_id: one.zone for one in self._all_subnets()}
        asked: list[tuple[OfferingKey, str]] = []
        for config in request["LaunchTemplateConfigs"]:
            name = config["LaunchTemplateSpecification"]["LaunchTemplateName"]
            user_data = self.templates[name][0]["UserData"]
            asked += [
                (
                    OfferingKey(
                        instance_type=one["InstanceType"],
                        zone=zone_of[one["SubnetId"]],
                        capacity_type=bought_as,
                    ),
                    user_data,
                )
                for one in config["Overrides"]
            ]
        missing = int(target["TotalTargetCapacity"])
        hidden = 0
        site = Site("ec2", "CreateFleet", "answer")
        if region.faults.event(site, region.kernel.time, (Action.PARTIAL, 0.04)) is not None:
            hidden = 1 if missing > 1 else 0
            missing -= hidden
        launched: list[FleetInstance] = []
        refused: list[OfferingKey] = []
        tags = _tags(request)
        for offering, user_data in sorted(asked, key=lambda one: self.prices.get(one[0], 0)):
            count = region.room_for(offering, missing)
            region.take(offering, count)
            launched.extend(
                region.launch(self.cluster, offering, tags, user_data) for _ in range(count)
            )
            missing -= count
            if not missing:
                break
            refused.append(offering)
        refused = self._named(refused)
        return FleetAnswer(
            fleet_id=f"fleet-{region.calls}",
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

    def _named(self, refused: list[OfferingKey]) -> list[OfferingKey]:
        """Return those of the refused that EC2 names: mostly one, however many there were.

        Source: https://github.com/kubernetes-sigs/karpenter/issues/3198 (2026-08): 88 % of
        failures name a single offering.
        """
        whole = draw(self.region.seed, "named", self.region.calls)
        return refused if whole < 0.12 else refused[: 1 if whole < 0.95 else 0]

    def _call(self, method: str, subject: object = None) -> None:
        """Remember nothing: schedules are many."""

    def _shown(self) -> Iterable[Instance]:
        return self._seen_of(self.region.machines.values())

    def _seen_of(self, machines: Iterable[Machine]) -> list[Instance]:
        region, time = self.region, self.region.kernel.time
        found = []
        for machine in machines:
            if machine.cluster != self.cluster or machine.shown > time:
                continue
            state = region.state(machine)
            if state == "terminated" and time > machine.gone + 600_000_000:
                continue
            young = time < machine.shown + 3_000_000
            if young and draw(region.seed, "flicker", machine.instance.instance_id, time) < 0.3:
                continue
            found.append(replace(machine.instance, state=state))
        return found


def _tags(request: Mapping[str, Any]) -> dict[str, str]:
    return {
        tag["Key"]: tag["Value"]
        for one in request.get("TagSpecifications", ())
        if one["ResourceType"] == "instance"
        for tag in one["Tags"]
    }
