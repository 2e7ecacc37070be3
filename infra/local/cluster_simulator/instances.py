"""The instances behind nodes: their states from EC2, their sizes from a file."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from infra.local.aws.clients import instances_of

Object = Mapping[str, Any]

RUNNING: Final = "running"
PENDING: Final = "pending"
# It shuts down or stops: its kubelet runs pods until the end, because systemd waits for it.
# Source: https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/ (2026-11).
ENDING: Final = "ending"
STOPPED: Final = "stopped"
GONE: Final = "gone"
_STATES: Final = {
    "pending": PENDING,
    "running": RUNNING,
    "shutting-down": ENDING,
    "stopping": ENDING,
    "stopped": STOPPED,
}

_FRESH_SECONDS: Final = 1.0
_ARCHITECTURES: Final = {"x86_64": "amd64", "arm64": "arm64"}
_VOLUMES: Final = 25
_FALLBACK: Final = {"cpu": "4", "memory": "16Gi", "pods": "110", "ephemeral-storage": "20Gi"}

InstanceState = Callable[[str], Awaitable[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """What a cloud knows about one instance; empty where it does not say.

    Attributes:
        state: One of the states above; `gone` once it is terminated or not known.
        zone_id: Of the physical zone, the same for all accounts, as `use1-az1`.
    """

    provider_id: str = ""
    state: str = RUNNING
    instance_type: str = ""
    zone: str = ""
    zone_id: str = ""
    address: str = ""
    dns_name: str = ""
    architecture: str = ""
    image_name: str = ""


class Instances(Protocol):
    """Where instances are looked up."""

    async def find(self, provider_id: str, node_name: str) -> Instance:
        """Return the instance of a node, by its providerID or else by its name."""

    async def running(self) -> Sequence[Instance]:
        """Return the running instances, with or without a Node."""

    async def user_data(self, instance: Instance) -> str:
        """Return the user data a instance was launched with, in base64; empty when it has none."""


class AssumedInstances:
    """Instances known by a function from providerID to state only; all run when it is None."""

    def __init__(
        self, state: InstanceState | None = None, user_data: Callable[[str], str] | None = None
    ) -> None:
        self._state = state
        self._user_data = user_data

    async def find(self, provider_id: str, node_name: str) -> Instance:
        """Return a instance with the zone that its providerID names."""
        del node_name
        state = RUNNING
        if self._state is not None:
            state = await self._state(provider_id) if provider_id else PENDING
        return Instance(provider_id=provider_id, state=state, zone=_zone_in(provider_id))

    async def running(self) -> Sequence[Instance]:
        """Return nothing: these instances are known by their Nodes only."""
        return ()

    async def user_data(self, instance: Instance) -> str:
        """Return what the function says, nothing without one."""
        return self._user_data(instance.provider_id) if self._user_data is not None else ""


class Ec2Instances:
    """The instances that an EC2 endpoint describes, read at most once a second.

    Args:
        endpoint: Address of an EC2 API; its credentials are those of the environment.
    """

    def __init__(self, endpoint: str, region: str) -> None:
        import boto3

        self._ec2 = boto3.client("ec2", endpoint_url=endpoint, region_name=region)
        self._lock = asyncio.Lock()
        self._read_at = float("-inf")
        self._zone_ids: dict[str, str] = {}
        self._by_id: dict[str, Instance] = {}
        self._by_name: dict[str, Instance] = {}
        self._image_names: dict[str, str] = {}

    async def find(self, provider_id: str, node_name: str) -> Instance:
        """Return the instance of a node; an unknown one is read again before it counts as gone.

        Nodes of another cloud (a providerID that is not of AWS) are left alone: they run.
        """
        if provider_id and not provider_id.startswith("aws:"):
            return Instance(provider_id=provider_id)
        asked_at = time.monotonic()
        await self._refresh(asked_at - _FRESH_SECONDS)
        instance = self._look_up(provider_id, node_name)
        if instance is None:
            await self._refresh(asked_at)
            instance = self._look_up(provider_id, node_name)
        missing = Instance(provider_id=provider_id, state=GONE if provider_id else PENDING)
        return instance or missing

    async def running(self) -> Sequence[Instance]:
        """Return the running instances that have a name, sorted by name."""
        await self._refresh(time.monotonic() - _FRESH_SECONDS)
        return [m for name, m in sorted(self._by_name.items()) if name and m.state == RUNNING]

    async def user_data(self, instance: Instance) -> str:
        """Return the attribute `userData` of an instance; nothing for a instance of another cloud.

        Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceAttribute.html
        (2026-11).
        """
        if not instance.provider_id.startswith("aws:"):
            return ""
        answer = await asyncio.to_thread(
            self._ec2.describe_instance_attribute,
            InstanceId=instance.provider_id.rsplit("/", 1)[-1],
            Attribute="userData",
        )
        return answer.get("UserData", {}).get("Value") or ""

    def _look_up(self, provider_id: str, node_name: str) -> Instance | None:
        if provider_id:
            return self._by_id.get(provider_id.rsplit("/", 1)[-1])
        return self._by_name.get(node_name)

    async def _refresh(self, not_before: float) -> None:
        async with self._lock:
            if self._read_at >= not_before:
                return
            started = time.monotonic()
            found = await asyncio.to_thread(self._describe)
            self._by_id = {m.provider_id.rsplit("/", 1)[-1]: m for m in found}
            self._by_name = {m.dns_name: m for m in found if m.state != GONE}
            self._read_at = started

    def _describe(self) -> list[Instance]:
        if not self._zone_ids:
            zones = self._ec2.describe_availability_zones()["AvailabilityZones"]
            self._zone_ids = {zone["ZoneName"]: zone.get("ZoneId", "") for zone in zones}
        instances = instances_of(self._ec2)
        self._name_images(
            {instance["ImageId"] for instance in instances} - self._image_names.keys()
        )
        return [
            _instance(instance, self._zone_ids, self._image_names[instance["ImageId"]])
            for instance in instances
        ]

    def _name_images(self, unknown: Collection[str]) -> None:
        self._image_names.update(dict.fromkeys(unknown, ""))
        if unknown:
            images = self._ec2.describe_images(ImageIds=sorted(unknown))["Images"]
            self._image_names.update(
                {image["ImageId"]: image.get("Name") or "" for image in images}
            )


def _instance(instance: Object, zone_ids: Mapping[str, str], image_name: str = "") -> Instance:
    zone = instance["Placement"]["AvailabilityZone"]
    name = instance["State"]["Name"]
    return Instance(
        provider_id=f"aws:///{zone}/{instance['InstanceId']}",
        state=_STATES.get(name, GONE),
        instance_type=instance["InstanceType"],
        zone=zone,
        zone_id=zone_ids.get(zone, ""),
        address=instance.get("PrivateIpAddress") or "",
        dns_name=instance.get("PrivateDnsName") or "",
        architecture=_ARCHITECTURES.get(instance.get("Architecture") or "", ""),
        image_name=image_name,
    )


def _zone_in(provider_id: str) -> str:
    parts = provider_id.removeprefix("aws:///").split("/")
    return parts[0] if provider_id.startswith("aws:///") and len(parts) == 2 else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Resource lists as a node's status shows them.

    Attributes:
        volumes: How many EBS volumes can be attached, as its CSINode shows.
    """

    capacity: Mapping[str, str]
    allocatable: Mapping[str, str]
    extended: Mapping[str, str]
    volumes: int


class Sizes:
    """Node sizes by instance type.

    Args:
        table: As in the machines file: instance type to `capacity`, and optionally
            `allocatable` (same as capacity if absent), `extended` and `volumes`.
    """

    def __init__(self, table: Mapping[str, Object] | None = None) -> None:
        self._table = table or {}

    @classmethod
    def read(cls, path: str) -> "Sizes":
        """Read a machines file."""
        table = json.loads(Path(path).read_text(encoding="utf-8"))
        for name, row in table.items():
            if not isinstance(row, dict) or not row.get("capacity"):
                raise ValueError(f"{path}: {name}: no capacity; give at least cpu, memory and pods")
        return cls(table)

    def of(self, node: Object | None, instance_type: str = "") -> Size:
        """Return the size of a node: from the table, else from its status, else a modest one.

        Args:
            node: The Node, None when it does not exist yet.
            instance_type: Of its instance; empty for what the label of the Node says.
        """
        labels = (node or {}).get("metadata", {}).get("labels") or {}
        label = labels.get("node.kubernetes.io/instance-type", "")
        row = self._table.get(instance_type or label)
        if row is None:
            status = (node or {}).get("status") or {}
            capacity = status.get("capacity") or status.get("allocatable") or _FALLBACK
            row = {"capacity": capacity, "allocatable": status.get("allocatable") or capacity}
        return Size(
            capacity=row["capacity"],
            allocatable=row.get("allocatable") or row["capacity"],
            extended=row.get("extended") or {},
            volumes=row.get("volumes", _VOLUMES),
        )
