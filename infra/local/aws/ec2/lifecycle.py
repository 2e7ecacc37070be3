"""Instances take time to start and to end, and say so on the default bus."""

import copy
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from moto.core.responses import ActionResult
from moto.ec2.exceptions import (
    EC2ClientError,
    InvalidParameterCombination,
    OperationNotPermitted4,
)
from moto.ec2.models.elastic_network_interfaces import NetworkInterface
from moto.ec2.models.instances import Instance, InstanceBackend, InstanceState, StateReason
from moto.ec2.models.subnets import Subnet
from moto.ec2.responses.instances import InstanceResponse

from infra.local.aws.ec2.repairs import Repairs
from infra.local.aws.ec2.world import World

ENDING: Final = ("shutting-down", "terminated")
FORGET_SECONDS: Final = 3600.0
USER_REASON: Final = (
    "Client.UserInitiatedShutdown",
    "Client.UserInitiatedShutdown: User initiated shutdown",
)
SPOT_REASON: Final = (
    "Server.SpotInstanceTermination",
    "Server.SpotInstanceTermination: Instance terminated by Spot",
)


def begin(world: World, instances: Sequence[Any]) -> None:
    """Turn freshly made instances into pending ones that run after the delay."""
    for instance in instances:
        instance._state = InstanceState("pending", 0)
        world.launched_at[instance.id] = world.agenda.monotonic()
        world.state_changed(instance, "pending")
    world.agenda.after(world.settings.running_seconds, partial(_run, world, tuple(instances)))


def _run(world: World, instances: Sequence[Any]) -> None:
    for instance in instances:
        with world.lock:
            if instance.state != "pending":
                continue
            instance._state = InstanceState("running", 16)
        world.state_changed(instance, "running")


def end(world: World, instance: Any, reason: tuple[str, str] = USER_REASON) -> None:
    """Start to terminate an instance; nothing happens to one that is already ending."""
    with world.lock:
        if instance.state in ENDING:
            return
        instance._state = InstanceState("shutting-down", 32)
        _explain(world, instance, reason)
    world.state_changed(instance, "shutting-down")
    world.agenda.after(world.settings.terminated_seconds, partial(_finish, world, instance, reason))


def stop(world: World, instance: Any) -> None:
    """Stop an instance from outside, as an operator would."""
    with world.lock:
        if instance.state in (*ENDING, "stopped"):
            return
        instance.stop()
    world.state_changed(instance, "stopping")
    world.state_changed(instance, "stopped")


def _finish(world: World, instance: Any, reason: tuple[str, str]) -> None:
    with world.lock:
        for interface in instance.nics.values():
            # Stock keeps the interface, and with it the address, for ever.
            interface.delete_on_termination = interface.id in instance.ec2_backend.enis
        instance.terminate()
        _explain(world, instance, reason)
        world.launched_at.pop(instance.id, None)
    world.state_changed(instance, "terminated")
    world.agenda.after(FORGET_SECONDS, partial(_forget, world, instance))


def _forget(world: World, instance: Any) -> None:
    """Take a terminated instance off the list, as EC2 does after about an hour."""
    backend = instance.ec2_backend
    with world.lock:
        for reservation in list(backend.reservations.values()):
            if instance in reservation.instances:
                reservation.instances.remove(instance)
            if not reservation.instances:
                backend.reservations.pop(reservation.id)
        backend.tags.pop(instance.id, None)


def _explain(world: World, instance: Any, reason: tuple[str, str]) -> None:
    code, message = reason
    instance._reason = f"{message.split(':')[-1].strip()} ({world.now():%Y-%m-%d %H:%M:%S UTC})"
    instance.state_reason = StateReason(message, code)


def repair(repairs: Repairs, world: World) -> None:
    """Give the emulator pending and shutting-down states, and addresses that come back."""
    stock_run = repairs.stock(InstanceBackend, "run_instances")
    stock_address = repairs.stock(Subnet, "get_available_subnet_ip")

    def run_instances(self: Any, *args: Any, **kwargs: Any) -> Any:
        with world.lock:
            reservation = stock_run(self, *args, **kwargs)
            begin(world, reservation.instances)
        return reservation

    def terminate_instances(self: Any, instance_ids: list[str]) -> list[tuple[Any, Any]]:
        if not instance_ids:
            raise InvalidParameterCombination("No instances specified")
        found = self.get_multi_instances_by_id(instance_ids)
        for instance in found:
            if instance.disable_api_termination is True:
                raise OperationNotPermitted4(instance.id)
        answer = []
        for instance in found:
            previous = copy.copy(instance._state)
            end(world, instance)
            answer.append((instance, previous))
        return answer

    def get_available_subnet_ip(self: Any, instance: Any) -> Any:
        try:
            return stock_address(self, instance)
        except StopIteration as problem:
            raise EC2ClientError(
                "InsufficientFreeAddressesInSubnet",
                f"There are not enough free addresses in subnet '{self.id}'.",
            ) from problem

    head = ("self", "image_id", "count", "user_data", "security_group_names", "kwargs")
    repairs.replace(InstanceBackend, "run_instances", run_instances, parameters=head)
    repairs.replace(
        InstanceBackend,
        "terminate_instances",
        terminate_instances,
        parameters=("self", "instance_ids"),
    )
    repairs.replace(
        Subnet, "get_available_subnet_ip", get_available_subnet_ip, parameters=("self", "instance")
    )
    for name in ("stop", "terminate"):
        repairs.stock(Instance, name, ("self",))
    repairs.stock(NetworkInterface, "delete", ("self",))
    _repair_answer(repairs)
    _repair_names(repairs)


def _repair_answer(repairs: Repairs) -> None:
    def terminate_instances(self: Any) -> ActionResult:
        self.error_on_dryrun()
        ended = self.ec2_backend.terminate_instances(self._get_param("InstanceIds", []))
        return ActionResult(
            {
                "TerminatingInstances": [
                    {
                        "InstanceId": instance.id,
                        "CurrentState": {"Code": instance.state_code, "Name": instance.state},
                        "PreviousState": previous,
                    }
                    for instance, previous in ended
                ]
            }
        )

    repairs.replace(
        InstanceResponse, "terminate_instances", terminate_instances, parameters=("self",)
    )


def _repair_names(repairs: Repairs) -> None:
    """A terminated instance has neither an address nor a name, so names stay unique."""
    name = repairs.stock(Instance, "private_dns_name")
    address = repairs.stock(Instance, "private_ip_address")

    def private_dns_name(self: Any) -> str:
        return "" if self.state == "terminated" else str(name.fget(self))

    def private_ip_address(self: Any) -> str | None:
        found: str | None = None if self.state == "terminated" else address.fget(self)
        return found

    repairs.replace(Instance, "private_dns_name", property(private_dns_name))
    repairs.replace(Instance, "private_ip_address", property(private_ip_address))
