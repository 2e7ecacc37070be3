"""An account with a network, a cluster and an image, and requests for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.aws.session import Session
from shared.manifests.api.selector_map import selector_of
from shared.model import labels as keys
from shared.model.provisioner import NodeTemplate
from tests.contract.aws.values import CLUSTER

TEMPLATE = NodeTemplate(
    subnet_selector=selector_of({"discovery": CLUSTER}),
    security_group_selector=selector_of({"discovery": CLUSTER}),
)
# One of the images the emulator knows.
IMAGE = "ami-000050f7a0e5e0224"
OURS = {keys.TAG_CLUSTER: CLUSTER, f"kubernetes.io/cluster/{CLUSTER}": "owned"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a test may name.

    Attributes:
        subnets: By name: `a` and `small` are of zone a, `b` is of zone b.
    """

    subnets: Mapping[str, str]
    group: str


def furnish(aws: Session) -> Place:
    """Make network, security group and cluster."""
    ec2 = aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnets = {}
    for number, (name, zone, bits) in enumerate(
        (("small", "us-east-1a", 28), ("a", "us-east-1a", 24), ("b", "us-east-1b", 24))
    ):
        subnet = ec2.create_subnet(
            VpcId=vpc, CidrBlock=f"10.0.{number}.0/{bits}", AvailabilityZone=zone
        )["Subnet"]["SubnetId"]
        tag(aws, subnet, {"discovery": CLUSTER, "size": name})
        subnets[name] = subnet
    group = ec2.create_security_group(GroupName="nodes", Description="nodes", VpcId=vpc)["GroupId"]
    tag(aws, group, {"discovery": CLUSTER})
    aws.client("eks").create_cluster(
        name=CLUSTER,
        version="1.33",
        roleArn="arn:aws:iam::123456789012:role/cluster",
        resourcesVpcConfig={"subnetIds": [subnets["a"], subnets["b"]]},
        kubernetesNetworkConfig={"serviceIpv4Cidr": "172.20.0.0/16"},
    )
    return Place(subnets=subnets, group=group)


def tag(aws: Session, resource: str, tags: Mapping[str, str]) -> None:
    """Tag a resource."""
    listed = [{"Key": key, "Value": value} for key, value in tags.items()]
    aws.client("ec2").create_tags(Resources=[resource], Tags=listed)


def fleet_request(
    *overrides: tuple[str, str],
    count: int = 1,
    capacity_type: str = "spot",
    template: str = "template-1",
    tags: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return a CreateFleet request; an override is an instance type and a subnet id."""
    listed = [{"Key": k, "Value": v} for k, v in sorted({**OURS, **(tags or {})}.items())]
    return {
        "Type": "instant",
        "ClientToken": f"token-{count}-{capacity_type}-{overrides[0][0]}",
        "LaunchTemplateConfigs": [
            {
                "LaunchTemplateSpecification": {
                    "LaunchTemplateName": template,
                    "Version": "$Latest",
                },
                "Overrides": [{"InstanceType": t, "SubnetId": s} for t, s in overrides],
            }
        ],
        "TargetCapacitySpecification": {
            "TotalTargetCapacity": count,
            "DefaultTargetCapacityType": capacity_type,
        },
        "TagSpecifications": [{"ResourceType": "instance", "Tags": listed}],
    }
