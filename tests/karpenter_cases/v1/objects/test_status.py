"""What NodePools and EC2NodeClasses say of themselves."""

from typing import Any

import pytest

from infra.local.ec2.account import Ordered
from infra.local.ec2.refusals import Refusal
from shared.disruption.drift import shape_hash
from shared.manifests.custom_resources.node_pools import decode_node_pool
from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType
from shared.model.errors import PermanentError, UnauthorizedError
from shared.model.resources import Resources
from shared.model.values import replace
from shared.ports import PoolStatus, Subnet, TemplateStatus
from tests.builders import CATALOG, ZONES, instance_type
from tests.fakes.images import image_named
from tests.karpenter_cases.lifecycle.births import (
    bought,
    image,
    node_config,
    only_data,
    settings,
    text_of,
)
from tests.karpenter_cases.v1.reading import class_faults
from tests.karpenter_cases.v1.worlds import changed_class, is_ready, named_pool, world
from tests.unit.manifests.documents import CLASS_REF, node_pool
from tests.unit.worlds import World

COUNTS = (keys.INSTANCE_ACCELERATOR_COUNT, keys.INSTANCE_GPU_COUNT)


def accelerated(name: str, resource: str, label: str) -> InstanceType:
    plain = instance_type(name, extra={resource: 1})
    return replace(plain, labels={**plain.labels, label: "1"})


GPU = accelerated("g4dn.xlarge", "nvidia.com/gpu", keys.INSTANCE_GPU_COUNT)
NEURON = accelerated("inf1.xlarge", "aws.amazon.com/neuron", keys.INSTANCE_ACCELERATOR_COUNT)
OWN = {"amiSelectorTerms": [{"tags": {"team": "red"}}], "amiFamily": "AL2023"}


def subnets(*free: int) -> tuple[Subnet, ...]:
    return tuple(
        Subnet(subnet_id=f"subnet-{number}", zone=ZONES[0], free_addresses=count)
        for number, count in enumerate(free)
    )


def described(there: World) -> TemplateStatus:
    """Let provision report; return the status of the EC2NodeClass."""
    there.provisioning().report_provisioners()
    return there.cluster.class_statuses["nodes"]


def condition(there: World, name: str = "default") -> Any:
    there.provisioning().report_provisioners()
    return there.cluster.conditions[f"NodePool/{name}"]


def test_a_right_pool_says_that_it_is_ready() -> None:
    assert condition(world(named_pool()))[:2] == (True, "Ready")


def test_a_pool_says_what_its_class_lacks() -> None:
    missing = named_pool(spec={"nodeClassRef": {**CLASS_REF, "name": "missing"}})
    holds, _, text = condition(world(missing))
    assert not holds
    assert "there is no EC2NodeClass of that name" in text
    there = world(named_pool())
    there.cloud.subnets = ()
    holds, reason, text = condition(there)
    assert (holds, reason) == (False, "NodeClassNotReady")
    assert "subnetSelectorTerms finds no subnet" in text


def test_the_status_counts_nodes_and_what_they_have() -> None:
    there = world(named_pool())
    there.sweep()
    assert there.cluster.pool_statuses["default"] == PoolStatus(nodes=0, resources=Resources())
    there = bought(there)
    there.sweep()
    status = there.cluster.pool_statuses["default"]
    assert (status.nodes, status.resources["cpu"]) == (1, there.node.capacity["cpu"])
    there.cluster.node_values.clear()
    there.sweep()
    assert there.cluster.pool_statuses["default"].nodes == 0


def test_a_pool_of_another_provider_is_not_written_to() -> None:
    foreign = {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"}
    there = world(named_pool("theirs", {"nodeClassRef": foreign}), named_pool())
    assert is_ready(there)
    assert set(there.cluster.conditions) == {"NodePool/default"}
    assert bought(there).node.labels[keys.NODE_POOL] == "default"


def test_limits_of_image_collection_that_contradict_are_told_in_the_status() -> None:
    wrong = {"imageGCHighThresholdPercent": 50, "imageGCLowThresholdPercent": 60}
    there = world(named_pool(), changed_class(kubelet=wrong))
    status = described(there)
    assert status.invalid
    assert any("imageGCHighThresholdPercent" in problem for problem in status.problems)
    assert condition(there)[1] == "NodeClassNotReady"


def test_subnets_are_shown_and_follow_a_change() -> None:
    there = world(named_pool())
    there.cloud.subnets = subnets(20, 100, 50)
    assert [entry.subnet_id for entry in described(there).subnets] == [
        "subnet-1",
        "subnet-2",
        "subnet-0",
    ]
    there.cloud.subnets = subnets(20)
    assert [entry.subnet_id for entry in described(there).subnets] == ["subnet-0"]


def test_no_subnet_is_told_and_the_list_is_emptied() -> None:
    there = world(named_pool())
    assert described(there).subnets
    there.cloud.subnets = ()
    status = described(there)
    assert status.subnets == ()
    chosen = "karpenter.sh/discovery=demo"
    assert status.problems == (f"subnetSelectorTerms finds no subnet with {chosen}",)


def test_security_groups_are_shown_alike() -> None:
    there = world(named_pool())
    there.cloud.security_groups = ("sg-2", "sg-1")
    assert described(there).security_groups == ("sg-1", "sg-2")
    there.cloud.security_groups = ()
    status = described(there)
    assert status.security_groups == ()
    chosen = "karpenter.sh/discovery=demo"
    assert status.problems == (f"securityGroupSelectorTerms finds no security group with {chosen}",)


EKS = "/aws/service/eks/optimized-ami/1.33"
IMAGES = {
    "al2023": {
        f"{EKS}/amazon-linux-2023/x86_64/standard/recommended/image_id": "amd64",
        f"{EKS}/amazon-linux-2023/arm64/standard/recommended/image_id": "arm64",
        f"{EKS}/amazon-linux-2023/x86_64/nvidia/recommended/image_id": "amd64",
        f"{EKS}/amazon-linux-2023/x86_64/neuron/recommended/image_id": "amd64",
    },
    "al2": {
        f"{EKS}/amazon-linux-2/recommended/image_id": "amd64",
        f"{EKS}/amazon-linux-2-arm64/recommended/image_id": "arm64",
        f"{EKS}/amazon-linux-2-gpu/recommended/image_id": "amd64",
    },
    "bottlerocket": {
        "/aws/service/bottlerocket/aws-k8s-1.33/x86_64/latest/image_id": "amd64",
        "/aws/service/bottlerocket/aws-k8s-1.33/arm64/latest/image_id": "arm64",
        "/aws/service/bottlerocket/aws-k8s-1.33-nvidia/x86_64/latest/image_id": "amd64",
    },
}


def published(family: str, *missing: str) -> World:
    """Return a world in which EC2 has the images of a family but for those."""
    there = world(
        named_pool(spec={"requirements": []}),
        changed_class(amiSelectorTerms=[{"alias": f"{family}@latest"}]),
        types=(*CATALOG, GPU, NEURON),
    )
    there.cloud.missing_images = set(missing)
    there.cloud.images = tuple(
        image(image_named(name), architecture) for name, architecture in IMAGES[family].items()
    )
    return there


def shown(there: World) -> dict[str, dict[str, str]]:
    return {found.image_id: dict(found.labels) for found in described(there).images}


@pytest.mark.parametrize("family", IMAGES)
def test_an_alias_has_an_image_for_each_kind_of_machine(family: str) -> None:
    assert shown(published(family)) == {
        image_named(name): {keys.ARCH: architecture}
        for name, architecture in IMAGES[family].items()
    }


@pytest.mark.parametrize(
    ("family", "machines"),
    [
        ("al2023", {"standard": [()], "nvidia": [COUNTS[1:]], "neuron": [COUNTS[:1]]}),
        ("al2", {"-2/": [()], "-2-arm64": [()], "-2-gpu": [COUNTS[:1], COUNTS[1:]]}),
        (
            "bottlerocket",
            {"1.33/x86_64": [(), COUNTS[:1]], "1.33/arm64": [()], "nvidia": [COUNTS[1:]]},
        ),
    ],
)
def test_images_of_an_alias_say_which_accelerators_their_machines_have(
    family: str, machines: dict[str, list[tuple[str, ...]]]
) -> None:
    shown_ones = described(published(family)).images
    for name in IMAGES[family]:
        (has,) = (kinds for part, kinds in machines.items() if part in name)
        found = [image for image in shown_ones if image.image_id == image_named(name)]
        assert [image.has for image in found] == has
        assert [image.lacks for image in found] == [() if kind else COUNTS for kind in has]


def test_images_of_other_terms_say_nothing_of_accelerators() -> None:
    there = published("al2023")
    there.cluster.apply(
        changed_class(amiFamily="AL2023", amiSelectorTerms=[{"id": there.cloud.images[0].image_id}])
    )
    (found,) = described(there).images
    assert (found.has, found.lacks) == ((), ())


def test_images_that_are_not_published_leave_the_others() -> None:
    names = list(IMAGES["al2023"])
    there = published("al2023", names[1])
    assert image_named(names[1]) not in shown(there)
    assert described(there).problems == ()
    none = published("al2023", *names)
    assert shown(none) == {}
    assert any("no image is found" in problem for problem in described(none).problems)


def test_an_alias_that_a_version_no_longer_has_is_told() -> None:
    ended = published("al2", *IMAGES["al2"])
    status = described(ended)
    assert (status.images, status.unsupported_alias) == ((), True)
    (problem,) = status.problems
    assert problem.startswith("AL2 has no images for Kubernetes 1.33: the last version with some")
    assert not is_ready(ended)
    ended.cloud.version = "1.32"
    assert not described(ended).unsupported_alias
    assert class_faults(amiSelectorTerms=[{"alias": "windows2025@latest"}]) != []


def own_images(*images: Any) -> World:
    there = world(named_pool(spec={"requirements": []}), changed_class(**OWN))
    there.cloud.images = images
    return there


def test_an_own_image_asks_for_its_architecture() -> None:
    there = own_images(image("ami-1", "arm64", team="red"))
    assert shown(there) == {"ami-1": {keys.ARCH: "arm64"}}


def test_tags_of_an_own_image_say_nothing_of_its_machines() -> None:
    tagged = replace(image("ami-1", team="red"), tags={"team": "red", keys.INSTANCE_FAMILY: "x1"})
    there = own_images(tagged)
    assert shown(there) == {"ami-1": {keys.ARCH: "amd64"}}
    bought(there)
    assert only_data(there)["ImageId"] == "ami-1"


def dated(name: str, days: int, *, deprecated: bool = False) -> Any:
    """Return an own image of that age in days, to be found by its tag."""
    return replace(image(name, days=-days, team="red"), deprecated=deprecated)


@pytest.mark.parametrize(
    ("images", "chosen"),
    [
        ((dated("ami-1", 9), dated("ami-2", 1), dated("ami-3", 5)), "ami-2"),
        ((dated("ami-2", 1), dated("ami-1", 1)), "ami-1"),
        ((dated("ami-1", 1, deprecated=True), dated("ami-2", 9)), "ami-2"),
        ((dated("ami-1", 9, deprecated=True), dated("ami-2", 1, deprecated=True)), "ami-2"),
    ],
    ids=["newest", "same-age", "deprecated", "all-deprecated"],
)
def test_the_newest_image_counts_and_a_deprecated_one_last(images: Any, chosen: str) -> None:
    there = own_images(*images)
    assert list(shown(there)) == [chosen]
    bought(there)
    assert only_data(there)["ImageId"] == chosen


def test_a_right_that_a_launch_lacks_is_told() -> None:
    there = world(named_pool())
    refusal = UnauthorizedError("UnauthorizedOperation: not authorized to perform ec2:CreateFleet")
    there.cloud.fail_next("create_fleet", refusal)
    bought(there)
    assert any("ec2:CreateFleet" in event.message for event in there.cluster.kube_events)


def test_a_subnet_that_answers_with_an_error_leaves_the_next() -> None:
    there = world(named_pool(), types=(instance_type("m5.large"),))
    failed, *others = (f"subnet-{zone}" for zone in ZONES)
    fault = Refusal(code="InternalError", message="an internal error has occurred")
    there.cloud.ordered.append(Ordered(refusal=fault, subnet_id=failed))
    assert is_ready(there)
    bought(there)
    (launch,) = there.alive
    assert f"subnet-{launch.offering.zone}" in others
    everywhere = world(named_pool(), types=(instance_type("m5.large"),))
    everywhere.cloud.ordered.append(Ordered(refusal=fault))
    assert bought(everywhere).alive == []


def test_no_check_of_rights_keeps_a_class_from_being_ready() -> None:
    there = world(named_pool())
    assert is_ready(there)
    assert there.cloud.fleets == []


def test_a_profile_that_is_named_is_taken_and_a_missing_one_told() -> None:
    there = world(named_pool(), changed_class(instanceProfile="mine"))
    refusal = PermanentError("Value (mine) for parameter iamInstanceProfile.name is invalid")
    there.cloud.fail_next("create_fleet", refusal)
    bought(there)
    assert only_data(there)["IamInstanceProfile"] == {"Name": "mine"}
    assert any("iamInstanceProfile" in event.message for event in there.cluster.kube_events)


def test_user_data_that_is_too_large_is_told() -> None:
    there = world(named_pool(), changed_class(userData=f"#!/bin/sh\n{'#' * 17_000}"))
    assert any("EC2 takes 16384" in problem for problem in described(there).problems)
    malformed = class_faults(userData="[a")
    assert len(malformed) == 1
    assert "EC2 takes" not in malformed[0]


@pytest.mark.parametrize(
    ("cidr", "address"),
    [("172.20.0.0/16", "172.20.0.10"), ("fd00:1::/108", "fd00:1::a")],
    ids=["fourth", "sixth"],
)
def test_the_range_of_service_addresses_reaches_machines(cidr: str, address: str) -> None:
    there = world(named_pool())
    there.cloud.service_cidr = cidr
    assert node_config(text_of(bought(there)))["spec"]["cluster"]["cidr"] == cidr
    rocket = changed_class(amiSelectorTerms=[{"alias": "bottlerocket@latest"}])
    other = world(named_pool(), rocket)
    other.cloud.service_cidr = cidr
    assert settings(text_of(bought(other)))["cluster-dns-ip"] == [address]


def shape(**spec: Any) -> str:
    return shape_hash(decode_node_pool(node_pool(), {"nodes": changed_class(**spec)}))


def test_each_field_that_shapes_machines_changes_their_shape() -> None:
    disk = {"deviceName": "/dev/xvda", "ebs": {"volumeSize": "30Gi"}}
    fields: list[dict[str, Any]] = [
        {},
        {"instanceProfile": "other"},
        {"userData": "#!/bin/sh\nls\n"},
        {"tags": {"key": "value"}},
        {"metadataOptions": {"httpEndpoint": "disabled"}},
        {"blockDeviceMappings": [disk]},
        {"context": "other"},
        {"detailedMonitoring": True},
        {"associatePublicIPAddress": True},
        {"instanceStorePolicy": "RAID0"},
        {"kubelet": {"maxPods": 9}},
        {"amiSelectorTerms": [{"alias": "bottlerocket@latest"}]},
    ]
    assert len({shape(**field) for field in fields}) == len(fields)
    other = {"deviceName": "/dev/xvdb", "ebs": {"volumeSize": "40Gi"}}
    assert shape(blockDeviceMappings=[disk, other]) == shape(blockDeviceMappings=[other, disk])
    tags = {"a": "1", "b": "2"}
    assert shape(tags=tags) == shape(tags=dict(reversed(tags.items())))
    only_chosen = {
        "subnetSelectorTerms": [{"id": "subnet-7"}],
        "securityGroupSelectorTerms": [{"id": "sg-7"}],
    }
    assert shape(**only_chosen) == shape()
