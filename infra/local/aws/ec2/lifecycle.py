"""Instances take time to start and to end, and say so on the default bus."""

import copy
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError, InvalidParameterCombination, OperationNotPermitted4
from moto.ec2.models.elastic_network_interfaces import NetworkInterface
from moto.ec2.models.instances import Instance, InstanceBackend, InstanceState, StateReason
from moto.ec2.models.subnets import Subnet
from moto.ec2.responses.instances import InstanceResponse

from infra.local.aws.ec2.catalog import type_facts
from infra.local.aws.ec2.world import World
from infra.local.aws.moto_patches import Repairs
from infra.local.ec2.instances import FORGET, Step
from infra.local.ec2.instances import Instance as Model
from infra.local.ec2.pools import ON_DEMAND, SPOT
from infra.local.ec2.refusals import Reason, refusal

_CODES: Final = {
    "pending": 0,
    "running": 16,
    "shutting-down": 32,
    "terminated": 48,
    "stopping": 64,
    "stopped": 80,
}


def begin(world: World, instances: Sequence[Any], disks: Any) -> None:
    """Let the model know of instances that the emulator has just made."""
    now = world.time()
    for instance in instances:
        account = world.account_of(instance.ec2_backend)
        world.instances[instance.id] = instance
        kind = SPOT if instance.lifecycle == SPOT else ON_DEMAND
        model = Model(
            instance_id=instance.id,
            pool=(instance.instance_type, instance.placement.zone, kind),
            subnet_id=instance.subnet_id or "",
            launched_at=now,
            address=instance.private_ip_address or "",
            vcpus=type_facts.vcpus(instance.instance_type),
        )
        world.ec2.admit(model, account.fate({"BlockDeviceMappings": disks}))


def plan(world: World, model: Model, steps: Sequence[Step]) -> None:
    """Let the emulator's instance follow the model's states, each at its time."""
    now = world.time()
    for step in steps:
        wait = (step.at - now).total_seconds()
        world.agenda.after(wait, partial(_enter, world, model, step))


def _enter(world: World, model: Model, step: Step) -> None:
    instance = world.instances.get(model.instance_id)
    with world.lock:
        if instance is None or step not in model.steps:
            return
        if step.state == "terminated":
            _release(instance)
        elif step.state == "stopped":
            instance.stop()
        instance._state = InstanceState(step.state, _CODES[step.state])
        if model.reason is not None:
            _explain(world, instance, model.reason)
    detail = {"instance-id": instance.id, "state": step.state}
    world.notify(instance, "EC2 Instance State-change Notification", detail)
    if step.state == "terminated":
        world.agenda.after(FORGET.total_seconds(), partial(_forget, world, instance))


def _release(instance: Any) -> None:
    for interface in instance.nics.values():
        # Stock keeps the interface, and with it the address, for ever.
        interface.delete_on_termination = interface.id in instance.ec2_backend.enis
    instance.terminate()


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
        world.instances.pop(instance.id, None)
        world.ec2.instances.pop(instance.id, None)


def _explain(world: World, instance: Any, reason: Reason) -> None:
    text = reason.message.split(":")[-1].strip()
    instance._reason = f"{text} ({world.now():%Y-%m-%d %H:%M:%S UTC})"
    instance.state_reason = StateReason(reason.message, reason.code)


def repair(repairs: Repairs, world: World) -> None:
    """Give the emulator the states and the addresses of the model."""
    world.changed = partial(plan, world)
    stock_run = repairs.stock(InstanceBackend, "run_instances")

    def run_instances(self: Any, *args: Any, **kwargs: Any) -> Any:
        with world.lock:
            reservation = stock_run(self, *args, **kwargs)
            begin(world, reservation.instances, kwargs.get("block_device_mappings"))
        return reservation

    def terminate_instances(self: Any, instance_ids: list[str]) -> list[tuple[Any, Any]]:
        if not instance_ids:
            raise InvalidParameterCombination("No instances specified")
        found = self.get_multi_instances_by_id(instance_ids)
        for instance in found:
            if instance.disable_api_termination is True:
                raise OperationNotPermitted4(instance.id)
        return [_told(instance, world.ec2.terminate) for instance in found]

    def stop_instances(self: Any, instance_ids: list[str]) -> list[tuple[Any, Any]]:
        found = self.get_multi_instances_by_id(instance_ids)
        return [_told(instance, world.ec2.stop) for instance in found]

    def _told(instance: Any, act: Callable[[Model], None]) -> tuple[Any, Any]:
        previous = copy.copy(instance._state)
        with world.lock:
            act(world.ec2.instances[instance.id])
        return instance, previous

    ids = ("self", "instance_ids")
    head = ("self", "image_id", "count", "user_data", "security_group_names", "kwargs")
    repairs.replace(InstanceBackend, "run_instances", run_instances, parameters=head)
    repairs.replace(InstanceBackend, "terminate_instances", terminate_instances, parameters=ids)
    repairs.replace(InstanceBackend, "stop_instances", stop_instances, parameters=ids)
    for name in ("stop", "terminate"):
        repairs.stock(Instance, name)
    repairs.stock(NetworkInterface, "delete")
    _repair_addresses(repairs, world)
    _repair_answer(repairs)
    _repair_names(repairs)


def _repair_addresses(repairs: Repairs, world: World) -> None:
    def get_available_subnet_ip(self: Any, instance: Any) -> Any:
        fresh = _fresh(self)
        address = world.ec2.addresses.take(self.id, fresh, world.time())
        if address is None:
            full = refusal("InsufficientFreeAddressesInSubnet", subnet=self.id)
            raise EC2ClientError(full.code, full.message)
        self._subnet_ips[address] = instance
        return address

    def available_ip_address_count(self: Any) -> int:
        taken = world.ec2.addresses.taken(self.id, world.time())
        return int(self._available_ip_addresses) - taken

    head = ("self", "instance")
    repairs.replace(Subnet, "get_available_subnet_ip", get_available_subnet_ip, parameters=head)
    repairs.replace(Subnet, "available_ip_address_count", property(available_ip_address_count))


def _fresh(subnet: Any) -> Iterator[str]:
    """Yield the addresses of a subnet that were never given, the reserved ones left out."""
    for address in subnet._subnet_ip_generator:
        if address == subnet.cidr.broadcast_address:
            return
        if str(address) not in subnet._subnet_ips:
            yield str(address)


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

    repairs.replace(InstanceResponse, "terminate_instances", terminate_instances)


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
