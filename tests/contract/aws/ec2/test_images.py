"""What an `amiSelector` finds: EC2 and its fake promise alike, and what only EC2 says."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest
from moto.ec2.models import ec2_backends

from shared.aws.ec2.cloud import Ec2Cloud
from shared.aws.session import Session
from shared.manifests.api.selector_map import image_selector_of
from shared.model.ec2.selectors import SelectorTerm
from shared.model.errors import UnauthorizedError
from shared.ports import CloudProvider, MachineImage
from tests.contract.aws.canned import canned
from tests.contract.aws.places import TEMPLATE, Place, fleet_request, tag
from tests.contract.aws.values import CLUSTER
from tests.fakes.clock import FakeClock
from tests.fakes.cloud import FakeCloud

IMAGES = (
    ("nodes-1", "x86_64", {"team": "red", "stage": "prod"}),
    ("nodes-2", "arm64", {"team": "red"}),
    ("other", "x86_64", {"team": "blue"}),
)
ACCOUNT = "123456789012"
KERNEL = {"x86_64": "amd64", "arm64": "arm64"}


class Gallery(NamedTuple):
    """A cloud with three images, and their ids by name."""

    cloud: CloudProvider
    ids: Mapping[str, str]

    def found(self, **selector: str) -> list[str]:
        names = {value: key for key, value in self.ids.items()}
        asked = {
            key.replace("__", "::").replace("_", "-"): value for key, value in selector.items()
        }
        return sorted(
            names[image.image_id] for image in self.cloud.find_images(image_selector_of(asked))
        )


@pytest.fixture(params=["fake", "ec2"])
def gallery(request: pytest.FixtureRequest, clock: FakeClock) -> Gallery:
    if request.param == "fake":
        made = tuple(
            MachineImage(
                image_id=f"ami-{name}",
                name=name,
                architecture=KERNEL[kind],
                created_at=clock.now(),
                tags=tags,
            )
            for name, kind, tags in IMAGES
        )
        ids = {image.name: image.image_id for image in made}
        return Gallery(FakeCloud(cluster=CLUSTER, clock=clock, images=made), ids)
    aws = request.getfixturevalue("aws")
    request.getfixturevalue("place")
    ids = {}
    for name, kind, tags in IMAGES:
        ids[name] = aws.client("ec2").register_image(Name=name)["ImageId"]
        # What the emulator forgets of a registration.
        ec2_backends[ACCOUNT]["us-east-1"].amis[ids[name]].architecture = kind
        tag(aws, ids[name], tags)
    return Gallery(Ec2Cloud(aws, cluster=CLUSTER, role="", clock=clock), ids)


def test_images_are_found_by_tags_ids_names_and_owners(gallery: Gallery) -> None:
    assert gallery.found(team="red") == ["nodes-1", "nodes-2"]
    assert gallery.found(team="red,blue") == ["nodes-1", "nodes-2", "other"]
    assert gallery.found(stage="*") == ["nodes-1"]
    assert gallery.found(team="red", stage="prod") == ["nodes-1"]
    assert gallery.found(aws__name="nodes-*") == ["nodes-1", "nodes-2"]
    assert gallery.found(aws__name="other,nodes-2") == ["nodes-2", "other"]
    assert gallery.found(aws_ids=f"{gallery.ids['other']},ami-00000000") == ["other"]
    assert gallery.found(team="blue", aws__owners="self") == ["other"]
    assert gallery.found(team="green") == []


def test_images_that_any_term_finds_are_found_once(gallery: Gallery) -> None:
    names = {value: key for key, value in gallery.ids.items()}
    either = (*image_selector_of({"stage": "prod"}), *image_selector_of({"team": "red"}))
    found = gallery.cloud.find_images((*either, SelectorTerm(ids=(gallery.ids["other"],))))
    assert sorted(names[image.image_id] for image in found) == ["nodes-1", "nodes-2", "other"]
    assert gallery.cloud.find_images(()) == ()


def test_image_that_a_parameter_holds_is_found(aws: Session, clock: FakeClock) -> None:
    cloud = Ec2Cloud(aws, cluster=CLUSTER, role="", clock=clock)
    aws.client("ssm").put_parameter(Name="/mine/ami", Value="ami-7", Type="String")
    with canned(aws, "ec2", "DescribeImages", {"Images": [row("ami-7")]}) as asked:
        term = SelectorTerm(parameters=("/mine/ami",))
        missing = SelectorTerm(parameters=("/mine/other",))
        (found,) = cloud.find_images((term, missing))
    assert found.image_id == "ami-7"
    assert "'ami-7'" in str(asked[0]["body"])


def test_a_parameter_that_may_not_be_read_is_answered_with_the_remedy(
    aws: Session, clock: FakeClock
) -> None:
    cloud = Ec2Cloud(aws, cluster=CLUSTER, role="", clock=clock)
    remedy = "deploy with image_parameters=<cluster>:<ARN>$"
    with (
        canned(aws, "ssm", "GetParameters", (400, "AccessDeniedException")),
        pytest.raises(UnauthorizedError, match=remedy) as refused,
    ):
        cloud.find_images((SelectorTerm(parameters=("/mine/ami",)),))
    assert refused.value.code == "AccessDeniedException"


def test_an_image_says_for_which_machines_it_is(gallery: Gallery) -> None:
    (one,) = gallery.cloud.find_images(image_selector_of({"stage": "prod"}))
    assert one.name == "nodes-1"
    assert one.architecture == "amd64"
    assert one.tags == {"team": "red", "stage": "prod"}
    assert one.created_at.tzinfo is not None


def row(name: str, kind: str = "x86_64") -> dict[str, str]:
    return {
        "ImageId": name,
        "Name": name,
        "Architecture": kind,
        "CreationDate": "2026-08-01T10:00:00.000Z",
    }


def test_images_no_node_can_boot_are_left_out_and_the_rest_is_sorted(
    aws: Session, clock: FakeClock
) -> None:
    cloud = Ec2Cloud(aws, cluster=CLUSTER, role="", clock=clock)
    answer = {"Images": [row("ami-2"), row("ami-3", "i386"), row("ami-1", "arm64")]}
    with canned(aws, "ec2", "DescribeImages", answer) as asked:
        found = cloud.find_images(image_selector_of({"team": "red"}))
        assert [(image.image_id, image.architecture) for image in found] == [
            ("ami-1", "arm64"),
            ("ami-2", "amd64"),
        ]
        assert found[0].created_at == datetime(2026, 8, 1, 10, tzinfo=UTC)
        assert cloud.find_images(image_selector_of({"team": "red"})) == found
        assert len(asked) == 1
        clock.advance(timedelta(minutes=1))
        cloud.find_images(image_selector_of({"team": "red"}))
        assert len(asked) == 2


def test_an_image_says_whether_it_is_deprecated(aws: Session, clock: FakeClock) -> None:
    cloud = Ec2Cloud(aws, cluster=CLUSTER, role="", clock=clock)
    at = {"old": "2025-12-31T23:59:00.000Z", "later": "2026-01-01T00:01:00.000Z"}
    rows = [row("ami-1"), *({**row(name), "DeprecationTime": end} for name, end in at.items())]
    with canned(aws, "ec2", "DescribeImages", {"Images": rows}) as asked:
        found = cloud.find_images(image_selector_of({"team": "red"}))
    assert {image.image_id for image in found if image.deprecated} == {"old"}
    assert "'IncludeDeprecated': 'true'" in str(asked[0]["body"])


def test_strangers_images_are_only_taken_when_they_are_named(
    aws: Session, clock: FakeClock
) -> None:
    cloud = Ec2Cloud(aws, cluster=CLUSTER, role="", clock=clock)
    none: dict[str, list[str]] = {"Images": []}
    with canned(aws, "ec2", "DescribeImages", none, none, none) as asked:
        cloud.find_images(image_selector_of({"team": "red"}))
        cloud.find_images(image_selector_of({"aws-ids": "ami-1"}))
        cloud.find_images(
            image_selector_of({"aws::owners": "123456789012,self", "aws::name": "x*"})
        )
    texts = [str(entry["body"]) for entry in asked]
    assert ["'Owner.1': 'amazon'" in text for text in texts] == [True, False, False]
    assert "'Owner.1': '123456789012'" in texts[2]
    assert all("'available'" in text for text in texts)


def test_once_machines_are_launched_addresses_are_looked_up_anew(
    aws: Session, place: Place, clock: FakeClock
) -> None:
    cloud = Ec2Cloud(aws, cluster=CLUSTER, role="", clock=clock)
    cloud.site(TEMPLATE)
    with canned(aws, "ec2", "DescribeSubnets") as looked:
        cloud.site(TEMPLATE)
        assert looked == []
        with canned(aws, "ec2", "CreateFleet", {"FleetId": "f", "Instances": [], "Errors": []}):
            cloud.create_fleet(fleet_request(("m5.large", place.subnets["a"])))
        cloud.site(TEMPLATE)
        assert len(looked) == 1
