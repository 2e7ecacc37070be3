"""Machines bought for pods by Provisioners as people write them, and what EC2 was asked for."""

import base64
import json
import shlex
import tomllib
from collections.abc import Iterable, Mapping
from datetime import timedelta
from email import message_from_string
from typing import Any

from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType
from shared.model.kubernetes.pods import Pod
from shared.model.values import replace
from shared.ports import MachineImage, Subnet
from tests.builders import CATALOG, GIB, NOW, ZONES, instance_type, pod
from tests.unit.manifests.documents import template
from tests.unit.worlds import World

ACCELERATED = (
    instance_type("g4dn.xlarge", cpu=4000, price=526_000, extra={"nvidia.com/gpu": 1}),
    instance_type("inf1.xlarge", cpu=4000, price=228_000, extra={"aws.amazon.com/neuron": 1}),
)
ANY_TYPE = {"key": keys.INSTANCE_TYPE, "operator": "Exists"}
AMD = {"key": keys.ARCH, "operator": "In", "values": ["amd64"]}


def provisioner(name: str = "default", **spec: Any) -> dict[str, Any]:
    """Return a Provisioner that names the AWSNodeTemplate `nodes` unless it says otherwise."""
    made = {"requirements": [ANY_TYPE, AMD], "providerRef": {"name": "nodes"}, **spec}
    if "provider" in spec:
        del made["providerRef"]
    return {
        "apiVersion": "karpenter.sh/v1alpha5",
        "kind": "Provisioner",
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": made,
    }


def image(name: str, architecture: str = "amd64", *, days: int = 0, **tags: str) -> MachineImage:
    return MachineImage(
        image_id=name,
        name=name,
        architecture=architecture,
        created_at=NOW + timedelta(days=days),
        tags=tags,
    )


def tagged(other_image: MachineImage, **labels: str) -> MachineImage:
    return replace(other_image, tags={**other_image.tags, **labels})


def world(*raws: Mapping[str, Any], types: Iterable[InstanceType] = CATALOG) -> World:
    """Return a world with these manifests; a template `nodes` is there unless one is given."""
    return applied(raws, template(), types)


def applied(
    raws: Iterable[Mapping[str, Any]], usual: Mapping[str, Any], types: Iterable[InstanceType]
) -> World:
    """Return a world with these manifests, and with the usual one where none of its kind is."""
    listed = sorted(raws, key=lambda raw: str(raw["kind"]))
    if not any(raw["kind"] == usual["kind"] for raw in listed):
        listed = [usual, *listed]
    made = World(types=types)
    made.cluster.apply(*listed)
    return made


def with_two_subnets(there: World) -> World:
    """Give one zone two subnets of which one has a few more free addresses."""
    there.cloud.subnets = (
        Subnet(subnet_id="subnet-few", zone=ZONES[0], free_addresses=100),
        Subnet(subnet_id="subnet-many", zone=ZONES[0], free_addresses=110),
    )
    return there


def subnets_asked(there: World) -> list[set[str]]:
    """Return the subnets that each fleet names."""
    return [
        {
            override["SubnetId"]
            for config in fleet["LaunchTemplateConfigs"]
            for override in config["Overrides"]
        }
        for fleet in there.cloud.fleets
    ]


def bought(there: World, *pods: Pod) -> World:
    """Let these pods wait (one plain pod if none is given), and buy what they need."""
    there.cluster.add(*(pods or (pod("a"),)))
    there.provision()
    return there


def launched(spec: Mapping[str, Any] | None = None, **of_template: Any) -> World:
    """Buy for one pod with a Provisioner and an AWSNodeTemplate of these fields."""
    return bought(world(provisioner(**(spec or {})), template(**of_template)))


def data_of(there: World) -> list[Mapping[str, Any]]:
    """Return the data of the launch templates that were made, by name."""
    return [there.cloud.templates[name][0] for name in sorted(there.cloud.templates)]


def only_data(there: World) -> Mapping[str, Any]:
    (one,) = data_of(there)
    return one


def request(there: World) -> Mapping[str, Any]:
    """Return the one fleet that was asked for."""
    (one,) = there.cloud.fleets
    return one


def text_of(there: World) -> str:
    """Return the user data of the one launch template."""
    return base64.b64decode(only_data(there)["UserData"]).decode()


def parts(text: str) -> list[str]:
    message = message_from_string(text)
    return [
        str(message.get_payload())
        for message in message.get_payload()
        if not isinstance(message, str)
    ]


def arguments(text: str) -> list[str]:
    """Return what the script of an older image is started with."""
    line = next(x for x in parts(text)[-1].splitlines() if x.startswith("/etc/eks/bootstrap.sh"))
    return shlex.split(line)


def settings(text: str) -> dict[str, Any]:
    """Return the settings under `kubernetes` that Bottlerocket is told."""
    found: dict[str, Any] = tomllib.loads(text)["settings"]["kubernetes"]
    return found


def node_config(text: str) -> dict[str, Any]:
    """Return the NodeConfig that nodeadm is told last."""
    found: dict[str, Any] = json.loads(parts(text)[-1])
    return found


def storing(name: str, gib: int) -> Pod:
    """Return a pod that writes so many GiB."""
    return pod(name, extra={"ephemeral-storage": gib * GIB})


def is_bound(there: World, name: str) -> bool:
    return name in there.bound
