"""The account as it is before the first node."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from infra.local.aws.control import ControlError
from infra.local.aws.ec2.catalog.images import KUBERNETES_VERSIONS, images

ROLE = "arn:aws:iam::123456789012:role/path/DovetailBind"


def test_the_cluster_is_active_and_has_the_given_endpoint(
    account: Any, cluster: dict[str, Any]
) -> None:
    found = account.client("eks").describe_cluster(name="blue")["cluster"]
    assert (found["status"], found["endpoint"]) == ("ACTIVE", "https://127.0.0.1:6443")
    assert found["certificateAuthority"] == {"data": "Y2E="}
    assert found["accessConfig"]["authenticationMode"] == "API_AND_CONFIG_MAP"
    assert found["arn"] == cluster["cluster_arn"]
    assert found["resourcesVpcConfig"]["clusterSecurityGroupId"] == cluster["security_group_id"]


def test_subnets_and_groups_are_found_by_their_tags(account: Any, cluster: dict[str, Any]) -> None:
    assert cluster["zones"] == ["us-east-1a", "us-east-1b", "us-east-1c"]
    for name, value in (
        ("kubernetes.io/cluster/blue", "owned"),
        ("karpenter.sh/discovery", "blue"),
    ):
        filters = [{"Name": f"tag:{name}", "Values": [value]}]
        subnets = account.ec2.describe_subnets(Filters=filters)["Subnets"]
        assert sorted(row["SubnetId"] for row in subnets) == sorted(cluster["subnet_ids"])
        assert all(row["CidrBlock"].endswith("/20") for row in subnets)
        groups = account.ec2.describe_security_groups(Filters=filters)["SecurityGroups"]
        assert [row["GroupId"] for row in groups] == [cluster["security_group_id"]]


def test_every_image_parameter_names_an_image_that_exists(
    account: Any, cluster: dict[str, Any]
) -> None:
    seeded = account.do("seed", clusters=[])["images"]
    assert len(seeded) == len(list(images()))
    ssm = account.client("ssm")
    names = sorted(seeded)
    for start in range(0, len(names), 10):
        answer = ssm.get_parameters(Names=names[start : start + 10])
        assert answer["InvalidParameters"] == []
    found = account.ec2.describe_images(ImageIds=sorted(seeded.values()))["Images"]
    assert {row["ImageId"] for row in found} == set(seeded.values())
    newest = KUBERNETES_VERSIONS[-1]
    name = f"/aws/service/eks/optimized-ami/{newest}/amazon-linux-2023/arm64/standard/recommended"
    value = ssm.get_parameter(Name=f"{name}/image_id")["Parameter"]["Value"]
    [image] = account.ec2.describe_images(ImageIds=[value])["Images"]
    assert (image["Architecture"], image["State"]) == ("arm64", "available")
    assert ssm.get_parameter(Name=f"{name}/release_version")["Parameter"]["Value"]


def test_roles_and_profile_exist(account: Any, cluster: dict[str, Any]) -> None:
    iam = account.client("iam")
    profile = iam.get_instance_profile(InstanceProfileName="DovetailNode-blue")["InstanceProfile"]
    assert [role["Arn"] for role in profile["Roles"]] == [cluster["node_role_arn"]]
    spot = iam.get_role(RoleName="AWSServiceRoleForEC2Spot")["Role"]
    assert spot["Path"] == "/aws-service-role/spot.amazonaws.com/"


def test_seeding_again_keeps_ids_and_moves_the_endpoint(
    account: Any, cluster: dict[str, Any]
) -> None:
    again = account.do(
        "seed",
        clusters=[
            {"name": "blue", "endpoint": "https://127.0.0.1:7443", "ca_data": "Y2E="},
            {"name": "green", "endpoint": "https://127.0.0.1:8443", "ca_data": "Y2E="},
        ],
    )["clusters"]
    assert again["blue"]["subnet_ids"] == cluster["subnet_ids"]
    assert again["blue"]["endpoint"] == "https://127.0.0.1:7443"
    assert again["green"]["vpc_id"] != cluster["vpc_id"]
    assert sorted(account.client("eks").list_clusters()["clusters"]) == ["blue", "green"]


def test_a_seed_without_an_endpoint_says_so(account: Any) -> None:
    with pytest.raises(ControlError, match="endpoint: None"):
        account.do("seed", clusters=[{"name": "blue"}])


def test_access_entries_live_with_their_cluster(account: Any, cluster: dict[str, Any]) -> None:
    eks = account.client("eks")
    made = eks.create_access_entry(
        clusterName="blue",
        principalArn=ROLE,
        kubernetesGroups=["dovetail:bind"],
        username="dovetail-bind",
    )["accessEntry"]
    assert (made["principalArn"], made["kubernetesGroups"]) == (ROLE, ["dovetail:bind"])
    found = eks.describe_access_entry(clusterName="blue", principalArn=ROLE)["accessEntry"]
    assert (found["username"], found["type"]) == ("dovetail-bind", "STANDARD")
    node = eks.create_access_entry(
        clusterName="blue", principalArn=cluster["node_role_arn"], type="EC2_LINUX"
    )["accessEntry"]
    assert node["kubernetesGroups"] == ["system:nodes"]
    listed = eks.list_access_entries(clusterName="blue")["accessEntries"]
    assert listed == sorted([ROLE, cluster["node_role_arn"]])
    with pytest.raises(ClientError) as refusal:
        eks.create_access_entry(clusterName="blue", principalArn=ROLE)
    assert refusal.value.response["Error"]["Code"] == "ResourceInUseException"
    eks.delete_access_entry(clusterName="blue", principalArn=ROLE)
    with pytest.raises(ClientError) as refusal:
        eks.describe_access_entry(clusterName="blue", principalArn=ROLE)
    assert refusal.value.response["Error"]["Code"] == "ResourceNotFoundException"
    with pytest.raises(ClientError):
        eks.list_access_entries(clusterName="red")
