"""What a user's account would hold before the first node: network, cluster, roles, images."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from moto.eks.models import eks_backends
from moto.iam.exceptions import NotFoundException
from moto.iam.models import iam_backends

from infra.local.aws.ec2.catalog.images import seed_images
from infra.local.aws.ec2.world import World

KUBERNETES_VERSION: Final = "1.33"
ZONES: Final = 3
SPOT_ROLE: Final = "AWSServiceRoleForEC2Spot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A cluster to seed; `ca_data` is the base64 of its certificate authority."""

    name: str
    endpoint: str
    ca_data: str
    version: str = KUBERNETES_VERSION


def seed_clusters(world: World, region: str, clusters: tuple[Cluster, ...]) -> dict[str, Any]:
    """Seed an account; a cluster that is there keeps its ids and gets the new endpoint.

    Returns:
        `images` (AMI ids by parameter name) and, by cluster name, under `clusters`: `vpc_id`,
        `subnet_ids` and `zones` (same order), `security_group_id`, `node_role_arn`,
        `instance_profile` and its ARN, `cluster_arn`, `endpoint`.
    """
    with world.lock:
        backend = world.backend(region)
        named = seed_images(backend)
        iam = iam_backends[world.account][backend.partition]
        _spot_role(iam)
        seeded = {cluster.name: _seed(world, backend, iam, cluster) for cluster in clusters}
    return {"region": region, "account": world.account, "images": named, "clusters": seeded}


def _seed(world: World, backend: Any, iam: Any, cluster: Cluster) -> dict[str, Any]:
    eks = eks_backends[world.account][backend.region_name]
    found = eks.clusters.get(cluster.name)
    if found is None:
        found = _new_cluster(backend, iam, eks, cluster)
    found.endpoint = cluster.endpoint
    found.certificate_authority = {"data": cluster.ca_data}
    found.version = cluster.version
    node_role = iam.get_role(f"DovetailNode-{cluster.name}")
    profile = iam.get_instance_profile(f"DovetailNode-{cluster.name}")
    network = found.resources_vpc_config
    subnet_ids = list(network["subnetIds"])
    return {
        "cluster_arn": found.arn,
        "endpoint": found.endpoint,
        "version": found.version,
        "vpc_id": network["vpcId"],
        "subnet_ids": subnet_ids,
        "zones": [backend.get_subnet(entry).availability_zone for entry in subnet_ids],
        "security_group_id": network["clusterSecurityGroupId"],
        "node_role_arn": node_role.arn,
        "instance_profile": profile.name,
        "instance_profile_arn": profile.arn,
    }


def _new_cluster(backend: Any, iam: Any, eks: Any, cluster: Cluster) -> Any:
    role = _role(iam, f"DovetailCluster-{cluster.name}", "eks.amazonaws.com")
    _node_role(iam, f"DovetailNode-{cluster.name}")
    network = _network(backend, cluster.name, len(eks.clusters))
    made = eks.create_cluster(
        name=cluster.name,
        role_arn=role.arn,
        resources_vpc_config=network,
        version=cluster.version,
        tags={"created-by": "dovetail-local"},
    )
    made.resources_vpc_config = network
    made.access_config = {
        "authenticationMode": "API_AND_CONFIG_MAP",
        "bootstrapClusterCreatorAdminPermissions": True,
    }
    return made


def _network(backend: Any, name: str, number: int) -> dict[str, Any]:
    """One VPC a cluster, 10.N.0.0/16, with a /20 in each of three zones."""
    tags = {f"kubernetes.io/cluster/{name}": "owned", "karpenter.sh/discovery": name}
    vpc = backend.create_vpc(f"10.{number % 256}.0.0/16")
    vpc.add_tags({"Name": name})
    zones = sorted(zone.name for zone in backend.describe_availability_zones())[:ZONES]
    subnet_ids = []
    for place, zone in enumerate(zones):
        block = f"10.{number % 256}.{place * 16}.0/20"
        subnet = backend.create_subnet(vpc.id, block, availability_zone=zone)
        subnet.add_tags({"Name": f"{name}-{zone}", **tags})
        subnet_ids.append(subnet.id)
    group = backend.create_security_group(
        f"eks-cluster-sg-{name}", f"Nodes and control plane of {name}", vpc_id=vpc.id
    )
    group.add_tags({"Name": f"eks-cluster-sg-{name}", **tags})
    return {
        "subnetIds": subnet_ids,
        "securityGroupIds": [group.id],
        "clusterSecurityGroupId": group.id,
        "vpcId": vpc.id,
        "endpointPublicAccess": True,
        "endpointPrivateAccess": True,
        "publicAccessCidrs": ["0.0.0.0/0"],
    }


def _role(iam: Any, name: str, service: str, path: str = "/") -> Any:
    try:
        return iam.get_role(name)
    except NotFoundException:
        statement: Mapping[str, Any] = {
            "Effect": "Allow",
            "Principal": {"Service": service},
            "Action": "sts:AssumeRole",
        }
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        return iam.create_role(name, document, path, None, "", [], 3600)


def _node_role(iam: Any, name: str) -> None:
    _role(iam, name, "ec2.amazonaws.com")
    try:
        iam.get_instance_profile(name)
    except NotFoundException:
        iam.create_instance_profile(name, "/", [])
        iam.add_role_to_instance_profile(name, name)


def _spot_role(iam: Any) -> None:
    _role(iam, SPOT_ROLE, "spot.amazonaws.com", "/aws-service-role/spot.amazonaws.com/")
