"""The faults of `dovetail break`: each begins one and says how to tell that it struck and ended."""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from botocore.exceptions import ClientError

from infra.local.breaking.condition import Condition, busiest_spot_node
from infra.local.breaking.running_world import RunningWorld
from infra.local.demo.cluster_client import Object
from infra.local.demo.fault_injection import FaultInjection
from infra.local.demo.problem import Problem
from infra.local.harm import KILLED_AT_LAUNCH

_PROVISION: Final = "provision"


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """A fault that has begun.

    Attributes:
        kind: The kind of harm that tells that it struck; empty, it struck when it began.
        lasts_seconds: It is not over before.
        over: Whether it has run its course, as far as the cluster and EC2 show it.
        untested: What to do where it has not struck.
    """

    told: str
    announced: str = ""
    kind: str = ""
    lasts_seconds: float = 0.0
    over: Callable[[Condition], bool] = lambda _condition: True
    untested: str = ""


Begin = Callable[[RunningWorld, argparse.Namespace], Injection]


def spot_warning(world: RunningWorld, arguments: argparse.Namespace) -> Injection:
    """Warn of the interruption of a spot node's instance, and take it when the time is over."""
    nodes, pods = world.cluster.items("api/v1/nodes"), world.cluster.items("api/v1/pods")
    name = arguments.node or busiest_spot_node(pods, nodes)
    if name is None:
        raise Problem("no spot node is Ready: apply examples/inflate, scale it up, and break again")
    instance_id = _spot_machine(nodes, name)
    _fault_injection(world).interrupt(instance_id, arguments.seconds)
    return Injection(
        told=f"EC2 warned that it takes {name} in {arguments.seconds:g} s",
        announced=f"EC2 warns that it takes {name} in {arguments.seconds:g} s",
        over=lambda condition: instance_id not in condition.instance_ids,
    )


def _spot_machine(nodes: list[Object], name: str) -> str:
    node = next((row for row in nodes if row["metadata"]["name"] == name), None)
    if node is None:
        raise Problem(f"--node {name}: does not exist: name one of `kubectl get nodes`")
    if (node["metadata"].get("labels") or {}).get("karpenter.sh/capacity-type") != "spot":
        raise Problem(f"--node {name}: is not a spot node, and EC2 warns of no other: name one")
    return str(node["spec"].get("providerID", "")).rsplit("/", 1)[-1]


def capacity(world: RunningWorld, arguments: argparse.Namespace) -> Injection:
    """Let EC2 have no instance of a type or a capacity type, for a while."""
    pool, seconds = {}, arguments.seconds
    if arguments.type is not None:
        _check_type(world, arguments.type)
        pool["type"] = arguments.type
    if arguments.capacity_type or not pool:
        pool["capacity_type"] = arguments.capacity_type or "spot"
    world.control("capacity/set", **pool, count=0, seconds=seconds)
    what = f"{' '.join(reversed(pool.values()))} instances for {seconds:g} s"
    return Injection(
        told=f"EC2 had no {what}",
        announced=f"EC2 has no {what}: scale a workload up meanwhile",
        kind="capacity refused",
        lasts_seconds=seconds,
        untested="nothing asked for it: scale a workload up meanwhile",
    )


def _check_type(world: RunningWorld, name: str) -> None:
    try:
        world.client("ec2").describe_instance_types(InstanceTypes=[name])
    except ClientError:
        raise Problem(f"--type {name}: is no instance type: name one, as m5.large") from None


def kill_function(world: RunningWorld, _: argparse.Namespace) -> Injection:
    """Kill provision at the next launch, after EC2 has launched and before provision knows."""
    _fault_injection(world).kill_at_launch(_PROVISION)
    return Injection(
        told="provision was killed between launch and answer",
        announced="the next launch kills provision: scale a workload up",
        kind=KILLED_AT_LAUNCH,
        untested="nothing was launched: scale a workload up; the next launch still kills it",
    )


def throttle(world: RunningWorld, arguments: argparse.Namespace) -> Injection:
    """Let an AWS service refuse the functions' calls, for a while."""
    service, seconds = arguments.service, arguments.seconds
    world.control("throttle", service=service, seconds=seconds)
    return Injection(
        told=f"AWS throttled {service} for {seconds:g} s",
        announced=f"AWS throttles {service} for {seconds:g} s: scale a workload up meanwhile",
        kind="call throttled",
        lasts_seconds=seconds,
        untested="nothing was called: scale a workload up meanwhile",
    )


def api_server(world: RunningWorld, arguments: argparse.Namespace) -> Injection:
    """Freeze the API server for a while; returns when it answers again."""
    _fault_injection(world).api_server_away(arguments.seconds)
    return Injection(told=f"the API server did not answer for {arguments.seconds:g} s")


def _fault_injection(world: RunningWorld) -> FaultInjection:
    return FaultInjection(world.control, world.client, world.api_server_process)


BEGIN: Final[Mapping[str, Begin]] = {
    "spot-warning": spot_warning,
    "capacity": capacity,
    "kill-function": kill_function,
    "throttle": throttle,
    "api-server": api_server,
}


def refused(harm: Mapping[tuple[str, str], int], kind: str) -> int:
    """Return how often a kind of harm struck, of all that it struck."""
    return sum(count for (found, _), count in harm.items() if found == kind)


def told_in_the_end(injection: Injection, harm: Mapping[tuple[str, str], int]) -> str:
    """Return what a fault did, with how much of it was felt where it refuses calls."""
    if not injection.lasts_seconds:
        return injection.told
    times = refused(harm, injection.kind)
    return f"{injection.told}, refused {'once' if times == 1 else f'{times} times'}"
