"""Label keys of the drawn clusters, written as manifests have them."""

from collections.abc import Mapping
from typing import Final

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
CAPACITY_TYPE: Final = "karpenter.sh/capacity-type"
ARCH: Final = "kubernetes.io/arch"
OS: Final = "kubernetes.io/os"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
PROVISIONER: Final = "karpenter.sh/provisioner-name"
FAMILY: Final = "karpenter.k8s.aws/instance-family"
SIZE: Final = "karpenter.k8s.aws/instance-size"
CPU: Final = "karpenter.k8s.aws/instance-cpu"
CATEGORY: Final = "karpenter.k8s.aws/instance-category"
GENERATION: Final = "karpenter.k8s.aws/instance-generation"
GPUS: Final = "karpenter.k8s.aws/instance-gpu-count"
PAUSED: Final = "dovetail.dev/paused"
RACK: Final = "example.com/rack"
TEAM: Final = "example.com/team"
LEVEL: Final = "example.com/level"
RACKS: Final = ("r1", "r2", "r3")
TEAMS: Final = ("blue", "green", "red")
# What kubelets, the cloud's controller and the volume driver add beside the stable names.
OLDER: Final[dict[str, str]] = {
    "beta.kubernetes.io/arch": ARCH,
    "beta.kubernetes.io/os": OS,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": REGION,
    "topology.ebs.csi.aws.com/zone": ZONE,
}


def with_older(labels: Mapping[str, str]) -> dict[str, str]:
    """Return a node's labels with those of older names, as its kubelet and the cloud add them."""
    return {**labels, **{old: labels[new] for old, new in OLDER.items() if new in labels}}
