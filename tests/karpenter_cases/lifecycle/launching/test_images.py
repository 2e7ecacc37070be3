"""Which images machines boot."""

from typing import Any

import pytest

from shared.instance_types.overhead import EVICTION_MEMORY_MIB, kube_reserved_memory_mib
from shared.manifests.api.selector_map import selector_of
from shared.manifests.custom_resources.provisioners import decode_provisioner
from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType, Overhead
from shared.model.resources import Resources
from shared.planning.rules.provisioner_offerings import as_configured
from tests.builders import CATALOG, GIB, needs, pod
from tests.fakes.images import image_named
from tests.karpenter_cases.lifecycle.births import (
    ACCELERATED,
    ANY_TYPE,
    bought,
    data_of,
    image,
    is_bound,
    launched,
    only_data,
    provisioner,
    tagged,
    world,
)
from tests.unit.manifests.documents import template
from tests.unit.nodes.launch.test_launch_request import AMD
from tests.unit.worlds import World

SELECTED = {"team": "red"}
LARGE = image("ami-123", team="red")
LARGER = image("ami-456", days=-5, team="red")


def choosing(*images: Any, **selector: str) -> World:
    """Return a world whose template chooses among these images."""
    there = world(provisioner(requirements=[ANY_TYPE]), template(amiSelector=selector or SELECTED))
    there.cloud.images = images
    return there


def image_ids(there: World) -> list[str]:
    return sorted(entry["ImageId"] for entry in data_of(there))


def test_a_selector_chooses_the_image() -> None:
    assert image_ids(bought(choosing(LARGE, image("ami-0")))) == ["ami-123"]


def test_images_are_chosen_by_their_ids() -> None:
    images = (
        tagged(LARGE, **{keys.INSTANCE_TYPE: "m5.large"}),
        tagged(LARGER, **{keys.INSTANCE_TYPE: "m5.xlarge"}),
    )
    there = choosing(*images, **{"aws-ids": "ami-123,ami-456"})
    bought(there, pod("a"))
    bought(there, pod("b", node_selector=needs(keys.INSTANCE_TYPE, "In", "m5.xlarge")))
    assert image_ids(there) == ["ami-123", "ami-456"]
    assert selector_of({"aws-ids": "ami-123,ami-456"}) in there.cloud.called("find_images")


def test_images_for_other_machines_have_other_templates() -> None:
    images = (
        tagged(LARGE, **{keys.INSTANCE_TYPE: "m5.large"}),
        tagged(LARGER, **{keys.INSTANCE_TYPE: "m5.xlarge"}),
    )
    there = choosing(*images)
    # Either machine would do for one pod of the group.
    bought(there, pod("a", cpu=1900))
    bought(there, pod("b", cpu=3900))
    assert image_ids(there) == ["ami-123", "ami-456"]


def test_the_newest_image_that_fits_is_taken() -> None:
    images = (
        image("ami-123", team="red"),
        image("ami-456", days=1, team="red"),
        image("ami-789", "arm64", days=2, team="red"),
    )
    there = choosing(*images)
    bought(there, pod("a", node_selector=needs(keys.ARCH, "In", "amd64")))
    assert image_ids(there) == ["ami-456"]


def test_where_no_image_is_found_nothing_is_bought() -> None:
    there = bought(choosing(image("ami-1")))
    assert not is_bound(there, "a")
    assert there.cloud.templates == {}
    assert "amiSelector finds none" in there.messages("FailedProvisioning")[0]


def test_where_no_machine_boots_the_image_nothing_is_bought() -> None:
    there = bought(choosing(tagged(LARGE, **{keys.OS: "another"})))
    assert not is_bound(there, "a")
    assert there.cloud.templates == {}


def test_without_selector_the_recommended_image_is_taken() -> None:
    there = launched()
    assert only_data(there)["ImageId"] == image_named(AMD)


# --- what a machine of the image has


def overhead_mib(family: str, **kubelet: Any) -> int:
    """Return the memory kept from pods on an m5.xlarge, which has 58 pods by its interfaces."""
    more: dict[str, Any] = {"kubeletConfiguration": kubelet} if kubelet else {}
    raw = provisioner(provider={"amiFamily": family}, **more)
    machine = InstanceType(
        name="m5.xlarge",
        labels={},
        capacity=Resources.of(cpu=4000, memory=16 * GIB, pods=58),
        overhead=Overhead(
            kube_reserved=Resources.of(memory=kube_reserved_memory_mib(58) * 2**20),
            eviction_threshold=Resources.of(memory=EVICTION_MEMORY_MIB * 2**20),
        ),
        offerings=(),
    )
    return as_configured(decode_provisioner(raw), machine).overhead.total["memory"] // 2**20


@pytest.mark.parametrize(
    ("family", "most", "expected"),
    [
        ("AL2", None, 993),
        ("AL2", 110, 993),
        ("Bottlerocket", None, 993),
        ("Bottlerocket", 110, 1565),
    ],
    ids=["al2", "al2-110", "rocket", "rocket-110"],
)
def test_memory_for_the_kubelet_follows_what_the_image_does(
    family: str, most: int | None, expected: int
) -> None:
    kubelet = {} if most is None else {"maxPods": most}
    assert overhead_mib(family, **kubelet) == expected


def test_accelerators_boot_an_image_with_their_driver() -> None:
    there = world(provisioner(requirements=[ANY_TYPE]), types=(*CATALOG, *ACCELERATED))
    bought(there, pod("a", extra={"nvidia.com/gpu": 1}))
    assert only_data(there)["ImageId"] == image_named(AMD.replace("standard", "nvidia"))
