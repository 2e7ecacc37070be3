"""The control verbs of the embedded EC2."""

from datetime import timedelta
from typing import Any, Final

from infra.local.aws.control import ControlError
from infra.local.aws.ec2.faults import Fault
from infra.local.aws.ec2.host import Host, Json, choice, number, text
from infra.local.aws.ec2.interruption import interrupt
from infra.local.aws.ec2.seeds import KUBERNETES_VERSION, Cluster, seed_clusters
from infra.local.aws.ec2.world import World
from infra.local.ec2.account import LAUNCH_RIGHTS, SPOT_ROLE, Ordered
from infra.local.ec2.pools import ANY, CAPACITY_TYPES, QUOTA_FAMILIES, STANDARD, PoolKey
from infra.local.ec2.refusals import FAILED_LAUNCHES, LAUNCH_ERRORS, failed_launch, refusal

RIGHTS: Final = (*LAUNCH_RIGHTS, SPOT_ROLE)
_AGAIN: Final = ("again_from", "again_to")


def register(host: Host, world: World) -> None:
    """Register every verb; each answers with what is in force after it."""
    _register_capacity(host, world)
    _register_refusals(host, world)
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
        count = int(number(body, "count", 0))
        with world.lock:
            world.ec2.pools.set(_pool(body), count)
        return _capacity(world)

    @host.verb("capacity/reset")
    def _reset(_: Json) -> dict[str, Any]:
        """Make all pools unlimited, drop quotas and ordered refusals: {}."""
        with world.lock:
            world.ec2.pools.reset()
            world.account_of().ordered.clear()
        return _capacity(world)

    @host.verb("quota/set")
    def _quota(body: Json) -> dict[str, Any]:
        """Limit the vCPUs of types that share a quota: {"capacity_type", "family"?, "vcpus"}."""
        kind = choice(body, "capacity_type", CAPACITY_TYPES, "on-demand")
        family = choice(body, "family", QUOTA_FAMILIES, STANDARD)
        with world.lock:
            world.ec2.pools.vcpu_quota[kind, family] = int(number(body, "vcpus"))
        return _capacity(world)

    @host.verb("price/set")
    def _price(body: Json) -> dict[str, Any]:
        """Set one price: {"type", "zone", "capacity_type", "price_micros_per_hour"}."""
        kind = choice(body, "capacity_type", CAPACITY_TYPES)
        key = (text(body, "type"), text(body, "zone"), kind)
        world.book.zonal[key] = int(number(body, "price_micros_per_hour"))
        return {"price_micros_per_hour": world.book.price(*key), "source": world.book.source}


def _pool(body: Json) -> PoolKey:
    kind = choice(body, "capacity_type", (*CAPACITY_TYPES, ANY), ANY)
    return (text(body, "type", ANY), text(body, "zone", ANY), kind)


def _capacity(world: World) -> dict[str, Any]:
    return {
        "pools": [
            {"type": key[0], "zone": key[1], "capacity_type": key[2], "count": count}
            for key, count in sorted(world.ec2.pools.rules.items())
        ],
        "vcpu_quota": {
            f"{kind} {family}": vcpus
            for (kind, family), vcpus in sorted(world.ec2.pools.vcpu_quota.items())
        },
    }


def _register_refusals(host: Host, world: World) -> None:
    @host.verb("refusal/set")
    def _refusal(body: Json) -> dict[str, Any]:
        """Refuse launches: {"code", "type"?, "zone"?, "capacity_type"?, "subnet_id"?}."""
        code = choice(body, "code", tuple(LAUNCH_ERRORS))
        ordered = Ordered(
            refusal=refusal(code),
            pool=_pool(body),
            subnet_id=text(body, "subnet_id", ANY),
        )
        with world.lock:
            world.account_of().ordered.append(ordered)
        return {"code": code, "message": ordered.refusal.message}

    @host.verb("right/set")
    def _right(body: Json) -> dict[str, Any]:
        """Deny the caller of CreateFleet an IAM action, or allow it: {"action", "allowed"?}."""
        action, denied = choice(body, "action", RIGHTS), world.account_of().denied
        with world.lock:
            (denied.discard if body.get("allowed") is True else denied.add)(action)
        return {"denied": sorted(denied)}

    @host.verb("key/set")
    def _key(body: Json) -> dict[str, Any]:
        """Let EBS not use a KMS key; instances with such a disk end: {"key_id", "code"?}."""
        code = choice(body, "code", tuple(FAILED_LAUNCHES), "Client.InternalError")
        with world.lock:
            world.account_of().keys[text(body, "key_id")] = code
        return {"code": code}

    @host.verb("launch-failure/set")
    def _failure(body: Json) -> dict[str, Any]:
        """Let the next instances end while they are pending: {"code", "count"?}."""
        reason = failed_launch(choice(body, "code", tuple(FAILED_LAUNCHES)))
        with world.lock:
            world.account_of().failures.extend([reason] * int(number(body, "count", 1)))
        return {"code": reason.code, "message": reason.message}


def _register_clocks(host: Host, world: World) -> None:
    @host.verb("instances/delay")
    def _delay(body: Json) -> dict[str, Any]:
        """How long instances take: {"running_seconds"?, "terminated_seconds"?}."""
        settings = world.ec2.settings
        for name in ("running", "terminated"):
            before = getattr(settings, name).total_seconds()
            span = timedelta(seconds=number(body, f"{name}_seconds", before))
            setattr(settings, name, span)
        return {
            "running_seconds": settings.running.total_seconds(),
            "terminated_seconds": settings.terminated.total_seconds(),
        }

    @host.verb("consistency/set")
    def _consistency(body: Json) -> dict[str, Any]:
        """Hide instances of an age: {"seconds", "again_from"?, "again_to"?, "profile_seconds"?}.

        An instance is unknown to DescribeInstances for its first seconds, and once more between
        the ages again_from and again_to. An instance profile is unknown for profile_seconds.
        """
        ages = (0.0, number(body, "seconds"), *(number(body, name, 0) for name in _AGAIN))
        spans = [timedelta(seconds=age) for age in ages]
        delay = timedelta(seconds=number(body, "profile_seconds", 0))
        with world.lock:
            world.ec2.settings.hidden = ((spans[0], spans[1]), (spans[2], spans[3]))
            world.account_of().profile_delay = delay
        return {"seconds": ages[1]}

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
    if not isinstance(several, list) or not all(isinstance(entry, str) for entry in several):
        raise ControlError(f"apis: {several!r} is not a list of API names, such as CreateFleet")
    return tuple(several)
