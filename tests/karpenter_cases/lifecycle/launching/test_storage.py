"""Disks of machines, and pods that write to them."""

from typing import Any

import pytest

from shared.model.ec2.instance_types import Overhead
from shared.model.resources import Resources
from tests.builders import GIB, MIB, daemonset, instance_type, pod
from tests.karpenter_cases.lifecycle.births import (
    bought,
    image,
    is_bound,
    provisioner,
    storing,
    world,
)
from tests.unit.manifests.documents import template
from tests.unit.worlds import World

# What the image keeps for itself: a GiB, and a tenth of the disk that must stay free.
KEPT = Overhead(
    kube_reserved=Resources.of(cpu=70, memory=300 * MIB) + Resources((("ephemeral-storage", GIB),)),
    eviction_threshold=Resources((("ephemeral-storage", 2 * GIB),)),
)
MACHINES = (
    instance_type(overhead=KEPT),
    instance_type("m5.xlarge", cpu=4000, memory=16 * GIB, price=192_000, overhead=KEPT),
)


def disks(*sizes: str) -> list[dict[str, Any]]:
    return [
        {"deviceName": f"/dev/xvd{letter}", "ebs": {"volumeSize": size}}
        for letter, size in zip("ab", sizes, strict=False)
    ]


def writing(*pods: Any, **of_template: Any) -> World:
    there = world(provisioner(), template(**of_template), types=MACHINES)
    there.cloud.images = (image("ami-1", team="red"),)
    return bought(there, *pods)


def test_daemons_that_write_leave_room_for_pods() -> None:
    there = world(provisioner())
    there.cluster.add(daemonset("d", cpu=1000, extra={"ephemeral-storage": GIB}))
    assert is_bound(bought(there, pod("a")), "a")


@pytest.mark.parametrize("gib", [1, 10])
def test_a_pod_that_writes_has_a_place(gib: int) -> None:
    assert is_bound(writing(storing("a", gib)), "a")


def test_a_pod_that_writes_more_than_a_disk_holds_has_none() -> None:
    assert not is_bound(writing(storing("a", 19)), "a")


def test_pods_that_write_too_much_together_are_apart() -> None:
    there = writing(storing("a", 10), storing("b", 10))
    assert len(set(there.bound.values())) == 2


def test_a_pod_that_fits_is_placed_beside_one_that_does_not() -> None:
    there = writing(storing("a", 10), storing("b", 150))
    assert set(there.bound) == {"a"}


def test_where_no_disk_is_large_enough_nothing_is_bought() -> None:
    assert writing(storing("a", 150)).cloud.fleets == []


def test_a_larger_disk_holds_more() -> None:
    there = writing(storing("a", 25), blockDeviceMappings=disks("50G"))
    assert is_bound(there, "a")


def test_pods_write_to_the_last_disk_of_an_image_of_the_users_own() -> None:
    there = writing(
        storing("a", 25),
        amiFamily="Custom",
        amiSelector={"team": "red"},
        blockDeviceMappings=disks("20G", "40G"),
    )
    assert is_bound(there, "a")
