from typing import Any

import pytest

from shared.instance_types.branch_interfaces import POD_INTERFACE, branch_interfaces_of
from shared.instance_types.catalog import to_instance_type
from shared.instance_types.document import TypeRow
from shared.instance_types.ebs_volumes import DEFAULT_EBS_VOLUME_LIMIT, ebs_volume_limit
from shared.instance_types.instance_setup import InstanceSetup
from shared.instance_types.pod_addresses import PodNetwork, eni_limited_pods
from tests.unit.instance_types import catalog_rows as rows
from tests.unit.instance_types.catalog_rows import fact, flat_row, gpus

PREFIXES = PodNetwork(prefix_delegation=True)


def ebs(limit: int, kind: str = "shared") -> dict[str, Any]:
    return {"EbsInfo": {"MaximumEbsAttachments": limit, "AttachmentLimitType": kind}}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (ebs(27), 25),
        (ebs(32, "dedicated"), 31),
        (ebs(40) | {"Hypervisor": "xen"}, 39),
        (ebs(1), 0),
        ({}, 25),
        ({"Hypervisor": "xen"}, 38),
        ({"Hypervisor": None, "BareMetal": True}, 29),
        ({"GpuInfo": gpus("T4", "NVIDIA", 4)}, 21),
        (
            {"InstanceStorageInfo": {"NvmeSupport": "required", "Disks": [{"Count": 2}]}},
            23,
        ),
        ({"InstanceStorageInfo": {"NvmeSupport": "unsupported", "Disks": [{"Count": 2}]}}, 25),
        ({"InferenceAcceleratorInfo": {"Accelerators": [{"Count": 1}]}}, 24),
    ],
)
def test_volumes_share_attachments_with_what_else_is_attached(
    more: dict[str, Any], expected: int
) -> None:
    assert ebs_volume_limit(fact(**more)) == expected


def branches(told: dict[str, Any]) -> int:
    return branch_interfaces_of(rows.row_of(told, InstanceSetup()))


@pytest.mark.parametrize(
    ("name", "own", "expected"),
    [
        ("c6g.medium", 2, 4),
        ("m5.large", 3, 9),
        ("m5.xlarge", 4, 18),
        ("m5.2xlarge", 4, 38),
        ("i3en.3xlarge", 4, 38),
        ("m5.4xlarge", 8, 54),
        ("c5.12xlarge", 8, 54),
        ("m5.16xlarge", 15, 107),
        ("c8gn.48xlarge", 24, 98),
        ("p4d.24xlarge", 60, 62),
        ("m6g.metal", 15, 107),
        ("i7i.metal-24xl", 15, 107),
        ("c8g-flex.large", 3, 3),
        ("c8g-flex.16xlarge", 15, 47),
    ],
)
def test_pods_get_the_interfaces_that_a_machine_has_beyond_its_own(
    name: str, own: int, expected: int
) -> None:
    assert branches(fact(name, interfaces=own)) == expected


@pytest.mark.parametrize(
    ("name", "own", "expected"),
    [
        ("a1.medium", 2, 10),
        ("g5.xlarge", 4, 4),
        ("g4dn.xlarge", 3, 39),
        ("i4i.large", 3, 0),
        ("i4i.xlarge", 4, 6),
        ("z1d.large", 3, 13),
        ("u-3tb1.56xlarge", 8, 6),
        ("g7e.2xlarge", 4, 120),
    ],
)
def test_a_machine_that_is_known_to_have_another_number_has_it(
    name: str, own: int, expected: int
) -> None:
    assert branches(fact(name, interfaces=own)) == expected


@pytest.mark.parametrize(
    "name", ["t3.large", "mac2-m2.metal", "hpc7a.96xlarge", "trn2.48xlarge", "x9.nano"]
)
def test_a_machine_without_a_trunk_has_none_for_pods(name: str) -> None:
    assert branches(fact(name)) == 0


def test_a_machine_that_is_not_of_the_nitro_system_has_none_for_pods() -> None:
    assert branches(fact("m5.large", Hypervisor="xen")) == 0


def row_of(network: PodNetwork, **more: Any) -> TypeRow:
    return rows.row_of(fact(**more), InstanceSetup(network=network))


def test_the_catalogue_names_what_is_not_usual() -> None:
    assert "ebs_volumes" not in row_of(PodNetwork(), **ebs(27))
    assert row_of(PodNetwork(), **ebs(32, "dedicated"))["ebs_volumes"] == 31
    assert "extended" not in row_of(PodNetwork())
    with_interfaces = row_of(PodNetwork(pod_interfaces=True))
    assert with_interfaces["extended"] == {POD_INTERFACE: 9}
    read = to_instance_type(with_interfaces)
    assert (read.capacity[POD_INTERFACE], read.volume_limit) == (9, DEFAULT_EBS_VOLUME_LIMIT)


def test_any_resource_that_a_row_names_is_one_of_its_machines() -> None:
    found = to_instance_type(flat_row(extended={"example.com/fpga": 2}, ebs_volumes=3))
    assert found.allocatable["example.com/fpga"] == 2
    assert found.volume_limit == 3


def test_prefixes_give_a_node_more_pods_but_the_kubelet_no_more_memory() -> None:
    row = row_of(PREFIXES)
    assert row["max_pods"] == 110
    assert row["labels"]["karpenter.k8s.aws/instance-pods"] == "110"
    assert row["overhead"] == row_of(PodNetwork())["overhead"]


def test_catalogue_says_which_pod_limit_an_image_would_compute() -> None:
    assert to_instance_type(row_of(PREFIXES)).image_max_pods == 29
    assert to_instance_type(row_of(PodNetwork(reserved_interfaces=1))).image_max_pods == 29
    assert to_instance_type(row_of(PodNetwork())).image_max_pods is None


@pytest.mark.parametrize(
    ("network", "vcpus", "nitro", "expected"),
    [
        (PREFIXES, 2, True, 110),
        (PREFIXES, 48, True, 250),
        (PREFIXES, 2, False, 29),
        (PodNetwork(reserved_interfaces=1), 2, True, 20),
        (PodNetwork(reserved_interfaces=5), 2, True, 0),
        (PodNetwork(density_limited=False), 2, True, 110),
    ],
)
def test_the_cni_of_the_cluster_decides_how_many_pods_have_addresses(
    network: PodNetwork, vcpus: int, *, nitro: bool, expected: int
) -> None:
    assert eni_limited_pods(3, 10, network, vcpus=vcpus, nitro=nitro) == expected


def test_few_prefixes_are_fewer_pods_than_the_recommendation() -> None:
    assert eni_limited_pods(2, 4, PREFIXES, vcpus=1) == 98
