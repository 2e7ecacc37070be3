"""What machines of the tests are told."""

from typing import Any

from shared.instance_types.ami_families import BootstrapOptions
from shared.model import labels as keys
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.provisioner import KubeletConfiguration
from shared.model.resources import Resources

BATCH = Taint(key="batch", value="yes", effect=Effect.NO_SCHEDULE)
BATCH_TOO = Taint(key="batch", value="yes", effect=Effect.NO_EXECUTE)
WAIT = Taint(key="cilium", effect=Effect.NO_EXECUTE)
KUBELET = KubeletConfiguration(
    cluster_dns=("10.0.0.10",),
    max_pods=30,
    pods_per_core=4,
    system_reserved=Resources.of(cpu=100),
    kube_reserved=Resources.of(cpu=200, memory=2**28),
    eviction_hard={"nodefs.available": "10%", "memory.available": "5%"},
    eviction_soft={"memory.available": "500Mi"},
    eviction_soft_grace_period={"memory.available": "1m30s"},
    eviction_max_pod_grace_period=60,
    image_gc_high_percent=80,
    image_gc_low_percent=0,
    cpu_cfs_quota=False,
)
PLAIN = KubeletConfiguration()


def joining(kubelet: KubeletConfiguration = PLAIN, **changes: Any) -> BootstrapOptions:
    fields: dict[str, Any] = {
        "cluster": "test",
        "endpoint": "https://test.example",
        "certificate_authority": "Q0E=",
        "service_cidr": "172.20.0.0/16",
        "labels": {"team": "red", keys.PROVISIONER_NAME: "default"},
        "taints": (BATCH,),
        "kubelet": kubelet,
        **changes,
    }
    return BootstrapOptions(**fields)
