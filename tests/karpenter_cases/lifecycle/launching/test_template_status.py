"""The status of an AWSNodeTemplate: what its selectors resolve to."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from shared.disruption.drift import shape_hash
from shared.manifests.api.selector_map import selector_of
from shared.manifests.custom_resources.node_templates import by_name
from shared.manifests.custom_resources.provisioners import decode_provisioner
from shared.model import labels as keys
from shared.model.ec2.selectors import Selector
from shared.model.provisioner import NodeTemplate
from shared.ports import FoundImage, Site, Subnet, TemplateStatus
from tests.builders import CATALOG, ZONES, instance_type
from tests.fakes.images import image_named
from tests.karpenter_cases.lifecycle.births import (
    ANY_TYPE,
    image,
    provisioner,
    tagged,
    world,
)
from tests.unit.manifests.documents import template
from tests.unit.worlds import World, instead

OWN = selector_of({"kubernetes.io/cluster/test": "*"})
SUBNETS = {
    f"test-subnet-{n}": Subnet(subnet_id=f"subnet-test{n}", zone=zone, free_addresses=100)
    for n, zone in enumerate(ZONES, 1)
}
GROUPS = {f"test-security-group-{n}": f"sg-test{n}" for n in (1, 2, 3)}
WITH_GPU = (*CATALOG, instance_type("g4dn.xlarge", extra={"nvidia.com/gpu": 1}))


def chosen(selector: Selector, ids: Mapping[str, str]) -> list[str]:
    """Return the names of what a selector finds among things with a Name and an id."""
    if selector == OWN:
        return list(ids)
    (term,) = selector
    values = (*term.tags.get("Name", ()), *term.ids)
    return [name for name, value in ids.items() if name in values or value in values]


class Account:
    """A world with three subnets, three groups and some images."""

    def __init__(self, types: Iterable[Any] = CATALOG, **spec: Any) -> None:
        self.there: World = world(
            provisioner(requirements=[ANY_TYPE]), template(**spec), types=types
        )
        self.subnets = dict(SUBNETS)
        instead(self.there.cloud, "site", self.site)

    def site(self, asked: NodeTemplate) -> Site:
        ids = {name: subnet.subnet_id for name, subnet in self.subnets.items()}
        return Site(
            subnets=tuple(self.subnets[name] for name in chosen(asked.subnet_selector, ids)),
            security_groups=tuple(
                GROUPS[name] for name in chosen(asked.security_group_selector, GROUPS)
            ),
        )

    def change(self, **spec: Any) -> None:
        self.there.cluster.apply(template(**spec))

    def status(self) -> TemplateStatus:
        self.there.provisioning().report_provisioners()
        return self.there.cluster.template_statuses["nodes"]

    def subnet_ids(self) -> list[str]:
        return [subnet.subnet_id for subnet in self.status().subnets]


def test_all_subnets_are_reported_with_their_zones() -> None:
    found = Account().status().subnets
    assert [(subnet.subnet_id, subnet.zone) for subnet in found] == [
        (f"subnet-test{n}", zone) for n, zone in enumerate(ZONES, 1)
    ]


def test_subnets_are_listed_with_most_free_addresses_first() -> None:
    account = Account()
    account.subnets = {
        f"n{n}": Subnet(subnet_id=f"subnet-test{n}", zone=ZONES[0], free_addresses=free)
        for n, free in ((1, 20), (2, 100), (3, 50))
    }
    assert account.subnet_ids() == ["subnet-test2", "subnet-test3", "subnet-test1"]


SUBNET_CHOICES = [
    ({"Name": "test-subnet-1,test-subnet-2"}, ["subnet-test1", "subnet-test2"]),
    ({"aws-ids": "subnet-test1"}, ["subnet-test1"]),
]


@pytest.mark.parametrize(("selector", "ids"), SUBNET_CHOICES, ids=["tags", "ids"])
def test_chosen_subnets_are_reported(selector: dict[str, str], ids: list[str]) -> None:
    assert Account(subnetSelector=selector).subnet_ids() == ids


@pytest.mark.parametrize(("selector", "ids"), SUBNET_CHOICES, ids=["tags", "ids"])
def test_changed_choice_of_subnets_is_reported(selector: dict[str, str], ids: list[str]) -> None:
    account = Account()
    assert len(account.subnet_ids()) == 3
    account.change(subnetSelector=selector)
    assert account.subnet_ids() == ids


@pytest.mark.parametrize("at", ["first", "later"])
def test_choice_that_finds_no_subnet_is_reported_as_a_problem(at: str) -> None:
    wrong = {"subnetSelector": {"foo": "invalid"}}
    account = Account(**(wrong if at == "first" else {}))
    if at == "later":
        assert account.status().problems == ()
        account.change(**wrong)
    found = account.status()
    assert found.subnets == ()
    assert found.problems == ("subnetSelector finds no subnet with foo=invalid",)


def test_groups_that_are_not_chosen_are_the_clusters() -> None:
    found = Account(subnetSelector={"Name": "test-subnet-1"}).status()
    assert found.problems == ()


def test_all_groups_are_reported() -> None:
    assert Account().status().security_groups == tuple(GROUPS.values())


GROUP_CHOICES = [
    ({"Name": "test-security-group-1,test-security-group-2"}, ("sg-test1", "sg-test2")),
    ({"aws-ids": "sg-test1"}, ("sg-test1",)),
]


@pytest.mark.parametrize(("selector", "ids"), GROUP_CHOICES, ids=["tags", "ids"])
def test_chosen_groups_are_reported(selector: dict[str, str], ids: tuple[str, ...]) -> None:
    assert Account(securityGroupSelector=selector).status().security_groups == ids


@pytest.mark.parametrize(("selector", "ids"), GROUP_CHOICES, ids=["tags", "ids"])
def test_changed_choice_of_groups_is_reported(
    selector: dict[str, str], ids: tuple[str, ...]
) -> None:
    account = Account()
    assert len(account.status().security_groups) == 3
    account.change(securityGroupSelector=selector)
    assert account.status().security_groups == ids


@pytest.mark.parametrize("at", ["first", "later"])
def test_choice_that_finds_no_group_is_reported_as_a_problem(at: str) -> None:
    wrong = {"securityGroupSelector": {"foo": "invalid"}}
    account = Account(**(wrong if at == "first" else {}))
    if at == "later":
        assert account.status().problems == ()
        account.change(**wrong)
    found = account.status()
    assert found.security_groups == ()
    assert found.problems == ("securityGroupSelector finds no security group with foo=invalid",)


# --- images

EKS = "/aws/service/eks/optimized-ami/1.33/amazon-linux-2"
ROCKET = "/aws/service/bottlerocket/aws-k8s-1.33"


def published(account: Account, parameters: Mapping[str, str], *, missing: Iterable[str]) -> None:
    """Let EC2 show the images of these parameters, by architecture."""
    account.there.cloud.missing_images = set(missing)
    account.there.cloud.images = tuple(
        image(image_named(name), architecture)
        for name, architecture in parameters.items()
        if name not in missing
    )


def told(account: Account) -> dict[str, Mapping[str, str]]:
    return {found_image.image_id: found_image.labels for found_image in account.status().images}


def test_recommended_images_are_reported_with_their_machines() -> None:
    account = Account(types=WITH_GPU, amiFamily="AL2")
    names = {
        f"{EKS}/recommended/image_id": "amd64",
        f"{EKS}-arm64/recommended/image_id": "arm64",
        f"{EKS}-gpu/recommended/image_id": "amd64",
    }
    published(account, names, missing=())
    assert told(account) == {
        image_named(name): {keys.ARCH: architecture} for name, architecture in names.items()
    }


def test_images_that_are_not_published_are_left_out() -> None:
    account = Account(types=WITH_GPU, amiFamily="Bottlerocket")
    names = {
        f"{ROCKET}/x86_64/latest/image_id": "amd64",
        f"{ROCKET}/arm64/latest/image_id": "arm64",
    }
    absent = f"{ROCKET}-nvidia/x86_64/latest/image_id"
    published(account, {**names, absent: "amd64"}, missing=[absent])
    assert told(account).keys() == {image_named(name) for name in names}
    assert account.status().problems == ()


def test_of_chosen_images_the_newest_is_reported() -> None:
    account = Account(amiSelector={"foo": "bar"})
    account.there.cloud.images = tuple(image(f"ami-test{n}", days=n, foo="bar") for n in (1, 2, 3))
    assert account.status().images == (
        FoundImage(image_id="ami-test3", name="ami-test3", labels={keys.ARCH: "amd64"}),
    )


def test_labels_in_the_tags_of_an_image_are_reported() -> None:
    account = Account(amiSelector={"foo": "bar"})
    account.there.cloud.images = (tagged(image("ami-4", foo="bar"), **{keys.OS: "linux"}),)
    assert told(account) == {"ami-4": {keys.ARCH: "amd64", keys.OS: "linux"}}


# --- the shape of its nodes


def shape(**spec: Any) -> str:
    return shape_hash(decode_provisioner(provisioner(), by_name([template(**spec)])))


def test_a_field_that_shapes_nodes_makes_another_shape() -> None:
    fields: list[dict[str, Any]] = [
        {},
        {"instanceProfile": "profile-2"},
        {"userData": "#!/bin/sh\nls\n"},
        {"tags": {"key": "value"}},
        {"metadataOptions": {"httpEndpoint": "disabled"}},
        {"blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "30Gi"}}]},
        {"context": "context-2"},
        {"detailedMonitoring": True},
        {"amiFamily": "Bottlerocket"},
    ]
    assert len({shape(**field) for field in fields}) == len(fields)


def test_a_field_that_only_chooses_leaves_the_shape() -> None:
    assert shape() == shape(
        subnetSelector={"aws-ids": "subnet-test1"},
        securityGroupSelector={"aws-ids": "sg-test1"},
        amiSelector={"ami-test-key": "ami-test-value"},
    )
