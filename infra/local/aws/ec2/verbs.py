"""The control verbs of the embedded EC2."""

import math
from datetime import timedelta
from typing import Any

from infra.local.aws.control import Control, ControlError, Json, number, text
from infra.local.aws.ec2.interruption import interrupt
from infra.local.aws.ec2.seeds import KUBERNETES_VERSION, Cluster, seed_clusters
from infra.local.aws.ec2.world import World
from infra.local.ec2.pools import ANY


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
