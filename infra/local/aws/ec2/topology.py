"""DescribeInstanceTopology: which instances stand near each other in the network.

The cloud controller manager asks for each new Node, and labels it with the network nodes.

Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-topology-prerequisites.html
and how-ec2-instance-topology-works.html there (2026-11).
"""

import hashlib
import re
from typing import Any, Final

from moto.core.responses import ActionResult
from moto.ec2.exceptions import InvalidInstanceIdError
from moto.ec2.responses.instances import InstanceResponse

from infra.local.aws.ec2.world import World
from infra.local.aws.moto_patches import Repairs

# Types whose instances have a topology; the answer leaves out the others.
_TYPES: Final = re.compile(r"(g[67]e|hpc\w+|p3dn|p4de?|p5\w*|p6-\w+|p6e-\w+|trn\w+)\.\w+")
_FOUR_LAYERS: Final = ("p6-b200.", "p6-b300.")


def _network_nodes(zone: str, instance_type: str) -> list[str]:
    """Return an id for each layer, the top first: instances of a type in a zone share all."""
    seeds = [zone, f"{zone}/{instance_type.partition('.')[0]}", f"{zone}/{instance_type}"]
    if instance_type.startswith(_FOUR_LAYERS):
        seeds.append(f"{zone}/{instance_type}/4")
    return [f"nn-{hashlib.sha256(seed.encode()).hexdigest()[:17]}" for seed in seeds]


def repair(repairs: Repairs, world: World) -> None:
    """Add the call, for instances by id: filters and pages are not emulated."""

    def describe_instance_topology(self: Any) -> ActionResult:
        self.error_on_dryrun()
        wanted = tuple(self._get_param("InstanceIds", []) or ())
        if not wanted:
            # The cloud controller manager gives ids; others get UnsupportedOperation (`gaps`).
            raise NotImplementedError("give instance ids")
        with world.lock:
            found = {
                instance.id: instance
                for reservation in self.ec2_backend.reservations.values()
                for instance in reservation.instances
                if instance.id in wanted and world.seen(instance)
            }
        missing = sorted(set(wanted) - set(found))
        if missing:
            raise InvalidInstanceIdError(missing)
        rows = []
        for instance in found.values():
            if instance.state == "running" and _TYPES.fullmatch(instance.instance_type):
                subnet = self.ec2_backend.get_subnet(instance.subnet_id)
                zone = subnet.availability_zone
                rows.append(
                    {
                        "InstanceId": instance.id,
                        "InstanceType": instance.instance_type,
                        "NetworkNodes": _network_nodes(zone, instance.instance_type),
                        "AvailabilityZone": zone,
                        "ZoneId": subnet.availability_zone_id,
                    }
                )
        return ActionResult({"Instances": rows})

    repairs.add(InstanceResponse, "describe_instance_topology", describe_instance_topology)
