"""The interruption of a spot instance: a warning, then its end."""

from functools import partial
from typing import Any, Final

from moto.ec2.exceptions import InvalidInstanceIdError

from infra.local.aws.control import ControlError, Json, number, text
from infra.local.aws.ec2.world import World
from infra.local.ec2.machines import ENDING, SPOT_REASON
from infra.local.ec2.pools import SPOT

WARNING_SECONDS: Final = 120.0


def interrupt(world: World, body: Json) -> dict[str, Any]:
    """Serve the verb `interrupt`.

    Args:
        world: the state.
        body: `instance_id`; `seconds` from the warning to the end (default 120); `region`.

    Returns:
        `instance_id` and `terminates_in_seconds`.
    """
    instance = _find(world, text(body, "instance_id"), text(body, "region", world.region))
    if instance.lifecycle != SPOT:
        raise ControlError(
            f"instance_id: {instance.id!r} is on-demand and is never interrupted: "
            "send the id of a spot instance"
        )
    seconds = number(body, "seconds", WARNING_SECONDS)
    world.notify(
        instance,
        "EC2 Spot Instance Interruption Warning",
        {"instance-id": instance.id, "instance-action": "terminate"},
    )
    world.harmed("spot warning", instance.id)
    machine = world.ec2.machines[instance.id]
    world.agenda.after(seconds, partial(world.ec2.terminate, machine, SPOT_REASON))
    return {"instance_id": instance.id, "terminates_in_seconds": seconds}


def _find(world: World, instance_id: str, region: str) -> Any:
    try:
        instance = world.backend(region).get_instance(instance_id)
    except InvalidInstanceIdError as problem:
        raise ControlError(
            f"instance_id: {instance_id!r} is unknown in {region}: send the id of an instance"
        ) from problem
    if instance.state in ENDING:
        raise ControlError(
            f"instance_id: {instance_id!r} is {instance.state}: send one that still runs"
        )
    return instance
