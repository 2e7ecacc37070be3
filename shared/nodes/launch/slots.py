"""Pairs the slots of a launch with the instances that fill them, each once."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType, OfferingKey
from shared.model.ec2.launches import FleetInstance, Instance, LaunchOption, Slot, SlotOwner
from shared.model.kubernetes.nodes import Node
from shared.model.provisioner import Provisioner
from shared.model.resources import Resources
from shared.nodes.launch.held_lease import HeldLease
from shared.nodes.launch.launch_results import LaunchResults
from shared.ports import ClusterPorts
from shared.snapshot.launch_body import LaunchAttempt, PromisedSlot
from shared.snapshot.node_facts import cluster_instances

# The number of slots that are filled between two checks of the lease.
_PART: Final = 200


class Pairing:
    """Records which instance became which planned node, under the lease."""

    def __init__(self, ports: ClusterPorts, held_lease: HeldLease, results: LaunchResults) -> None:
        self._ports = ports
        self._lease = held_lease
        self._results = results

    def pair_tagged(self, attempt: LaunchAttempt) -> tuple[PromisedSlot, ...]:
        """Pair the instances of this group with its slots; return the slots still empty."""
        filled = {
            slot.number
            for slot in self._ports.ledger.slots(attempt.cluster)
            if (slot.plan_id, slot.group) == (attempt.plan_id, attempt.group)
        }
        empty = tuple(slot for slot in attempt.slots if slot.number not in filled)
        return self.pair(attempt, empty, self.unpaired(attempt))

    def unpaired(self, attempt: LaunchAttempt) -> tuple[FleetInstance, ...]:
        """Return the instances of this group without a slot, whichever attempt launched them."""
        paired = {slot.instance_id for slot in self._ports.ledger.slots(attempt.cluster)}
        tagged = cluster_instances(
            self._ports, {keys.TAG_PLAN: attempt.plan_id, keys.TAG_GROUP: str(attempt.group)}
        )
        return tuple(
            FleetInstance(instance_id=instance.instance_id, offering=instance.offering)
            for instance in tagged
            if instance.is_alive and instance.instance_id not in paired
        )

    def pair(
        self,
        attempt: LaunchAttempt,
        empty: Sequence[PromisedSlot],
        instances: Sequence[FleetInstance],
        *,
        launched_now: bool = False,
    ) -> tuple[PromisedSlot, ...]:
        """Pair empty slots with instances, as far as there are any; return the slots left empty.

        Args:
            launched_now: Whether only this invocation can know these instances. Any other instance
                may have had a slot that is deleted because its node is complete: that slot must not
                be filled with another instance.

        Raises:
            ConflictError: If the lease was lost.
        """
        options = {
            launch_option.offering: launch_option
            for launch_option in (*attempt.options, *attempt.fallback)
        }
        waiting, free = list(empty), list(instances)
        if not launched_now:
            ids = [fleet_instance.instance_id for fleet_instance in instances]
            slot_name_of = dict(
                zip(ids, self._ports.executor.each(self._slot_name_of, ids), strict=True)
            )
            names = frozenset(slot_name_of.values())
            waiting = [
                promised_slot
                for promised_slot in waiting
                if _name_of(attempt, promised_slot) not in names
            ]
            free = [
                fleet_instance
                for fleet_instance in instances
                if slot_name_of[fleet_instance.instance_id] is None
            ]
        usable = [entry for entry in free if entry.offering in options]
        usable.sort(key=lambda entry: entry.instance_id)
        while waiting and usable:
            now = self._ports.clock.now()
            part = [
                _slot(attempt, promised, instance, options[instance.offering], now)
                for promised, instance in zip(waiting[:_PART], usable, strict=False)
            ]
            usable = usable[len(part) :]
            done = self._ports.ledger.fill_slots(self._lease.value, part)
            paired = list(zip(part, done, strict=True))
            filled = {slot.name for slot, fits in paired if fits}
            self._results.add_slots(slot for slot, fits in paired if fits)
            # The others are paired already. If the slot of one is deleted, its node is complete and
            # the intent was not updated: that slot must not be filled again.
            kept = {self._slot_name_of(slot.instance_id) for slot, fits in paired if not fits}
            waiting = [
                promised for promised in waiting if _name_of(attempt, promised) not in filled | kept
            ]
        return tuple(waiting)

    def _slot_name_of(self, instance_id: str) -> str | None:
        return self._ports.ledger.slot_of(instance_id)


def _slot(
    attempt: LaunchAttempt,
    promised: PromisedSlot,
    instance: FleetInstance,
    option: LaunchOption,
    now: datetime,
) -> Slot:
    offering = instance.offering
    return Slot(
        cluster=attempt.cluster,
        plan_id=attempt.plan_id,
        group=attempt.group,
        number=promised.number,
        provisioner=attempt.provisioner,
        instance_id=instance.instance_id,
        offering=offering,
        price_micros_per_hour=option.price_micros_per_hour,
        capacity=option.capacity,
        allocatable=option.allocatable,
        daemon_requests=promised.daemon_requests,
        labels={**attempt.labels, **offering.labels},
        pods=promised.pods,
        replaces=attempt.replaces,
        stamp=attempt.stamp,
        owner=attempt.owner,
        launched_at=now,
    )


def slot_owner(provisioner: Provisioner) -> SlotOwner:
    """Return the part of the owner that its slots keep."""
    return SlotOwner(
        kind=provisioner.kind,
        uid=provisioner.uid,
        taints=provisioner.taints,
        startup_taints=provisioner.startup_taints,
    )


def former_owner(slot: Slot) -> Provisioner | None:
    """Return the owner as far as a slot keeps it, None if it keeps nothing.

    A Node that refers to an owner that is gone is deleted by garbage collection; its drain
    terminates the instance.

    Source: https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/controller/garbagecollector/garbagecollector.go
    (isDangling, attemptToDeleteItem; 2026-11-27).
    """
    kept = slot.owner
    if kept is None:
        return None
    return Provisioner(
        name=slot.provisioner,
        kind=kept.kind,
        uid=kept.uid,
        taints=kept.taints,
        startup_taints=kept.startup_taints,
    )


def _name_of(attempt: LaunchAttempt, promised: PromisedSlot) -> str:
    return f"{attempt.plan_id}/{attempt.group}/{promised.number}"


def slot_of_instance(
    cluster: str,
    instance: Instance,
    node: Node | None,
    instance_type: InstanceType | None,
    now: datetime,
) -> Slot:
    """Return the slot of an instance that runs already, made from its tags and its Node.

    Args:
        instance_type: Its instance type, None if it is not in the catalog.
        now: Used as its launch time if EC2 does not tell it.
    """
    group = instance.tags.get(keys.TAG_GROUP, "")
    facts = {**instance.owner_labels, **instance.offering.labels}
    return Slot(
        cluster=cluster,
        plan_id=instance.tags.get(keys.TAG_PLAN, "") or "unknown",
        group=int(group) if group.isdecimal() else 0,
        number=0,
        provisioner=instance.tags.get(keys.PROVISIONER_NAME, ""),
        instance_id=instance.instance_id,
        offering=instance.offering,
        price_micros_per_hour=price_of(instance.offering, instance_type),
        capacity=instance_type.capacity if instance_type is not None else Resources(),
        allocatable=instance_type.allocatable if instance_type is not None else Resources(),
        labels={**(node.labels if node is not None else {}), **facts},
        node_name=node.name if node is not None else "",
        launched_at=instance.launched_at or now,
    )


def price_of(offering: OfferingKey, instance_type: InstanceType | None) -> int:
    """Return the price of an offering in micros an hour, 0 if it is not in the catalog."""
    for sold in instance_type.offerings if instance_type is not None else ():
        if (sold.zone, sold.capacity_type) == (offering.zone, offering.capacity_type):
            return sold.price_micros_per_hour
    return 0
