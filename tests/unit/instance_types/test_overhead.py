from hypothesis import given
from hypothesis import strategies as st

from shared.instance_types import overhead
from shared.instance_types import pod_addresses as network

GIB = 2**30


def test_m5_large_keeps_what_eks_publishes() -> None:
    memory = 8192 - overhead.vm_overhead_mib(8192, "amd64")
    pods = network.eni_limited_pods(3, 10)
    assert memory == 7577
    assert pods == 29
    assert 2000 - overhead.kube_reserved_cpu_millis(2) == 1930
    left = memory - overhead.kube_reserved_memory_mib(pods) - overhead.EVICTION_MEMORY_MIB
    assert left == 6903


def test_cpu_is_kept_in_four_steps() -> None:
    kept = {n: overhead.kube_reserved_cpu_millis(n) for n in (0, 1, 2, 3, 4, 5, 8, 16, 48, 96)}
    assert kept == {0: 0, 1: 60, 2: 70, 3: 75, 4: 80, 5: 83, 8: 90, 16: 110, 48: 190, 96: 310}


def test_arm64_loses_64_mib_before_the_share() -> None:
    assert overhead.vm_overhead_mib(8192, "arm64") == 64 + 610
    assert overhead.vm_overhead_mib(8192, "amd64") == 615


def test_a_machine_without_secondary_addresses_runs_host_network_pods_only() -> None:
    assert network.eni_limited_pods(4, 1) == 2
    assert network.eni_limited_pods(4, 0) == 0


def test_a_tenth_of_the_root_volume_stays_free() -> None:
    # 32 bytes more: the share of a kubelet is a 32-bit number.
    assert overhead.eviction_storage_bytes(20 * GIB) == 2 * GIB + 32
    assert overhead.eviction_storage_bytes(1) == 0


@given(st.integers(0, 1000))
def test_more_vcpus_never_leave_less_cpu(vcpus: int) -> None:
    kept = [overhead.kube_reserved_cpu_millis(n) for n in (vcpus, vcpus + 1)]
    assert 0 <= kept[1] - kept[0] <= 60


@given(st.integers(64, 2**26), st.sampled_from(["amd64", "arm64"]))
def test_the_memory_share_is_rounded_against_us(memory_mib: int, arch: str) -> None:
    kept = overhead.vm_overhead_mib(memory_mib, arch)
    extra = 64 if arch == "arm64" else 0
    assert 0 <= (kept - extra) * 1000 - (memory_mib - extra) * 75 < 1000
