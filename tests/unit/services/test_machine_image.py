"""Which image boots and what it is told."""

import pytest

from shared.model import labels as keys
from shared.model.errors import PermanentError
from shared.model.provisioner import KubeletConfiguration
from shared.model.resources import Resources
from shared.model.taints import Effect, Taint
from shared.services.launch_request import image_parameters
from shared.services.machine_image import boot_taints, image_parameter, user_data
from tests.builders import CATALOG, provisioner
from tests.unit.services.test_launch_request import AMD, ARM, ENDPOINT, node_config

BATCH = Taint(key="batch", value="yes", effect=Effect.NO_SCHEDULE)
WAIT = Taint(key="cilium", effect=Effect.NO_EXECUTE)


@pytest.mark.parametrize(
    ("architecture", "capacity", "tail"),
    [
        ("amd64", {}, "x86_64/standard"),
        ("arm64", {}, "arm64/standard"),
        ("amd64", {"nvidia.com/gpu": 1}, "x86_64/nvidia"),
        ("amd64", {"aws.amazon.com/neuron": 1}, "x86_64/neuron"),
    ],
)
def test_accelerators_need_an_image_with_their_driver(
    architecture: str, capacity: dict[str, int], tail: str
) -> None:
    name = image_parameter("AL2023", "1.33", architecture, Resources.from_mapping(capacity))
    assert name.endswith(f"amazon-linux-2023/{tail}/recommended/image_id")


def test_images_are_asked_for_once_each() -> None:
    assert image_parameters(CATALOG, "AL2023", "1.33") == [ARM, AMD]


def test_an_unknown_image_family_is_refused_with_what_there_is() -> None:
    with pytest.raises(PermanentError, match="amiFamily: 'Windows2022': AL2023 is supported"):
        image_parameter("Windows2022", "1.33", "amd64", Resources())


def test_a_node_boots_with_the_taints_of_its_provisioner_and_ours() -> None:
    found = boot_taints(provisioner(taints=(BATCH,), startup_taints=(WAIT,)))
    assert [one.describe() for one in found] == [
        "batch=yes:NoSchedule",
        "cilium:NoExecute",
        "karpenter.sh/not-ready:NoSchedule",
        "node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule",
    ]


def test_user_data_tells_the_machine_how_to_join() -> None:
    kubelet = KubeletConfiguration(
        cluster_dns=("10.0.0.10",),
        max_pods=30,
        pods_per_core=4,
        system_reserved=Resources.of(cpu=100),
        kube_reserved=Resources(),
        eviction_hard={"memory.available": "5%"},
        eviction_soft={"memory.available": "500Mi"},
        eviction_soft_grace_period={"memory.available": "1m30s"},
        eviction_max_pod_grace_period=60,
        image_gc_high_percent=80,
        image_gc_low_percent=0,
        cpu_cfs_quota=False,
    )
    spec = node_config(user_data(ENDPOINT, {}, (BATCH,), kubelet))["spec"]
    assert spec["cluster"] == {
        "name": "test",
        "apiServerEndpoint": "https://test.example",
        "certificateAuthority": "Q0E=",
        "cidr": "172.20.0.0/16",
    }
    assert spec["kubelet"]["config"] == {
        "registerWithTaints": [{"key": "batch", "value": "yes", "effect": "NoSchedule"}],
        "clusterDNS": ["10.0.0.10"],
        "maxPods": 30,
        "podsPerCore": 4,
        "systemReserved": {"cpu": "100m"},
        "kubeReserved": {},
        "evictionHard": {"memory.available": "5%"},
        "evictionSoft": {"memory.available": "500Mi"},
        "evictionSoftGracePeriod": {"memory.available": "1m30s"},
        "evictionMaxPodGracePeriod": 60,
        "imageGCHighThresholdPercent": 80,
        "imageGCLowThresholdPercent": 0,
        "cpuCFSQuota": False,
    }


def test_a_kubelet_is_not_told_labels_it_may_not_give_itself() -> None:
    labels = {
        "team": "red",
        "example.com/x": "1",
        "node.kubernetes.io/role": "web",
        "a.kubelet.kubernetes.io/x": "1",
        keys.ZONE: "z",
        "node-restriction.kubernetes.io/x": "1",
        "kops.k8s.io/instancegroup": "g",
    }
    text = user_data(ENDPOINT, labels, (), KubeletConfiguration())
    (flag,) = node_config(text)["spec"]["kubelet"]["flags"]
    assert flag == (
        "--node-labels=a.kubelet.kubernetes.io/x=1,example.com/x=1,"
        "node.kubernetes.io/role=web,team=red,topology.kubernetes.io/zone=z"
    )
