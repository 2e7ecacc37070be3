"""From an image family to a machine of EC2: parameter, user data, disks, template, fleet."""

import base64
from typing import Any

import pytest

from shared.aws.ec2.cloud import Ec2Cloud
from shared.instance_types.ami_families import FAMILIES
from shared.manifests.api.selector_map import image_selector_of, selector_of
from shared.model import labels as keys
from shared.model.dialect import OwnerKind
from shared.model.ec2.launches import LaunchOption, SlotOwner
from shared.model.provisioner import NodeTemplate, Provisioner
from shared.model.resources import Resources
from shared.nodes.launch.launch_request import LaunchContext, launch_body
from shared.snapshot.images import resolve_images
from shared.snapshot.launch_body import LaunchAttempt, LaunchBody, PromisedSlot
from tests.builders import CATALOG, offering
from tests.fakes.clock import FakeClock

TAGGED = {"karpenter.sh/discovery": "blue"}
SELECTED = {"aws::name": "amazon-eks-node-al2023-*-standard-1.31-*", "aws::owners": "amazon"}


class Clients:
    """A session whose clients all reach the embedded server."""

    def __init__(self, account: Any) -> None:
        self._account = account

    def client(self, service: str, *, role: str = "") -> Any:
        del role
        return self._account.client(service)


@pytest.fixture
def cloud(account: Any, cluster: dict[str, Any]) -> Ec2Cloud:
    session: Any = Clients(account)
    return Ec2Cloud(session, cluster="blue", role="", clock=FakeClock())


def body_of(cloud: Ec2Cloud, template: NodeTemplate, version: str, profile: str) -> LaunchBody:
    options = tuple(
        LaunchOption(
            offering=offering(name, "us-east-1a"),
            price_micros_per_hour=96_000,
            capacity=Resources.of(pods=29),
            allocatable=Resources.of(pods=29),
        )
        for name in ("c6g.large", "m5.large")
    )
    ground = LaunchContext(
        cluster="blue",
        provisioner=Provisioner(name="default", template=template),
        endpoint=cloud.endpoint(),
        site=cloud.site(template),
        images=resolve_images(cloud, template, version, CATALOG),
        profile=profile,
    )
    slot = PromisedSlot(number=0, pods=(), daemon_requests=Resources())
    attempt = LaunchAttempt(
        cluster="blue",
        plan_id="p",
        group=0,
        number=0,
        provisioner="default",
        labels={keys.PROVISIONER_NAME: "default"},
        slots=(slot,),
        options=options,
        stamp={},
        owner=SlotOwner(kind=OwnerKind.PROVISIONER, uid="u"),
    )
    return launch_body(ground, attempt)


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_machine_of_each_family_is_launched_with_its_image_and_disks(
    cloud: Ec2Cloud, account: Any, cluster: dict[str, Any], family: str
) -> None:
    template = NodeTemplate(
        ami_family=family,
        ami_selector=image_selector_of(SELECTED if family == "Custom" else {}),
        subnet_selector=selector_of(TAGGED),
        security_group_selector=selector_of(TAGGED),
        detailed_monitoring=True,
        context="ctx-1",
    )
    body = body_of(cloud, template, "1.32", cluster["instance_profile"])
    # One template for each architecture.
    assert len(body.templates) == 2
    for name, data in body.templates.items():
        cloud.ensure_launch_template(name, data)
    answer = cloud.create_fleet(body.request)
    assert answer.errors == ()
    (launched,) = answer.instances
    (instance,) = cloud.instances([launched.instance_id])
    (image,) = cloud.find_images(selector_of({"aws-ids": instance.image_id}))
    assert image.architecture == "amd64" if instance.offering.instance_type[0] == "m" else "arm64"
    kind = {"AL2023": "al2023", "AL2": "eks-node-", "Custom": "standard-1.31"}
    assert kind.get(family, family.lower()) in image.name
    row = account.ec2.describe_launch_template_versions(
        LaunchTemplateName=min(body.templates), Versions=["$Latest"]
    )["LaunchTemplateVersions"][0]["LaunchTemplateData"]
    assert row["Monitoring"]["Enabled"] is True
    devices = [
        block_device_mapping["DeviceName"]
        for block_device_mapping in row.get("BlockDeviceMappings", ())
    ]
    assert devices == [disk.device_name for disk in FAMILIES[family].disks]
    text = base64.b64decode(row["UserData"]).decode()
    assert ("blue" in text) == (family != "Custom")


@pytest.mark.parametrize("version", ["1.28", "1.30", "1.31", "1.32", "1.33"])
@pytest.mark.parametrize("family", ["AL2023", "Bottlerocket", "Ubuntu"])
def test_every_family_has_images_for_every_version(
    cloud: Ec2Cloud, family: str, version: str
) -> None:
    table = resolve_images(cloud, NodeTemplate(ami_family=family), version, CATALOG)
    assert table.of("m5.large")
    assert table.of("c6g.large")
    assert table.of("m5.large") != table.of("c6g.large")


def test_a_family_that_is_no_longer_made_has_no_images(cloud: Ec2Cloud) -> None:
    table = resolve_images(cloud, NodeTemplate(ami_family="AL2"), "1.33", CATALOG)
    assert table.ids == {}
