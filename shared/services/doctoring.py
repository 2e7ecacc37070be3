"""Doctor: compares ledger, machines and nodes, and writes a lost ledger anew from the others."""

import dataclasses
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from shared.model import labels as keys
from shared.model.errors import ConflictError, PermanentError
from shared.model.instance_types import InstanceType
from shared.model.launch import Instance, Lease, Slot
from shared.model.nodes import Node
from shared.model.resources import Resources
from shared.ports import ClusterPorts
from shared.services.held_back import held_back, rivals_of
from shared.services.launch_archive import body_of

# The forwarder speaks every five minutes; three misses are no accident.
_SILENT: Final = timedelta(minutes=15)
# A launch is finished in seconds; sweep has looked at it several times by then.
_STUCK: Final = timedelta(minutes=5)
_ORPHAN: Final = timedelta(seconds=90)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Finding:
    """Something that is not as it should be.

    Attributes:
        kind: Short name, the same for the same kind of trouble.
        subject: What it is about.
        text: One line for people.
        command: What to run; empty when nothing has to be done by hand.
        repairable: Whether `--repair` sets it right.
    """

    kind: str
    subject: str
    text: str
    command: str = ""
    repairable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _World:
    """Ledger, machines and nodes of one cluster at one time."""

    now: datetime
    slots: tuple[Slot, ...]
    nodes: tuple[Node, ...]
    instances: tuple[Instance, ...]

    @property
    def alive(self) -> dict[str, Instance]:
        """Machines that run or are about to, by id."""
        return {one.instance_id: one for one in self.instances if one.is_alive}


class Doctoring:
    """Looks over one cluster."""

    def __init__(self, ports: ClusterPorts) -> None:
        """Prepare for one cluster."""
        self._ports = ports
        self._name = ports.cluster.name

    def look(self) -> tuple[Finding, ...]:
        """Return what is not as it should be, sorted; nothing is changed.

        Raises:
            RetryableError: If the cluster or AWS cannot be read now.
        """
        world = self._read()
        found = [
            *self._brakes(),
            *self._forwarder(world.now),
            *self._unknown_machines(world),
            *self._orphans(world),
            *self._dead_slots(world),
            *self._lost_nodes(world),
            *self._launches(world.now),
        ]
        return tuple(sorted(found))

    def repair(self, holder: str) -> tuple[Finding, ...]:
        """Set right what can be, under the cluster's lease; return what that was, sorted.

        Raises:
            ConflictError: If somebody plans for the cluster at this moment.
        """
        ledger, clock = self._ports.ledger, self._ports.clock
        lease = ledger.acquire(self._name, holder, clock.now())
        if lease is None:
            raise ConflictError(f"cluster {self._name}: somebody plans now; run it again")
        repaired = [one for one in self.look() if one.repairable]
        world = self._read()
        self._write_anew(lease, world)
        for slot in world.slots:
            if slot.instance_id not in world.alive:
                ledger.drop_slot(slot, lease)
                ledger.drop_instance(slot.instance_id)
        ledger.release(lease)
        if repaired:
            # Whoever is woken plans with what is written now, and goes on with open launches.
            self._ports.outbox.wake(self._name, timedelta(0))
        return tuple(repaired)

    def _read(self) -> _World:
        ports = self._ports
        return _World(
            now=ports.clock.now(),
            slots=ports.ledger.slots(self._name),
            nodes=ports.cluster.nodes(),
            instances=ports.cloud.tagged_instances({keys.TAG_CLUSTER: self._name}),
        )

    # --- what may be wrong

    def _brakes(self) -> list[Finding]:
        rivals = rivals_of(self._ports)
        why = held_back(self._ports, rivals)
        if not why:
            return []
        who = ", ".join(f"{one.kind.value} by lease {one.where}" for one in rivals)
        return [
            Finding(
                kind="brake",
                subject=self._name,
                text=f"held back: {why}" + (f" ({who})" if who else ""),
                command="" if who else "aws ssm get-parameter --name <clusters>/<name>/brakes",
            )
        ]

    def _forwarder(self, now: datetime) -> list[Finding]:
        last = self._ports.ledger.heartbeat(self._name)
        if last is not None and now - last < _SILENT:
            return []
        since = "never spoke" if last is None else f"is silent since {last:%Y-%m-%d %H:%M} UTC"
        return [
            Finding(
                kind="silent-forwarder",
                subject=self._name,
                text=f"the forwarder {since}: new pods are seen by the minute's sweep only",
                command="kubectl -n dovetail rollout restart deployment/dovetail-forwarder",
            )
        ]

    def _unknown_machines(self, world: _World) -> list[Finding]:
        return [
            Finding(
                kind="machine-not-in-ledger",
                subject=one,
                text="has our tags, and the ledger does not know it",
                repairable=True,
            )
            for one in world.alive
            if self._ports.ledger.cluster_of(one) != self._name
        ]

    def _orphans(self, world: _World) -> list[Finding]:
        known = {node.instance_id for node in world.nodes}
        known |= {slot.instance_id for slot in world.slots}
        return [
            Finding(
                kind="machine-without-node",
                subject=one.instance_id,
                text=f"{one.offering.instance_type} has neither a Node nor a slot; sweep ends it",
                command=f"aws ec2 terminate-instances --instance-ids {one.instance_id}",
            )
            for one in world.alive.values()
            if one.instance_id not in known
            and one.launched_at is not None
            and world.now - one.launched_at > _ORPHAN
        ]

    def _dead_slots(self, world: _World) -> list[Finding]:
        return [
            Finding(
                kind="slot-without-machine",
                subject=slot.name,
                text=f"is paired with {slot.instance_id}, which does not run",
                repairable=True,
            )
            for slot in world.slots
            if slot.instance_id not in world.alive
        ]

    def _lost_nodes(self, world: _World) -> list[Finding]:
        return [
            Finding(
                kind="node-without-machine",
                subject=node.name,
                text=f"has our finalizer, and {node.instance_id or 'its machine'} does not run",
                command=f"kubectl delete node {node.name}",
            )
            for node in world.nodes
            if node.is_ours and node.deletion_at is None and node.instance_id not in world.alive
        ]

    def _launches(self, now: datetime) -> list[Finding]:
        found = []
        for one in self._ports.ledger.open_intents(self._name):
            if now - one.created_at < _STUCK:
                continue
            text = f"is open since {one.created_at:%Y-%m-%d %H:%M} UTC"
            try:
                body_of(self._ports.decisions, one)
            except PermanentError as error:
                text += f"; it will be given up: {error}"
            name = f"{one.plan_id}/{one.group}"
            found.append(
                Finding(kind="unfinished-launch", subject=name, text=text, repairable=True)
            )
        return found

    # --- writing the ledger anew

    def _write_anew(self, lease: Lease, world: _World) -> None:
        """Write rows for machines the ledger does not know, from their tags and Nodes."""
        types = {one.name: one for one in self._ports.catalog.instance_types()}
        node_of = {node.instance_id: node for node in world.nodes if node.instance_id}
        slot_with = {slot.instance_id: slot for slot in world.slots}
        numbers = {(slot.plan_id, slot.group, slot.number) for slot in world.slots}
        for instance_id, one in sorted(world.alive.items()):
            if self._ports.ledger.cluster_of(instance_id) == self._name:
                continue
            lease = self._ports.ledger.renew(lease, self._ports.clock.now())
            slot = slot_with.get(instance_id)
            if slot is not None:
                # Only one side of the pair is lost: the pair is written again.
                self._ports.ledger.drop_slot(slot, lease)
            else:
                slot = self._slot_of(one, node_of.get(instance_id), types, world.now)
                slot = dataclasses.replace(slot, number=_first_free(slot, numbers))
            self._ports.ledger.fill_slot(lease, slot)
            node = node_of.get(instance_id)
            if node is not None and node.is_initialized:
                # It has joined: all that is left to know is whose it is.
                self._ports.ledger.drop_slot(slot, lease)

    def _slot_of(
        self,
        one: Instance,
        node: Node | None,
        types: dict[str, InstanceType],
        now: datetime,
    ) -> Slot:
        of_type = types.get(one.offering.instance_type)
        group = one.tags.get(keys.TAG_GROUP, "")
        provisioner = one.tags.get(keys.PROVISIONER_NAME, "")
        place = {
            keys.PROVISIONER_NAME: provisioner,
            keys.ZONE: one.offering.zone,
            keys.CAPACITY_TYPE: one.offering.capacity_type.value,
            keys.INSTANCE_TYPE: one.offering.instance_type,
        }
        return Slot(
            cluster=self._name,
            plan_id=one.tags.get(keys.TAG_PLAN, "") or "unknown",
            group=int(group) if group.isdecimal() else 0,
            number=0,
            provisioner=provisioner,
            instance_id=one.instance_id,
            offering=one.offering,
            price_micros_per_hour=_price_of(one, of_type),
            capacity=of_type.capacity if of_type is not None else Resources(),
            allocatable=of_type.allocatable if of_type is not None else Resources(),
            labels={**(node.labels if node is not None else {}), **place},
            node_name=node.name if node is not None else "",
            launched_at=one.launched_at or now,
        )


def _first_free(slot: Slot, numbers: set[tuple[str, int, int]]) -> int:
    """Return a number that no slot of the group has, and take it."""
    number = 0
    while (slot.plan_id, slot.group, number) in numbers:
        number += 1
    numbers.add((slot.plan_id, slot.group, number))
    return number


def _price_of(one: Instance, of_type: InstanceType | None) -> int:
    """Return what a machine costs, 0 when the catalogue does not know."""
    for way in of_type.offerings if of_type is not None else ():
        if (way.zone, way.capacity_type) == (one.offering.zone, one.offering.capacity_type):
            return way.price_micros_per_hour
    return 0
