import pytest

from shared.instance_types.ami_families import FAMILIES
from shared.instance_types.apply_settings import (
    apply_disks,
    apply_instance_store,
    apply_kubelet,
    apply_root_volume,
)
from shared.instance_types.catalog import to_instance_type
from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType
from shared.model.ec2.pod_disks import DEVICES
from shared.model.errors import InvalidManifestError
from shared.model.kubernetes.volumes import EBS_DRIVER, attachable
from shared.model.provisioner import BlockDevice, KubeletConfiguration
from shared.model.resources import Resources
from shared.model.values import replace
from tests.unit.instance_types.catalog_rows import flat_row

MIB = 2**20
GIB = 2**30
FLAT = to_instance_type(flat_row())


@pytest.fixture
def m5_large() -> InstanceType:
    row = flat_row(
        overhead={"cpu": "70m", "memory": "1289Mi", "ephemeral-storage": "3221225504"},
        vm_overhead_mib=615,
        kube_reserved={"cpu": "70m", "memory": "574Mi", "ephemeral-storage": "1Gi"},
        eviction_threshold={"memory": "100Mi", "ephemeral-storage": "2147483680"},
    )
    return to_instance_type(row)


def test_without_settings_nothing_changes(m5_large: InstanceType) -> None:
    assert apply_kubelet(m5_large, KubeletConfiguration()) is m5_large
    assert apply_kubelet(m5_large, KubeletConfiguration(cluster_dns=("10.0.0.10",))) is m5_large


def test_max_pods_replaces_the_limit_and_leaves_memory(m5_large: InstanceType) -> None:
    one = apply_kubelet(m5_large, KubeletConfiguration(max_pods=110))
    assert one.allocatable["pods"] == 110
    assert one.allocatable["memory"] == 6903 * MIB


def test_pods_per_core_only_lowers_the_limit(m5_large: InstanceType) -> None:
    limits = [
        apply_kubelet(m5_large, KubeletConfiguration(pods_per_core=n, max_pods=m)).capacity["pods"]
        for n, m in ((5, None), (50, None), (50, 40), (10, 40), (0, 40))
    ]
    assert limits == [10, 29, 40, 20, 40]


def test_reserved_resources_replace_what_they_name(m5_large: InstanceType) -> None:
    settings = KubeletConfiguration(
        kube_reserved=Resources.of(cpu=200), system_reserved=Resources.of(cpu=100, memory=100 * MIB)
    )
    one = apply_kubelet(m5_large, settings)
    assert one.allocatable["cpu"] == 1700
    assert one.allocatable["memory"] == 6803 * MIB
    assert one.overhead.kube_reserved["memory"] == 574 * MIB


def test_a_list_of_cores_takes_the_place_of_cpu_in_both_reservations(
    m5_large: InstanceType,
) -> None:
    settings = KubeletConfiguration(
        reserved_cpus=1,
        kube_reserved=Resources.of(cpu=200, memory=100 * MIB),
        system_reserved=Resources.of(cpu=300, memory=50 * MIB),
    )
    one = apply_kubelet(m5_large, settings).overhead
    assert (one.kube_reserved["cpu"], one.system_reserved["cpu"]) == (0, 1000)
    assert (one.kube_reserved["memory"], one.system_reserved["memory"]) == (100 * MIB, 50 * MIB)


def test_the_larger_of_hard_and_soft_replaces_the_default_threshold(m5_large: InstanceType) -> None:
    settings = KubeletConfiguration(
        eviction_hard={"memory.available": "200Mi", "nodefs.available": "5%", "pid.available": "3"},
        eviction_soft={"memory.available": "5%", "nodefs.available": "1Gi"},
    )
    threshold = apply_kubelet(m5_large, settings).overhead.eviction_threshold
    assert threshold["memory"] == 397_253_023
    assert threshold["ephemeral-storage"] == GIB + 16


def test_all_of_the_memory_switches_the_threshold_off(m5_large: InstanceType) -> None:
    settings = KubeletConfiguration(eviction_hard={"memory.available": "100%"})
    one = apply_kubelet(m5_large, settings)
    assert one.allocatable["memory"] == 7003 * MIB
    assert one.overhead.eviction_threshold["ephemeral-storage"] == 2 * GIB + 32


@pytest.mark.parametrize("text", ["much", "x%", "-5%", "101%", "-1Mi", "1/0%"])
def test_a_wrong_threshold_is_named(m5_large: InstanceType, text: str) -> None:
    settings = KubeletConfiguration(eviction_soft={"memory.available": text})
    with pytest.raises(InvalidManifestError) as caught:
        apply_kubelet(m5_large, settings)
    assert caught.value.field == "spec.kubeletConfiguration.evictionSoft[memory.available]"
    assert caught.value.value == text


def test_a_flat_overhead_is_kept_as_the_least() -> None:
    assert apply_kubelet(FLAT, KubeletConfiguration(max_pods=5)).overhead.total == (
        FLAT.overhead.total
    )
    little = KubeletConfiguration(
        kube_reserved=Resources.of(memory=MIB), system_reserved=Resources.of(cpu=50)
    )
    assert apply_kubelet(FLAT, little).overhead.total == FLAT.overhead.total
    much = KubeletConfiguration(
        kube_reserved=Resources.of(cpu=150),
        system_reserved=Resources.of(cpu=50),
        eviction_hard={"memory.available": "25%"},
    )
    assert apply_kubelet(FLAT, much).overhead.total == Resources.of(cpu=200, memory=2048 * MIB)


def test_a_larger_root_volume_is_more_storage_and_a_larger_threshold(
    m5_large: InstanceType,
) -> None:
    one = apply_root_volume(m5_large, 100)
    assert one.capacity["ephemeral-storage"] == 100 * GIB
    assert one.allocatable["ephemeral-storage"] == 89 * GIB - 160
    assert one.allocatable["memory"] == m5_large.allocatable["memory"]
    assert apply_root_volume(m5_large, 20) == m5_large
    assert apply_root_volume(FLAT, 100).overhead == FLAT.overhead


def test_a_zero_replaces_what_the_ami_would_keep(m5_large: InstanceType) -> None:
    nothing = Resources((("cpu", 0), ("memory", 0)))
    found = apply_kubelet(m5_large, KubeletConfiguration(kube_reserved=nothing))
    assert found.overhead.kube_reserved == Resources.parse({"ephemeral-storage": "1Gi"})
    assert found.allocatable["cpu"] == 2000


def test_the_root_device_is_where_pods_write(m5_large: InstanceType) -> None:
    root = BlockDevice(device_name="/dev/xvda", volume_size_gib=100)
    data = BlockDevice(device_name="/dev/xvdb", volume_size_gib=500)
    for disks in ((root, data), (data, root)):
        found = apply_disks(m5_large, disks)
        assert found.capacity["ephemeral-storage"] == 100 * GIB
        assert found.volume_limit == m5_large.volume_limit - 1
    assert apply_disks(m5_large, ()) is m5_large


def test_the_root_device_stays_the_images_beside_a_data_disk(m5_large: InstanceType) -> None:
    data = BlockDevice(device_name="/dev/sdf", volume_size_gib=500)
    found = apply_disks(m5_large, (data,))
    assert found.capacity["ephemeral-storage"] == 20 * GIB
    assert found.volume_limit == m5_large.volume_limit - 1


def test_further_disks_take_attachments_from_pods(m5_large: InstanceType) -> None:
    ebs = attachable(EBS_DRIVER)
    counted = replace(m5_large, capacity=m5_large.capacity + Resources(((ebs, 25),)))
    disks = [BlockDevice(device_name=f"/dev/{name}") for name in ("xvda", "sdb", "sdc")]
    assert apply_disks(counted, disks).capacity[ebs] == 23
    assert apply_disks(counted, disks * 10).capacity[ebs] == 0


def test_bottlerocket_has_a_disk_of_its_own_for_what_pods_write(m5_large: InstanceType) -> None:
    family = FAMILIES["Bottlerocket"]
    system = BlockDevice(device_name="/dev/xvda", volume_size_gib=8)
    data = BlockDevice(device_name="/dev/xvdb", volume_size_gib=100)
    storage, left = "ephemeral-storage", m5_large.volume_limit
    plain = apply_disks(m5_large, (), family)
    assert (plain.capacity[storage], plain.volume_limit) == (20 * GIB, left - 1)
    found = apply_disks(m5_large, (system,), family)
    assert (found.capacity[storage], found.volume_limit) == (20 * GIB, left - 1)
    for disks in ((data,), (system, data)):
        found = apply_disks(m5_large, disks, family)
        assert (found.capacity[storage], found.volume_limit) == (100 * GIB, left - 1)


def test_pods_write_to_the_last_disk_of_an_image_of_the_users_own(m5_large: InstanceType) -> None:
    disks = [BlockDevice(device_name=f"/dev/sd{n}", volume_size_gib=n) for n in (50, 60)]
    found = apply_disks(m5_large, disks, FAMILIES["Custom"])
    assert found.capacity["ephemeral-storage"] == 60 * GIB
    assert apply_disks(m5_large, (), FAMILIES["Custom"]) is m5_large


def test_some_images_reserve_memory_for_the_pods_that_are_allowed(m5_large: InstanceType) -> None:
    def memory(kubelet: KubeletConfiguration) -> int:
        found = apply_kubelet(m5_large, kubelet, reserves_for_max_pods=True)
        return found.overhead.kube_reserved["memory"] // MIB

    assert memory(KubeletConfiguration(max_pods=10)) == 255 + 110
    assert memory(KubeletConfiguration(cpu_cfs_quota=True)) == 574
    reserved = Resources.of(memory=64 * MIB)
    assert memory(KubeletConfiguration(max_pods=10, kube_reserved=reserved)) == 64


def test_nvme_disks_of_the_instance_are_what_pods_write_to(m5_large: InstanceType) -> None:
    labels = {**m5_large.labels, keys.INSTANCE_LOCAL_NVME: "75"}
    found = apply_instance_store(replace(m5_large, labels=labels))
    assert found.capacity["ephemeral-storage"] == 75 * 10**9
    assert apply_instance_store(m5_large) is m5_large


def test_the_disks_of_each_family_are_known_where_pods_write_is_looked_up() -> None:
    found = {name: [disk.device_name for disk in family.disks] for name, family in FAMILIES.items()}
    assert found == {name: list(devices) for name, devices in DEVICES.items()}
