"""CreateFleet of type instant and RunInstances: the model decides, tokens count."""

from typing import Any, Final

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.amis import AmiBackend
from moto.ec2.responses.fleets import Fleets
from moto.ec2.responses.instances import InstanceResponse

from infra.local.aws.ec2.world import World
from infra.local.aws.moto_patches import Repairs
from infra.local.ec2.pools import ON_DEMAND, SPOT, no_capacity

INSTANT: Final = "instant"


def _once(world: World, response: Any, action: str, act: Any) -> Any:
    token = response._get_param("ClientToken")
    body = {key: value for key, value in response.params.items() if key != "ClientToken"}
    key = token and (response.current_account, response.region, action, token)
    with world.lock:
        return world.ec2.once(key, body, act)


def repair(repairs: Repairs, world: World) -> None:
    """Put the simulator in the place of CreateFleet, and make tokens count."""
    stock_create = repairs.stock(Fleets, "create_fleet")
    stock_run = repairs.stock(InstanceResponse, "run_instances")

    def create_fleet(self: Any) -> ActionResult:
        if self._get_param("Type") != INSTANT:
            answer: ActionResult = stock_create(self)
            return answer
        self.error_on_dryrun()
        account = world.account_of(self.ec2_backend)
        return ActionResult(
            _once(world, self, "CreateFleet", lambda: world.ec2.create_fleet(account, self.params))
        )

    def run_instances(self: Any) -> ActionResult:
        def run() -> Any:
            _refuse_empty_pool(world, self)
            return stock_run(self).result

        return ActionResult(_once(world, self, "RunInstances", run))

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
    left = world.ec2.pools.left(pool)
    if left is not None and left < count:
        refusal = no_capacity(*pool)
        raise EC2ClientError(refusal.code, refusal.message)
    world.ec2.pools.take(pool, count)
