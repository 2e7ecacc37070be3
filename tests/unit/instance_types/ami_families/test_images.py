"""The public parameter that names each family's image."""

from typing import Any

import pytest

from shared.instance_types.ami_families import DEFAULT, FAMILIES, ImageRequest, family_of
from shared.model.errors import PermanentError
from shared.model.provisioner import AMI_FAMILIES, AMI_FAMILY_WITHOUT_IMAGE
from shared.model.resources import Resources

GPU = Resources.from_mapping({"nvidia.com/gpu": 1})
NEURON = Resources.from_mapping({"aws.amazon.com/neuron": 1})
PLAIN = Resources()
AL2023_ARM = "amazon-linux-2023/arm64/standard"
EKS = "/aws/service/eks/optimized-ami/1.33"
ROCKET = "/aws/service/bottlerocket/aws-k8s-1.33"
UBUNTU = "/aws/service/canonical/ubuntu/eks"


def named(family: str, version: str = "1.33", **more: Any) -> str:
    """Return the parameter of the image that a family recommends."""
    parameter = FAMILIES[family].parameter
    assert parameter is not None
    return parameter(ImageRequest(version=version, **more))


@pytest.mark.parametrize(
    ("family", "architecture", "capacity", "name"),
    [
        ("AL2023", "amd64", PLAIN, f"{EKS}/amazon-linux-2023/x86_64/standard/recommended/image_id"),
        ("AL2023", "arm64", PLAIN, f"{EKS}/amazon-linux-2023/arm64/standard/recommended/image_id"),
        ("AL2023", "amd64", GPU, f"{EKS}/amazon-linux-2023/x86_64/nvidia/recommended/image_id"),
        ("AL2023", "amd64", NEURON, f"{EKS}/amazon-linux-2023/x86_64/neuron/recommended/image_id"),
        ("AL2", "amd64", PLAIN, f"{EKS}/amazon-linux-2/recommended/image_id"),
        ("AL2", "arm64", PLAIN, f"{EKS}/amazon-linux-2-arm64/recommended/image_id"),
        ("AL2", "arm64", GPU, f"{EKS}/amazon-linux-2-gpu/recommended/image_id"),
        ("AL2", "amd64", NEURON, f"{EKS}/amazon-linux-2-gpu/recommended/image_id"),
        ("Bottlerocket", "amd64", PLAIN, f"{ROCKET}/x86_64/latest/image_id"),
        ("Bottlerocket", "arm64", GPU, f"{ROCKET}-nvidia/arm64/latest/image_id"),
        (
            "Ubuntu",
            "arm64",
            PLAIN,
            f"{UBUNTU}/24.04/1.33/stable/current/arm64/hvm/ebs-gp3/ami-id",
        ),
    ],
)
def test_the_recommended_image_has_a_name(
    family: str, architecture: str, capacity: Resources, name: str
) -> None:
    assert named(family, architecture=architecture, capacity=capacity) == name


@pytest.mark.parametrize(
    ("family", "architecture", "capacity", "name"),
    [
        (
            "AL2023",
            "arm64",
            PLAIN,
            f"{EKS}/{AL2023_ARM}/amazon-eks-node-al2023-arm64-standard-1.33-v1.2/image_id",
        ),
        ("AL2", "amd64", PLAIN, f"{EKS}/amazon-linux-2/amazon-eks-node-1.33-v1.2/image_id"),
        (
            "AL2",
            "arm64",
            PLAIN,
            f"{EKS}/amazon-linux-2-arm64/amazon-eks-arm64-node-1.33-v1.2/image_id",
        ),
        ("AL2", "amd64", GPU, f"{EKS}/amazon-linux-2-gpu/amazon-eks-gpu-node-1.33-v1.2/image_id"),
        ("Bottlerocket", "amd64", GPU, f"{ROCKET}-nvidia/x86_64/1.2/image_id"),
    ],
)
def test_an_image_of_a_version_has_a_name(
    family: str, architecture: str, capacity: Resources, name: str
) -> None:
    assert named(family, architecture=architecture, capacity=capacity, release="v1.2") == name


@pytest.mark.parametrize(
    ("version", "folder"), [("1.28", "20.04"), ("1.30", "22.04"), ("1.31", "24.04"), ("1", "20.04")]
)
def test_ubuntu_follows_the_version_of_the_cluster(version: str, folder: str) -> None:
    assert f"/eks/{folder}/" in named("Ubuntu", version, architecture="amd64")


def test_a_custom_image_has_no_recommended_parameter() -> None:
    assert FAMILIES["Custom"].parameter is None
    assert FAMILIES["Custom"].disks == ()


def test_a_family_is_found_by_its_name() -> None:
    assert family_of(DEFAULT).name == "AL2023"
    with pytest.raises(PermanentError, match="amiFamily: 'Windows2019': use one of AL2023, Bottle"):
        family_of("Windows2019")


def test_manifests_know_the_same_families() -> None:
    assert tuple(FAMILIES) == AMI_FAMILIES
    without = [name for name, family in FAMILIES.items() if family.parameter is None]
    assert without == [AMI_FAMILY_WITHOUT_IMAGE]
