"""CreateFleet of type instant: chooses pools, launches, and says what it could not get."""

import hashlib
import json
import uuid
from collections.abc import Mapping
from typing import Any, Final

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.amis import AmiBackend
from moto.ec2.responses.fleets import Fleets
from moto.ec2.responses.instances import InstanceResponse

from infra.local.aws.ec2 import type_facts
from infra.local.aws.ec2.allocation import Allotment, Candidate, allot
from infra.local.aws.ec2.capacity import (
    ON_DEMAND,
    SPOT,
    Pools,
    Stock,
    no_capacity,
    vcpus_left,
)
from infra.local.aws.ec2.fleet_request import FleetRequest, candidates, read_request
from infra.local.aws.ec2.launching import Launch, launch
from infra.local.aws.ec2.lifecycle import ENDING
from infra.local.aws.ec2.repairs import Repairs
from infra.local.aws.ec2.world import World

INSTANT: Final = "instant"


def remembered(
    world: World, response: Any, action: str
) -> tuple[tuple[str, str, str, str], str, Any] | None:
    """Look a ClientToken up: (key, body hash, earlier answer or None); None without a token.

    Raises:
        EC2ClientError: the token was used with another body (IdempotentParameterMismatch).
    """
    token = response._get_param("ClientToken")
    if not token:
        return None
    body = {key: response.params[key] for key in sorted(response.params) if key != "ClientToken"}
    digest = hashlib.sha256(json.dumps(body, sort_keys=True, default=str).encode()).hexdigest()
    key = (response.current_account, response.region, action, token)
    earlier, answer = world.answers.get(key, (digest, None))
    if earlier != digest:
        raise EC2ClientError(
            "IdempotentParameterMismatch",
            "The client token you have provided was used before with different parameters.",
        )
    return key, digest, answer


def _stock(world: World, backend: Any, request: FleetRequest) -> Stock:
    """What can be launched now: a copy, so that a fleet that fails uses nothing."""
    subnets = sorted({option.subnet_id for option in request.options if option.zone})
    addresses = {}
    for subnet_id in subnets:
        found = [one for one in request.options if one.subnet_id == subnet_id]
        if any(option.refusal is None for option in found):
            addresses[subnet_id] = backend.get_subnet(subnet_id).available_ip_address_count
    used: dict[str, int] = {}
    if world.pools.vcpu_quota:
        for instance in backend.all_instances():
            if instance.state not in ENDING:
                kind = SPOT if instance.lifecycle == SPOT else ON_DEMAND
                used[kind] = used.get(kind, 0) + type_facts.vcpus(instance.instance_type)
    return Stock(
        pools=Pools(rules=dict(world.pools.rules)),
        addresses=addresses,
        vcpus_left=vcpus_left(world.pools.vcpu_quota, used),
    )


def _launched(
    backend: Any, request: FleetRequest, fleet_id: str, one: Candidate, count: int
) -> dict[str, Any]:
    option = request.options[one.index]
    ids = launch(
        backend,
        Launch(
            template=option.template,
            override=option.override,
            subnet_id=option.subnet_id,
            capacity_type=one.capacity_type,
            count=count,
            fleet_id=fleet_id,
            request_tags=request.tags,
        ),
    )
    return {
        "LaunchTemplateAndOverrides": option.described(),
        "Lifecycle": one.capacity_type,
        "InstanceIds": list(ids),
        "InstanceType": one.instance_type,
    }


def create_instant_fleet(
    world: World, backend: Any, parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """Create a fleet: FleetId, Instances by pool, Errors by refused pool in order of trying.

    Raises:
        EC2ClientError: the request as a whole is refused; then nothing was launched.
    """
    request = read_request(backend, parameters)
    stock = _stock(world, backend, request)
    allotments: list[Allotment] = [
        allot(candidates(request, kind, world.book), request.terms[kind], stock)
        for kind in (ON_DEMAND, SPOT)
    ]
    world.pools.rules.update(stock.pools.rules)
    fleet_id = f"fleet-{uuid.uuid4()}"
    answer: dict[str, Any] = {"FleetId": fleet_id, "Errors": [], "Instances": []}
    for allotment in allotments:
        for one, count in allotment.launches:
            answer["Instances"].append(_launched(backend, request, fleet_id, one, count))
        for one, refusal in allotment.refusals:
            answer["Errors"].append(
                {
                    "LaunchTemplateAndOverrides": request.options[one.index].described(),
                    "Lifecycle": one.capacity_type,
                    "ErrorCode": refusal.code,
                    "ErrorMessage": refusal.message,
                }
            )
    return answer


def repair(repairs: Repairs, world: World) -> None:
    """Put the simulator in the place of CreateFleet, and make tokens count."""
    stock_create = repairs.stock(Fleets, "create_fleet")
    stock_run = repairs.stock(InstanceResponse, "run_instances")

    def create_fleet(self: Any) -> ActionResult:
        if self._get_param("Type") != INSTANT:
            answer: ActionResult = stock_create(self)
            return answer
        self.error_on_dryrun()
        with world.lock:
            token = remembered(world, self, "CreateFleet")
            if token and token[2] is not None:
                return ActionResult(token[2])
            result = create_instant_fleet(world, self.ec2_backend, self.params)
            if token:
                world.answers[token[0]] = (token[1], result)
        return ActionResult(result)

    def run_instances(self: Any) -> ActionResult:
        with world.lock:
            token = remembered(world, self, "RunInstances")
            if token and token[2] is not None:
                return ActionResult(token[2])
            _refuse_empty_pool(world, self)
            answer: ActionResult = stock_run(self)
            if token:
                world.answers[token[0]] = (token[1], answer.result)
        return answer

    repairs.replace(Fleets, "create_fleet", create_fleet, parameters=("self",))
    repairs.replace(InstanceResponse, "run_instances", run_instances, parameters=("self",))
    _repair_image_lookup(repairs)


def _repair_image_lookup(repairs: Repairs) -> None:
    stock_images = repairs.stock(AmiBackend, "describe_images")

    def describe_images(self: Any, *args: Any, **kwargs: Any) -> Any:
        # Every launch asks this for one AMI; stock reads the whole list, 4 ms an instance.
        filters = kwargs.get("filters") or {}
        if not args and set(kwargs) == {"filters"} and set(filters) == {"image-id"}:
            wanted = filters["image-id"]
            if isinstance(wanted, str) and not set("*?[") & set(wanted):
                return [self.amis[wanted]] if wanted in self.amis else []
        return stock_images(self, *args, **kwargs)

    head = ("self", "ami_ids", "filters")
    repairs.replace(AmiBackend, "describe_images", describe_images, parameters=head)


def _refuse_empty_pool(world: World, response: Any) -> None:
    instance_type = response._get_param("InstanceType") or "m1.small"
    subnet_id = response._get_param("SubnetId")
    zone = (
        response.ec2_backend.get_subnet(subnet_id).availability_zone
        if subnet_id
        else response._get_param("Placement.AvailabilityZone") or f"{response.region}a"
    )
    kind = SPOT if response._get_param("InstanceMarketOptions.MarketType") == SPOT else ON_DEMAND
    pool = (instance_type, zone, kind)
    count = int(response._get_param("MinCount") or 1)
    left = world.pools.left(pool)
    if left is not None and left < count:
        refusal = no_capacity(*pool)
        raise EC2ClientError(refusal.code, refusal.message)
    world.pools.take(pool, count)
