"""What EC2 may do to an instance by itself: take it back, warn, stop it, announce trouble."""

from functools import partial
from typing import Any, Final

from moto.ec2.exceptions import InvalidInstanceIdError

from infra.local.aws.control import ControlError
from infra.local.aws.ec2.host import Json, choice, number, text
from infra.local.aws.ec2.world import World
from infra.local.ec2.machines import ENDING, SPOT_REASON
from infra.local.ec2.pools import SPOT

KINDS: Final = ("spot", "rebalance", "state", "health")
WARNING_SECONDS: Final = 120.0
STATES: Final = ("stopped", "terminated")


def interrupt(world: World, body: Json) -> dict[str, Any]:
    """Serve the verb `interrupt`.

    Args:
        world: the state.
        body: `instance_id`; `kind`, one of `KINDS`; for `spot`, `seconds` from the warning to
            the end (default 120); for `state`, `state` (stopped or terminated); `region`.

    Returns:
        `instance_id`, `kind`, and `terminates_in_seconds` when the machine will end.

    Raises:
        ControlError: no such instance, it is ending, or it is not a spot instance.
    """
    kind = choice(body, "kind", KINDS, "spot")
    instance = _find(world, text(body, "instance_id"), text(body, "region", world.region))
    answer: dict[str, Any] = {"instance_id": instance.id, "kind": kind}
    if kind == "spot":
        answer["terminates_in_seconds"] = _take_back(world, instance, body)
    elif kind == "rebalance":
        world.notify(
            instance, "EC2 Instance Rebalance Recommendation", {"instance-id": instance.id}
        )
    elif kind == "state":
        state = choice(body, "state", STATES, "terminated")
        with world.lock:
            act = world.ec2.stop if state == "stopped" else world.ec2.terminate
            act(world.ec2.machines[instance.id])
    else:
        _announce_trouble(world, instance)
    return answer


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


def _take_back(world: World, instance: Any, body: Json) -> float:
    if instance.lifecycle != SPOT:
        raise ControlError(
            f"kind: instance {instance.id!r} is on-demand and is never interrupted: "
            "send kind rebalance, state or health"
        )
    seconds = number(body, "seconds", WARNING_SECONDS)
    world.notify(
        instance,
        "EC2 Spot Instance Interruption Warning",
        {"instance-id": instance.id, "instance-action": "terminate"},
    )
    machine = world.ec2.machines[instance.id]
    world.agenda.after(seconds, partial(world.ec2.terminate, machine, SPOT_REASON))
    return seconds


def _announce_trouble(world: World, instance: Any) -> None:
    code = "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"
    arn = f"arn:aws:ec2:{instance.region_name}:{world.account}:instance/{instance.id}"
    world.announce(
        "aws.health",
        "AWS Health Event",
        {
            "eventArn": f"arn:aws:health:{instance.region_name}::event/EC2/{code}/{instance.id}",
            "service": "EC2",
            "eventTypeCode": code,
            "eventTypeCategory": "scheduledChange",
            "affectedEntities": [{"entityValue": instance.id}],
        },
        arn,
    )
