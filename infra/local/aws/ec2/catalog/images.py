"""Machine images for nodes, and the public parameters that name them.

Source: https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.md (2026-12).
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from moto.ec2.models.amis import Ami
from moto.ssm.models import Parameter, ssm_backends

KUBERNETES_VERSIONS: Final = tuple(f"1.{minor}" for minor in range(28, 37))
_LAST_AL2: Final = "1.32"
_RELEASE: Final = "20260715"
_BOTTLEROCKET_RELEASE: Final = "1.40.0"
_RELEASED_AT: Final = datetime(2026, 7, 15, tzinfo=UTC)
_OWNER: Final = "602401143452"

_AL2023: Final = (
    ("x86_64", "standard"),
    ("arm64", "standard"),
    ("x86_64", "nvidia"),
    ("arm64", "nvidia"),
    ("x86_64", "neuron"),
)
_AL2: Final = (
    ("amazon-linux-2", "x86_64"),
    ("amazon-linux-2-arm64", "arm64"),
    ("amazon-linux-2-gpu", "x86_64"),
)
# From which minor version on Canonical publishes which Ubuntu, the newest first.
_UBUNTU: Final = ((31, "24.04", "ebs-gp3"), (29, "22.04", "ebs-gp2"), (0, "20.04", "ebs-gp2"))
_BOTTLEROCKET: Final = (("", "x86_64"), ("", "arm64"), ("-nvidia", "x86_64"), ("-nvidia", "arm64"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """One image: the parameter folder that names it, and what DescribeImages shows.

    Attributes:
        leaf: The parameter in that folder.
        release_leaf: The parameter there that names its release, empty when there is none.
    """

    folder: str
    name: str
    architecture: str
    release: str
    release_leaf: str
    leaf: str = "image_id"
    root_device: str = "/dev/xvda"
    owner: str = "602401143452"
    alias: str | None = "amazon"

    def ami_id(self, region: str) -> str:
        """An id that is the same each time, and differs by Region."""
        digest = hashlib.sha256(f"{region}{self.folder}".encode()).hexdigest()
        return f"ami-{digest[:17]}"


def images() -> Iterator[Image]:
    for version in KUBERNETES_VERSIONS:
        optimized = f"/aws/service/eks/optimized-ami/{version}"
        for architecture, variant in _AL2023:
            yield Image(
                folder=f"{optimized}/amazon-linux-2023/{architecture}/{variant}/recommended",
                name=f"amazon-eks-node-al2023-{architecture}-{variant}-{version}-v{_RELEASE}",
                architecture=architecture,
                release=f"{version}.0-{_RELEASE}",
                release_leaf="release_version",
            )
        for folder, architecture in _AL2 if version <= _LAST_AL2 else ():
            yield Image(
                folder=f"{optimized}/{folder}/recommended",
                name=f"{folder.replace('amazon-linux-2', 'amazon-eks-node')}-{version}-v{_RELEASE}",
                architecture=architecture,
                release=f"{version}.0-{_RELEASE}",
                release_leaf="release_version",
            )
        for variant, architecture in _BOTTLEROCKET:
            yield Image(
                folder=f"/aws/service/bottlerocket/aws-k8s-{version}{variant}/{architecture}/latest",
                name=f"bottlerocket-aws-k8s-{version}{variant}-{architecture}-"
                f"v{_BOTTLEROCKET_RELEASE}",
                architecture=architecture,
                release=_BOTTLEROCKET_RELEASE,
                release_leaf="image_version",
            )

        yield from _ubuntu(version)


def _ubuntu(version: str) -> Iterator[Image]:
    minor = int(version.partition(".")[2])
    release, volume = next((name, kind) for since, name, kind in _UBUNTU if minor >= since)
    for architecture, machine in (("amd64", "x86_64"), ("arm64", "arm64")):
        yield Image(
            folder=f"/aws/service/canonical/ubuntu/eks/{release}/{version}/stable/current/"
            f"{architecture}/hvm/{volume}",
            name=f"ubuntu-eks/k8s_{version}/images/{release}-{architecture}-{_RELEASE}",
            architecture=machine,
            release="",
            release_leaf="",
            leaf="ami-id",
            root_device="/dev/sda1",
            owner="099720109477",
            alias=None,
        )


def seed_images(backend: Any) -> dict[str, str]:
    """Register the images and their parameters, once; return AMI ids by parameter name."""
    region = backend.region_name
    parameters = ssm_backends[backend.account_id][region]._parameters
    named: dict[str, str] = {}
    for image in images():
        ami_id = image.ami_id(region)
        leaf = f"{image.folder}/{image.leaf}"
        named[leaf] = ami_id
        if ami_id in backend.amis:
            continue
        backend.amis[ami_id] = Ami(
            backend,
            ami_id,
            name=image.name,
            description=f"{image.name} (emulated, boots nothing)",
            owner_id=image.owner,
            owner_alias=image.alias,
            public=True,
            virtualization_type="hvm",
            architecture=image.architecture,
            creation_date=_RELEASED_AT,
            image_location=f"amazon/{image.name}",
            hypervisor="xen",
            root_device_type="ebs",
            root_device_name=image.root_device,
            region_name=region,
        )
        values = {leaf: ami_id}
        if image.release_leaf:
            values[f"{image.folder}/{image.release_leaf}"] = image.release
        for name, value in values.items():
            parameters[name].append(_parameter(name, value))
    return named


def _parameter(name: str, value: str) -> Any:
    make: Any = Parameter  # its CloudFormation half is declared abstract, but never is
    return make(
        account_id=_OWNER,
        name=name,
        value=value,
        parameter_type="String",
        description=None,
        allowed_pattern=None,
        keyid=None,
        last_modified_date=_RELEASED_AT,
        version=1,
        data_type="text",
    )
