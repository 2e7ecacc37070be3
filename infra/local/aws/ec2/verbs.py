"""The control verbs of the embedded EC2."""

import math
from datetime import timedelta
from functools import partial
from typing import Any, Final

from moto.ec2.exceptions import InvalidInstanceIdError

from infra.local.aws.control import Control, ControlError, Json, number, text
from infra.local.aws.ec2.seeds import KUBERNETES_VERSION, Cluster, seed_clusters
from infra.local.aws.ec2.world import World
from infra.local.ec2.instances import ENDING, SPOT_REASON
from infra.local.ec2.pools import ANY, SPOT


def register(control: Control, world: World) -> None:
    """Register every verb; each answers with what is in force after it."""

    @control.verb("interrupt")
    def _interrupt(body: Json) -> dict[str, Any]:
        """Warn of a spot interruption, then terminate: {"instance_id", "seconds"?}."""
        return interrupt(world, body)

    @control.verb("seed")
    def _seed(body: Json) -> dict[str, Any]:
        """Make clusters: {"clusters": [{"name", "endpoint", "ca_data"}], "region"?}."""
        rows = body.get("clusters", [])
        if not isinstance(rows, list):
            raise ControlError(f"clusters: {rows!r} is not a list: send [{{name, endpoint, ...}}]")
        clusters = tuple(
            Cluster(
                name=text(row, "name"),
                endpoint=text(row, "endpoint"),
                ca_data=text(row, "ca_data"),
                version=text(row, "version", KUBERNETES_VERSION),
            )
            for row in rows
        )
        return seed_clusters(world, text(body, "region", world.region), clusters)

    @control.verb("capacity/set")
    def _capacity(body: Json) -> dict[str, Any]:
        """Limit a pool: {"type"?, "zone"?, "capacity_type"?, "count", "seconds"?}.

        `*` or nothing is any; without seconds the limit stays.
        """
        pool = (text(body, "type", ANY), text(body, "zone", ANY), text(body, "capacity_type", ANY))
        count = int(number(body, "count", 0))
        seconds = number(body, "seconds", math.inf)
        with world.lock:
            ends = None if math.isinf(seconds) else world.time() + timedelta(seconds=seconds)
            world.ec2.pools.set(pool, count, ends)
        return {"count": count}


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
    model = world.ec2.instances[instance.id]
    world.agenda.after(seconds, partial(world.ec2.terminate, model, SPOT_REASON))
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
