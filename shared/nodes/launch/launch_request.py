"""The request of a launch: launch templates and the CreateFleet request.

Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateFleet.html (2026-08).
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from shared.instance_types.ami_families import BootstrapOptions, family_of
from shared.instance_types.apply_settings import with_pod_limit
from shared.model import labels as keys
from shared.model.ec2.image_table import ImageTable
from shared.model.ec2.instance_types import CapacityType, InstanceType
from shared.model.ec2.launches import PlannedNode
from shared.model.errors import PermanentError
from shared.model.provisioner import (
    UNBOUND,
    BlockDevice,
    KubeletConfiguration,
    MetadataBound,
    Provisioner,
)
from shared.nodes.launch.node_taints import kubelet_taints
from shared.nodes.launch.subnet_addresses import AddressReservations
from shared.ports import ClusterEndpoint, Site
from shared.snapshot.launch_body import LaunchAttempt, LaunchBody

_NAME_LENGTH: Final = 20
_CLUSTER_LENGTH: Final = 128 - len("Dovetail--") - _NAME_LENGTH


class LaunchContext(Struct, frozen=True, kw_only=True):
    """What launch bodies are made from, the same for all groups of a Provisioner.

    Attributes:
        images: The image of each instance type.
        profile: Instance profile of its instances.
        metadata: What the cluster's attachment allows for the instance metadata service.
        instance_types: The catalog, by name.
        addresses: The addresses that launches in flight will take from the subnets.
    """

    cluster: str
    provisioner: Provisioner
    endpoint: ClusterEndpoint
    site: Site
    images: ImageTable
    profile: str
    metadata: MetadataBound = UNBOUND
    instance_types: Mapping[str, InstanceType] = field(default_factory=dict)
    addresses: AddressReservations = field(default_factory=AddressReservations)


def launch_groups(nodes: Sequence[PlannedNode]) -> tuple[tuple[PlannedNode, ...], ...]:
    """Return the nodes in groups that one CreateFleet call can launch.

    A group has the same Provisioner, labels, options and fallback. Groups are in the order of their
    first nodes.
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


def launch_body(context: LaunchContext, attempt: LaunchAttempt) -> LaunchBody:
    """Return the exact EC2 requests of an attempt.

    A launch template that the user names is used unchanged, in its latest version; otherwise one is
    made for each image and pod limit.

    Raises:
        PermanentError: If no option can be requested: no subnet in its zone, or no image.
    """
    first = attempt.options[0].offering
    templates: dict[str, dict[str, Any]] = {}
    template_of: dict[tuple[str, KubeletConfiguration], str] = {}
    overrides: dict[str, list[dict[str, Any]]] = {}
    own_template = context.provisioner.template.launch_template
    subnets = context.addresses.freest_subnets(context.site.subnets)
    for option in attempt.options:
        subnet = subnets.get(option.offering.zone)
        image = "" if own_template else context.images.of(option.offering.instance_type)
        if subnet is None or image is None:
            continue
        kind = image, _kubelet(context, option.offering.instance_type)
        if not own_template and kind not in template_of:
            data = _template_data(context, *kind, attempt.labels, first.capacity_type)
            template_of[kind] = _template_name(context.cluster, data)
            templates[template_of[kind]] = data
        name = own_template or template_of[kind]
        overrides.setdefault(name, []).append(
            {"InstanceType": option.offering.instance_type, "SubnetId": subnet}
        )
    if not overrides:
        raise PermanentError(
            f"provisioner {context.provisioner.name}: no subnet and image for "
            f"{first.instance_type} in {first.zone}"
        )
    tags = launch_tags(context.provisioner, attempt)
    request = _request(overrides, first.capacity_type, len(attempt.slots), tags)
    if context.provisioner.template.context:
        request["Context"] = context.provisioner.template.context
    identity = f"{attempt.cluster}/{attempt.plan_id}/{attempt.group}/{attempt.number}"
    request["ClientToken"] = hashlib.sha256(identity.encode()).hexdigest()
    return LaunchBody(attempt=attempt, templates=templates, request=request)


def launch_tags(provisioner: Provisioner, attempt: LaunchAttempt) -> dict[str, str]:
    """Return the tags of everything that a launch creates; Dovetail's override the user's."""
    return {
        "Name": f"{provisioner.owner_label}/{provisioner.name}",
        **provisioner.template.tags,
        **dict.fromkeys(provisioner.dialect.owner_tags, provisioner.name),
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


def _kubelet(context: LaunchContext, instance_type: str) -> KubeletConfiguration:
    kubelet = context.provisioner.kubelet
    known = context.instance_types.get(instance_type)
    return kubelet if known is None else with_pod_limit(kubelet, known)


def _template_data(
    context: LaunchContext,
    image: str,
    kubelet: KubeletConfiguration,
    labels: Mapping[str, str],
    capacity_type: CapacityType,
) -> dict[str, Any]:
    template = context.provisioner.template
    options = context.metadata.applied(template.metadata_options)
    family = family_of(template.ami_family)
    joining = BootstrapOptions(
        cluster=context.endpoint.name,
        endpoint=context.endpoint.endpoint,
        certificate_authority=context.endpoint.certificate_authority,
        service_cidr=context.endpoint.service_cidr,
        labels={**labels, keys.CAPACITY_TYPE: capacity_type.value},
        taints=kubelet_taints(context.provisioner),
        kubelet=kubelet,
        instance_store=template.instance_store,
    )
    text = family.user_data(joining, template.user_data)
    tags = {
        **template.tags,
        keys.TAG_CLUSTER: context.cluster,
        f"kubernetes.io/cluster/{context.cluster}": "owned",
        **dict.fromkeys(context.provisioner.dialect.owner_tags, context.provisioner.name),
    }
    data: dict[str, Any] = {
        "ImageId": image,
        "UserData": base64.b64encode(text.encode()).decode(),
        **_network(
            context.site.security_groups,
            public_ip=template.public_ip,
            is_ipv6=joining.is_ipv6,
        ),
        "IamInstanceProfile": {"Name": context.profile},
        "MetadataOptions": {
            "HttpEndpoint": options.http_endpoint,
            "HttpProtocolIpv6": options.http_protocol_ipv6,
            "HttpPutResponseHopLimit": options.http_put_response_hop_limit,
            "HttpTokens": options.http_tokens,
            # The account may enable them by default, and then EC2 refuses tag keys with a slash.
            "InstanceMetadataTags": "disabled",
        },
        "TagSpecifications": [
            {
                "ResourceType": kind,
                "Tags": [{"Key": k, "Value": v} for k, v in sorted(tags.items())],
            }
            for kind in _tagged_by_template(capacity_type)
        ],
    }
    disks = _disks(template.block_devices or family.disks)
    if disks:
        data["BlockDeviceMappings"] = disks
    if template.detailed_monitoring:
        data["Monitoring"] = {"Enabled": True}
    return data


def _tagged_by_template(capacity_type: CapacityType) -> tuple[str, ...]:
    """Return the resource types of a launch that the CreateFleet request cannot tag."""
    of_spot = ("spot-instances-request",) if capacity_type == CapacityType.SPOT else ()
    return ("network-interface", *of_spot)


def _network(groups: Sequence[str], *, public_ip: bool | None, is_ipv6: bool) -> dict[str, Any]:
    """Return the security groups, and the addresses of the network interface if they are specified.

    Instances of an IPv6 cluster get an IPv6 address that they keep, whatever the subnet assigns:
    target groups accept only such instances. A launch template that describes a network interface
    names the security groups there.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/
    API_LaunchTemplateInstanceNetworkInterfaceSpecificationRequest.html (PrimaryIpv6, 2026-11).
    """
    interface: dict[str, Any] = {} if public_ip is None else {"AssociatePublicIpAddress": public_ip}
    if is_ipv6:
        interface |= {"Ipv6AddressCount": 1, "PrimaryIpv6": True}
    if not interface:
        return {"SecurityGroupIds": list(groups)}
    return {"NetworkInterfaces": [{**interface, "DeviceIndex": 0, "Groups": list(groups)}]}


def _disks(wanted: Sequence[BlockDevice]) -> list[dict[str, Any]]:
    disks = []
    for block_device in wanted:
        volume: dict[str, Any] = {
            "VolumeType": block_device.volume_type,
            "Encrypted": block_device.encrypted,
            "DeleteOnTermination": block_device.delete_on_termination,
        }
        optional = {
            "VolumeSize": block_device.volume_size_gib,
            "Iops": block_device.iops,
            "Throughput": block_device.throughput,
            "KmsKeyId": block_device.kms_key_id,
            "SnapshotId": block_device.snapshot_id,
        }
        volume.update({key: value for key, value in optional.items() if value})
        disks.append({"DeviceName": block_device.device_name, "Ebs": volume})
    return disks


def _template_name(cluster: str, data: Mapping[str, Any]) -> str:
    """Return the name of a launch template, at most 128 characters; EKS allows a cluster name 100.

    The data contains the cluster's tags, so the digest distinguishes shortened cluster names.
    """
    text = json.dumps(data, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:_NAME_LENGTH]
    return f"Dovetail-{cluster[:_CLUSTER_LENGTH]}-{digest}"
