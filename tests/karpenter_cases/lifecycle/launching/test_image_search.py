"""How images are looked for."""

from typing import Any

import pytest

from shared.aws.ec2.fleets_and_images import image_request
from shared.manifests.custom_resources.provisioners import decode_provisioner
from shared.model.ec2.image_table import ImageTable
from shared.model.provisioner import NodeTemplate
from shared.snapshot.images import resolve_images, selected_images
from tests.builders import CATALOG, instance_type
from tests.fakes.cloud import FakeCloud
from tests.karpenter_cases.lifecycle.births import image, provisioner

GPU = instance_type("g4dn.xlarge", extra={"nvidia.com/gpu": 1})
ARM_GPU = instance_type("g5g.xlarge", arch="arm64", extra={"nvidia.com/gpu": 1})
NEURON = instance_type("inf1.xlarge", extra={"aws.amazon.com/neuron": 1})
MACHINES = (*CATALOG, GPU, ARM_GPU, NEURON)
PLAIN, ARM = "m5.large", "c6g.large"
AL2 = "/aws/service/eks/optimized-ami/1.33/amazon-linux-2"
ROCKET = "/aws/service/bottlerocket/aws-k8s-1.33"
UBUNTU = "/aws/service/canonical/ubuntu/eks/24.04/1.33/stable/current"


def resolved(family: str, *missing: str) -> ImageTable:
    cloud = FakeCloud(missing_images=set(missing))
    return resolve_images(cloud, NodeTemplate(ami_family=family), "1.33", MACHINES)


@pytest.mark.parametrize(
    ("family", "count", "without"),
    [("AL2", 3, [ARM_GPU.name]), ("Bottlerocket", 4, []), ("Ubuntu", 2, [])],
    ids=["AL2-3", "Bottlerocket-4", "Ubuntu-2"],
)
def test_a_family_has_an_image_for_every_machine(
    family: str, count: int, without: list[str]
) -> None:
    table = resolved(family)
    assert [machine.name for machine in MACHINES if not table.of(machine.name)] == without
    assert len(table.ids) == count


def test_the_custom_family_has_no_default_image() -> None:
    assert resolved("Custom") == ImageTable()


@pytest.mark.parametrize(
    ("family", "missing", "without"),
    [
        ("AL2", f"{AL2}-gpu/recommended/image_id", {GPU.name, ARM_GPU.name, NEURON.name}),
        ("Bottlerocket", f"{ROCKET}-nvidia/arm64/latest/image_id", {ARM_GPU.name}),
        (
            "Ubuntu",
            f"{UBUNTU}/amd64/hvm/ebs-gp3/ami-id",
            {PLAIN, "m5.xlarge", "m5.2xlarge", GPU.name, NEURON.name},
        ),
    ],
    ids=["AL2", "Bottlerocket", "Ubuntu"],
)
def test_an_image_that_is_not_published_leaves_the_others(
    family: str, missing: str, without: set[str]
) -> None:
    table = resolved(family, missing)
    assert {
        other_instance_type.name
        for other_instance_type in MACHINES
        if not table.of(other_instance_type.name)
    } == without


def asked(**selector: str) -> dict[str, Any]:
    """Return the request for a selector as people write it."""
    written = {key.replace("__", "::").replace("_ids", "-ids"): v for key, v in selector.items()}
    raw = provisioner(provider={"amiSelector": written})
    (term,) = decode_provisioner(raw).template.ami_selector
    return image_request(term)


def filters(request: dict[str, Any]) -> dict[str, list[str]]:
    return {entry["Name"]: entry["Values"] for entry in request["Filters"]}


def test_tags_are_looked_for_among_our_own_and_amazons() -> None:
    found = asked(Name="my-ami")
    assert found["Owners"] == ["amazon", "self"]
    assert filters(found)["tag:Name"] == ["my-ami"]


def test_a_name_is_looked_for_among_our_own_and_amazons() -> None:
    found = asked(aws__name="my-ami")
    assert found["Owners"] == ["amazon", "self"]
    assert filters(found)["name"] == ["my-ami"]


@pytest.mark.parametrize("key", ["aws_ids", "aws__ids"])
def test_ids_are_looked_for_everywhere(key: str) -> None:
    found = asked(**{key: "ami-abcd1234,ami-cafeaced"})
    assert "Owners" not in found
    assert filters(found)["image-id"] == ["ami-abcd1234", "ami-cafeaced"]


def test_owners_alone_are_enough() -> None:
    assert asked(aws__owners="111111111111,222222222222")["Owners"] == [
        "111111111111",
        "222222222222",
    ]


def test_a_name_is_looked_for_among_the_owners_that_are_named() -> None:
    found = asked(aws__name="my-ami", aws__owners="012345678901,self")
    assert found["Owners"] == ["012345678901", "self"]
    assert filters(found)["name"] == ["my-ami"]


def test_the_newest_comes_first() -> None:
    images = [image(f"ami-{n}", days=days) for n, days in ((1, 10), (2, 12), (3, 8), (4, 0))]
    assert selected_images(images, CATALOG).of(PLAIN) == "ami-2"
    assert selected_images(reversed(images), CATALOG).of(PLAIN) == "ami-2"
