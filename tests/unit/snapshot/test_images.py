"""Which image boots."""

from datetime import UTC, datetime, timedelta

import pytest

from shared.manifests.api.selector_map import image_selector_of
from shared.model import labels as keys
from shared.model.dialect import V1
from shared.model.ec2.image_table import ImageTable
from shared.model.errors import PermanentError
from shared.model.provisioner import NodeTemplate
from shared.model.values import replace
from shared.ports import MachineImage
from shared.snapshot.images import (
    resolve_images,
    selected_images,
)
from tests.builders import CATALOG, instance_type
from tests.fakes.cloud import FakeCloud
from tests.unit.nodes.launch.test_launch_request import AMD, ARM

BORN = datetime(2026, 8, 1, tzinfo=UTC)
IMAGE = MachineImage(
    image_id="ami-1", name="nodes-1", architecture="amd64", created_at=BORN, tags={"team": "red"}
)
ARM_IMAGE = replace(IMAGE, image_id="ami-2", name="nodes-arm", architecture="arm64")
NEWER = replace(IMAGE, image_id="ami-0", created_at=BORN + timedelta(days=1))
SELECTED = NodeTemplate(ami_family="Custom", ami_selector=image_selector_of({"team": "red"}))


def test_images_are_asked_for_once_each() -> None:
    cloud = FakeCloud()
    table = resolve_images(cloud, NodeTemplate(), "1.33", CATALOG)
    assert cloud.called("image_ids") == [(ARM, AMD)]
    assert table.of("c6g.large") == table.ids[ARM]
    assert table.of("m5.large") == table.ids[AMD]
    assert table.of("x9.unknown") is None


def test_an_image_that_is_not_published_is_no_image() -> None:
    cloud = FakeCloud(missing_images={ARM})
    assert resolve_images(cloud, NodeTemplate(), "1.33", CATALOG).of("c6g.large") is None


def test_an_unknown_image_family_is_refused_with_what_there_is() -> None:
    with pytest.raises(PermanentError, match="amiFamily: 'Windows2022': use one of AL2023, Bottle"):
        resolve_images(FakeCloud(), NodeTemplate(ami_family="Windows2022"), "1.33", CATALOG)


@pytest.mark.parametrize(
    "template", [NodeTemplate(launch_template="mine"), NodeTemplate(ami_family="Custom")]
)
def test_without_a_recommended_image_none_is_requested(template: NodeTemplate) -> None:
    cloud = FakeCloud()
    assert resolve_images(cloud, template, "1.33", CATALOG) == ImageTable()
    assert cloud.calls == []


def test_of_selected_images_the_newest_of_each_architecture_boots() -> None:
    cloud = FakeCloud(images=(IMAGE, NEWER, ARM_IMAGE, replace(IMAGE, image_id="ami-9", tags={})))
    table = resolve_images(cloud, SELECTED, "1.33", CATALOG)
    assert table.of("m5.large") == "ami-0"
    assert table.of("c6g.large") == "ami-2"
    assert table.ids == {"selected:amd64": "ami-0", "selected:arm64": "ami-2"}


def test_an_image_with_labels_in_its_tags_is_for_machines_that_answer_them() -> None:
    large = replace(IMAGE, tags={keys.INSTANCE_TYPE: "m5.large", keys.PROVISIONER_NAME: "x"})
    table = selected_images((large,), CATALOG)
    assert table.of("m5.large") == "ami-1"
    assert table.of("m5.2xlarge") is None
    assert list(table.ids) == [f"selected:amd64,{keys.INSTANCE_TYPE}=m5.large"]


def test_tags_of_images_say_nothing_of_the_machines_of_a_node_pool() -> None:
    cloud = FakeCloud(images=(replace(IMAGE, tags={"team": "red", keys.OS: "Linux"}),))
    assert resolve_images(cloud, SELECTED, "1.33", CATALOG).ids == {}
    assert resolve_images(cloud, SELECTED, "1.33", CATALOG, V1).of("m5.large") == "ami-1"


def test_there_is_no_image_where_bottlerocket_has_no_driver() -> None:
    types = [
        instance_type(name, extra={"nvidia.com/gpu": 1}) for name in ("g6.xlarge", "g7.2xlarge")
    ]
    table = resolve_images(FakeCloud(), NodeTemplate(ami_family="Bottlerocket"), "1.33", types)
    assert list(table.kinds) == ["g6.xlarge"]


def test_an_image_no_machine_can_boot_is_not_in_the_table() -> None:
    assert selected_images((replace(ARM_IMAGE, tags={keys.OS: "windows"}),), CATALOG).ids == {}


def test_an_older_image_can_be_taken_for_some_machines() -> None:
    table = selected_images((IMAGE, NEWER, ARM_IMAGE), CATALOG)
    assert table.of("m5.large") == "ami-0"
    held = table.with_ids({"selected:amd64": "ami-old", "selected:other": "ami-x"})
    assert held.of("m5.large") == "ami-old"
    assert held.of("c6g.large") == "ami-2"
    assert "selected:other" not in held.ids


def test_an_image_of_another_family_can_be_booted() -> None:
    cloud = FakeCloud()
    template = NodeTemplate(ami_family="Custom", image_family="AL2023", image_version="v20260120")
    table = resolve_images(cloud, template, "1.33", CATALOG)
    asked = table.kinds["m5.large"]
    assert "/amazon-eks-node-al2023-x86_64-standard-1.33-v20260120/" in asked


def test_types_without_an_image_are_known_once_there_is_an_image() -> None:
    assert selected_images((IMAGE,), CATALOG).lacks(CATALOG) == {"c6g.large"}
    assert selected_images((IMAGE, ARM_IMAGE), CATALOG).lacks(CATALOG) == frozenset()
    assert ImageTable().lacks(CATALOG) == frozenset()
