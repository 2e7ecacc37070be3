"""The resources the simulation watches, and their paths."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Kind:
    """One resource of the API.

    Attributes:
        optional: Whether a server may lack it (a custom resource).
    """

    api: str
    name: str
    plural: str
    namespaced: bool = True
    optional: bool = False

    def path(self, namespace: str = "", name: str = "") -> str:
        root = f"/api/{self.api}" if self.api == "v1" else f"/apis/{self.api}"
        middle = f"/namespaces/{namespace}" if namespace and self.namespaced else ""
        return f"{root}{middle}/{self.plural}" + (f"/{name}" if name else "")

    def path_of(self, obj: Mapping[str, Any]) -> str:
        meta = obj["metadata"]
        return self.path(meta.get("namespace", ""), meta["name"])

    def reference(self, obj: Mapping[str, Any], *more: str) -> dict[str, Any]:
        """Return how others name an object; `more` are further fields of its metadata."""
        meta, named = obj["metadata"], ("name", "namespace", "uid", *more)
        return {
            "apiVersion": self.api,
            "kind": self.name,
            **{key: meta[key] for key in named if key in meta},
        }

    def document(self, metadata: Mapping[str, Any], **parts: Any) -> dict[str, Any]:
        return {"apiVersion": self.api, "kind": self.name, "metadata": dict(metadata), **parts}


NODE: Final = Kind("v1", "Node", "nodes", namespaced=False)
POD: Final = Kind("v1", "Pod", "pods")
NAMESPACE: Final = Kind("v1", "Namespace", "namespaces", namespaced=False)
CLAIM: Final = Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
VOLUME: Final = Kind("v1", "PersistentVolume", "persistentvolumes", namespaced=False)
STORAGE_CLASS: Final = Kind("storage.k8s.io/v1", "StorageClass", "storageclasses", namespaced=False)
CSI_NODE: Final = Kind("storage.k8s.io/v1", "CSINode", "csinodes", namespaced=False)
ATTACHMENT: Final = Kind(
    "storage.k8s.io/v1", "VolumeAttachment", "volumeattachments", namespaced=False
)
LEASE: Final = Kind("coordination.k8s.io/v1", "Lease", "leases")
DEPLOYMENT: Final = Kind("apps/v1", "Deployment", "deployments")
REPLICA_SET: Final = Kind("apps/v1", "ReplicaSet", "replicasets")
DAEMON_SET: Final = Kind("apps/v1", "DaemonSet", "daemonsets")
STATEFUL_SET: Final = Kind("apps/v1", "StatefulSet", "statefulsets")
JOB: Final = Kind("batch/v1", "Job", "jobs")
CRON_JOB: Final = Kind("batch/v1", "CronJob", "cronjobs")
AUTOSCALER: Final = Kind(
    "autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", optional=True
)
SERVICE: Final = Kind("v1", "Service", "services")
ENDPOINTS: Final = Kind("v1", "Endpoints", "endpoints")
ENDPOINT_SLICE: Final = Kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices")
EVENT: Final = Kind("v1", "Event", "events")
BUDGET: Final = Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
PROVISIONER: Final = Kind(
    "karpenter.sh/v1alpha5", "Provisioner", "provisioners", namespaced=False, optional=True
)
NODE_POOL: Final = Kind("karpenter.sh/v1", "NodePool", "nodepools", namespaced=False, optional=True)

OWNERS: Final = (
    DEPLOYMENT,
    REPLICA_SET,
    DAEMON_SET,
    STATEFUL_SET,
    JOB,
    CRON_JOB,
    NODE,
    PROVISIONER,
    NODE_POOL,
)
