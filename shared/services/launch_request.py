"""How a launch is asked for: launch templates and the CreateFleet request.

Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateFleet.html (2026-08).
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from shared.model import labels as keys
from shared.model.errors import PermanentError
from shared.model.instance_types import CapacityType, InstanceType
from shared.model.launch import LaunchOption, PlannedNode
from shared.model.provisioner import Provisioner
from shared.ports import ClusterEndpoint, Site
from shared.services.launch_body import LaunchAttempt, LaunchBody
from shared.services.machine_image import boot_taints, image_parameter, user_data

_NAME_LENGTH: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchGround:
    """What bodies are made from, the same for all groups of a provisioner.

    Attributes:
        images: SSM parameter name to AMI id.
        instance_types: By name.
        profile: Instance profile to use when the provisioner names none.
    """

    cluster: str
    provisioner: Provisioner
    endpoint: ClusterEndpoint
    site: Site
    images: Mapping[str, str] = field(hash=False)
    instance_types: Mapping[str, InstanceType] = field(hash=False)
    profile: str


def launch_groups(nodes: Sequence[PlannedNode]) -> tuple[tuple[PlannedNode, ...], ...]:
    """Return the nodes in groups that one CreateFleet call can launch.

    The same provisioner, labels, options and fallback: order of first node.
    """
    found: dict[object, list[PlannedNode]] = {}
    for node in nodes:
        identity = (
            node.provisioner,
            tuple(sorted(node.labels.items())),
            node.options,
            node.fallback,
        )
        found.setdefault(identity, []).append(node)
    return tuple(tuple(group) for group in found.values())


def image_parameters(ground_types: Sequence[InstanceType], family: str, version: str) -> list[str]:
    """Return the SSM parameters of the images these instance types boot, sorted."""
    return sorted(
        {
            image_parameter(family, version, one.labels[keys.ARCH], one.capacity)
            for one in ground_types
        }
    )


def launch_body(ground: LaunchGround, attempt: LaunchAttempt) -> LaunchBody:
    """Return the exact requests of an attempt.

    A launch template the user names is taken as it is, in its latest version; else one is made
    for each image.

    Raises:
        PermanentError: If no option can be asked for: no subnet in its zone, or no image.
    """
    first = attempt.options[0].offering
    templates: dict[str, dict[str, Any]] = {}
    overrides: dict[str, list[dict[str, Any]]] = {}
    own_template = ground.provisioner.template.launch_template
    for option in attempt.options:
        subnet = next(
            (s.subnet_id for s in ground.site.subnets if s.zone == option.offering.zone), None
        )
        image = "" if own_template else _image_of(ground, option)
        if subnet is None or image is None:
            continue
        name = own_template
        if not own_template:
            data = _template_data(ground, image, attempt.labels, first.capacity_type)
            name = _template_name(ground.cluster, data)
            templates[name] = data
        overrides.setdefault(name, []).append(
            {"InstanceType": option.offering.instance_type, "SubnetId": subnet}
        )
    if not overrides:
        raise PermanentError(
            f"provisioner {ground.provisioner.name}: no subnet and image for "
            f"{first.instance_type} in {first.zone}"
        )
    tags = launch_tags(ground.provisioner, attempt)
    request = _request(overrides, first.capacity_type, len(attempt.slots), tags)
    identity = f"{attempt.cluster}/{attempt.plan_id}/{attempt.group}/{attempt.number}"
    request["ClientToken"] = hashlib.sha256(identity.encode()).hexdigest()
    return LaunchBody(attempt=attempt, templates=templates, request=request)


def launch_tags(provisioner: Provisioner, attempt: LaunchAttempt) -> dict[str, str]:
    """Return the tags of everything a launch makes; ours win over the user's."""
    return {
        "Name": f"{keys.PROVISIONER_NAME}/{provisioner.name}",
        **provisioner.template.tags,
        keys.PROVISIONER_NAME: provisioner.name,
        f"kubernetes.io/cluster/{attempt.cluster}": "owned",
        keys.TAG_CLUSTER: attempt.cluster,
        keys.TAG_PLAN: attempt.plan_id,
        keys.TAG_GROUP: str(attempt.group),
        keys.TAG_ATTEMPT: str(attempt.number),
    }


def _request(
    overrides: Mapping[str, list[dict[str, Any]]],
    capacity_type: CapacityType,
    count: int,
    tags: Mapping[str, str],
) -> dict[str, Any]:
    listed = [{"Key": key, "Value": value} for key, value in sorted(tags.items())]
    request: dict[str, Any] = {
        "Type": "instant",
        "LaunchTemplateConfigs": [
            {
                "LaunchTemplateSpecification": {"LaunchTemplateName": name, "Version": "$Latest"},
                "Overrides": chosen,
            }
            for name, chosen in sorted(overrides.items())
        ],
        "TargetCapacitySpecification": {
            "TotalTargetCapacity": count,
            "DefaultTargetCapacityType": capacity_type.value,
        },
        "TagSpecifications": [
            {"ResourceType": kind, "Tags": listed} for kind in ("instance", "volume", "fleet")
        ],
    }
    if capacity_type == CapacityType.SPOT:
        request["SpotOptions"] = {"AllocationStrategy": "price-capacity-optimized"}
    else:
        request["OnDemandOptions"] = {"AllocationStrategy": "lowest-price"}
    return request


def _image_of(ground: LaunchGround, option: LaunchOption) -> str | None:
    instance_type = ground.instance_types.get(option.offering.instance_type)
    if instance_type is None:
        return None
    parameter = image_parameter(
        ground.provisioner.template.ami_family,
        ground.endpoint.version,
        instance_type.labels[keys.ARCH],
        instance_type.capacity,
    )
    return ground.images.get(parameter)


def _template_data(
    ground: LaunchGround, image: str, labels: Mapping[str, str], capacity_type: CapacityType
) -> dict[str, Any]:
    template = ground.provisioner.template
    options = template.metadata_options
    text = user_data(
        ground.endpoint,
        {**labels, keys.CAPACITY_TYPE: capacity_type.value},
        boot_taints(ground.provisioner),
        ground.provisioner.kubelet,
    )
    tags = {
        keys.TAG_CLUSTER: ground.cluster,
        f"kubernetes.io/cluster/{ground.cluster}": "owned",
        keys.PROVISIONER_NAME: ground.provisioner.name,
    }
    return {
        "ImageId": image,
        "UserData": base64.b64encode(text.encode()).decode(),
        "SecurityGroupIds": list(ground.site.security_groups),
        "IamInstanceProfile": {"Name": template.instance_profile or ground.profile},
        "MetadataOptions": {
            "HttpEndpoint": options.http_endpoint,
            "HttpProtocolIpv6": options.http_protocol_ipv6,
            "HttpPutResponseHopLimit": options.http_put_response_hop_limit,
            "HttpTokens": options.http_tokens,
        },
        "BlockDeviceMappings": _disks(ground.provisioner),
        "TagSpecifications": [
            {
                "ResourceType": "network-interface",
                "Tags": [{"Key": k, "Value": v} for k, v in sorted(tags.items())],
            }
        ],
    }


def _disks(provisioner: Provisioner) -> list[dict[str, Any]]:
    disks = []
    for one in provisioner.template.block_devices:
        volume: dict[str, Any] = {
            "VolumeSize": one.volume_size_gib,
            "VolumeType": one.volume_type,
            "Encrypted": one.encrypted,
            "DeleteOnTermination": one.delete_on_termination,
        }
        optional = {
            "Iops": one.iops,
            "Throughput": one.throughput,
            "KmsKeyId": one.kms_key_id,
            "SnapshotId": one.snapshot_id,
        }
        volume.update({key: value for key, value in optional.items() if value})
        disks.append({"DeviceName": one.device_name, "Ebs": volume})
    root = {
        "VolumeSize": 20,
        "VolumeType": "gp3",
        "Encrypted": True,
        "DeleteOnTermination": True,
    }
    return disks or [{"DeviceName": "/dev/xvda", "Ebs": root}]


def _template_name(cluster: str, data: Mapping[str, Any]) -> str:
    text = json.dumps(data, sort_keys=True)
    return f"Dovetail-{cluster}-{hashlib.sha256(text.encode()).hexdigest()[:_NAME_LENGTH]}"
