"""CreateFleet of type instant: the model decides, tokens count."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from moto.core.responses import ActionResult
from moto.ec2.models.amis import AmiBackend
from moto.ec2.responses.fleets import Fleets

from infra.local.aws.ec2.world import World
from infra.local.aws.moto_patches import Repairs

INSTANT: Final = "instant"


def repair(repairs: Repairs, world: World) -> None:
    """Put the simulator in the place of CreateFleet, and make tokens count."""
    stock_create = repairs.stock(Fleets, "create_fleet")

    def create_fleet(self: Any) -> ActionResult:
        if self._get_param("Type") != INSTANT:
            answer: ActionResult = stock_create(self)
            return answer
        self.error_on_dryrun()
        account = world.account_of(self.ec2_backend)
        token = self._get_param("ClientToken")
        body = {key: value for key, value in self.params.items() if key != "ClientToken"}
        key = token and (self.current_account, self.region, token)
        with world.lock:
            create = partial(world.ec2.create_fleet, account, self.params)
            fleet = world.ec2.once(key, body, create)
        for name in sorted(_types_without_capacity(fleet)):
            world.harmed("capacity refused", name)
        if fleet["Instances"]:
            world.launched()
        return ActionResult(fleet)

    repairs.replace(Fleets, "create_fleet", create_fleet)
    _repair_image_lookup(repairs)


def _types_without_capacity(fleet: Mapping[str, Any]) -> set[str]:
    return {
        row["LaunchTemplateAndOverrides"]["Overrides"]["InstanceType"]
        for row in fleet["Errors"]
        if row["ErrorCode"] == "InsufficientInstanceCapacity"
    }


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
