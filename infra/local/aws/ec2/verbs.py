"""The control verbs of the embedded EC2."""

from typing import Any

from infra.local.aws.control import ControlError
from infra.local.aws.ec2.capacity import ANY, CAPACITY_TYPES
from infra.local.aws.ec2.faults import Fault
from infra.local.aws.ec2.host import Host, Json, choice, number, text
from infra.local.aws.ec2.interruption import interrupt
from infra.local.aws.ec2.seeds import KUBERNETES_VERSION, Cluster, seed_clusters
from infra.local.aws.ec2.world import World


def register(host: Host, world: World) -> None:
    """Register every verb; each answers with what is in force after it."""
    _register_capacity(host, world)
    _register_clocks(host, world)

    @host.verb("interrupt")
    def _interrupt(body: Json) -> dict[str, Any]:
        """Do what EC2 may: {"instance_id", "kind": one of KINDS, "seconds"?, "state"?}."""
        return interrupt(world, body)

    @host.verb("seed")
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


def _register_capacity(host: Host, world: World) -> None:
    @host.verb("capacity/set")
    def _set(body: Json) -> dict[str, Any]:
        """Limit a pool: {"type"?, "zone"?, "capacity_type"?, "count"}; `*` or nothing is any."""
        kinds = (*CAPACITY_TYPES, ANY)
        key = (
            text(body, "type", ANY),
            text(body, "zone", ANY),
            choice(body, "capacity_type", kinds, ANY),
        )
        count = int(number(body, "count", 0))
        with world.lock:
            world.pools.set(key, count)
        return _capacity(world)

    @host.verb("capacity/reset")
    def _reset(_: Json) -> dict[str, Any]:
        """Make all pools unlimited and drop quotas: {}."""
        with world.lock:
            world.pools.reset()
        return _capacity(world)

    @host.verb("quota/set")
    def _quota(body: Json) -> dict[str, Any]:
        """Limit the vCPUs of a capacity type: {"capacity_type", "vcpus"}."""
        kind = choice(body, "capacity_type", CAPACITY_TYPES, "on-demand")
        with world.lock:
            world.pools.vcpu_quota[kind] = int(number(body, "vcpus"))
        return _capacity(world)

    @host.verb("price/set")
    def _price(body: Json) -> dict[str, Any]:
        """Set one price: {"type", "zone", "capacity_type", "price_micros_per_hour"}."""
        kind = choice(body, "capacity_type", CAPACITY_TYPES)
        key = (text(body, "type"), text(body, "zone"), kind)
        world.book.zonal[key] = int(number(body, "price_micros_per_hour"))
        return {"price_micros_per_hour": world.book.price(*key), "source": world.book.source}


def _capacity(world: World) -> dict[str, Any]:
    return {
        "pools": [
            {"type": key[0], "zone": key[1], "capacity_type": key[2], "count": count}
            for key, count in sorted(world.pools.rules.items())
        ],
        "vcpu_quota": dict(sorted(world.pools.vcpu_quota.items())),
    }


def _register_clocks(host: Host, world: World) -> None:
    @host.verb("instances/delay")
    def _delay(body: Json) -> dict[str, Any]:
        """How long instances take: {"running_seconds"?, "terminated_seconds"?}."""
        settings = world.settings
        settings.running_seconds = number(body, "running_seconds", settings.running_seconds)
        settings.terminated_seconds = number(
            body, "terminated_seconds", settings.terminated_seconds
        )
        return {
            "running_seconds": settings.running_seconds,
            "terminated_seconds": settings.terminated_seconds,
        }

    @host.verb("consistency/set")
    def _consistency(body: Json) -> dict[str, Any]:
        """Hide young instances from DescribeInstances: {"seconds"}."""
        world.settings.unseen_seconds = number(body, "seconds")
        return {"seconds": world.settings.unseen_seconds}

    @host.verb("throttle/set")
    def _throttle(body: Json) -> dict[str, Any]:
        """Limit calls: {"api" or "apis", "burst", "per_second"} or {"api", "every"}."""
        apis = _apis(body)
        if "every" in body:
            world.throttles.set_every(apis, int(number(body, "every")))
        else:
            world.throttles.set_bucket(
                apis, burst=number(body, "burst"), per_second=number(body, "per_second", 0)
            )
        return {"apis": list(apis)}

    @host.verb("throttle/reset")
    def _unthrottle(_: Json) -> dict[str, Any]:
        """Take all call limits away: {}."""
        world.throttles.reset()
        return {}

    @host.verb("fault/set")
    def _fault(body: Json) -> dict[str, Any]:
        """Fail the next calls: {"api", "code"?, "status"?, "count"?, "after"?}."""
        fault = Fault(
            code=text(body, "code", "InternalError"),
            status=int(number(body, "status", 500)),
            after=body.get("after") is True,
        )
        count = int(number(body, "count", 1))
        world.faults.order(text(body, "api"), fault, count)
        return {"count": count}


def _apis(body: Json) -> tuple[str, ...]:
    several = body.get("apis")
    if several is None:
        return (text(body, "api"),)
    if not isinstance(several, list) or not all(isinstance(one, str) for one in several):
        raise ControlError(f"apis: {several!r} is not a list of API names, such as CreateFleet")
    return tuple(several)
