"""EBS volumes of a trace: made where the first pod of a claim goes, and never moved."""

from collections.abc import Mapping
from typing import Any, Final

from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from tests.weeks.workloads import claim_of

Raw = Mapping[str, Any]
_CLASS: Final = "gp3"
STORAGE_CLASS: Final[Raw] = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": _CLASS, "uid": "uid-gp3"},
    "provisioner": "ebs.csi.aws.com",
    "volumeBindingMode": "WaitForFirstConsumer",
}


class Storage:
    """The claims and volumes of a cluster.

    Attributes:
        claims: By namespace and name.
        volumes: By name.
        log: Each object as it was made or changed, in order.
    """

    def __init__(self) -> None:
        self.claims: dict[tuple[str, str], Raw] = {}
        self.volumes: dict[str, Raw] = {}
        self.log: list[Raw] = [STORAGE_CLASS]

    def claim(self, pod: str) -> bool:
        """Make the claim of a pod; return whether there was none."""
        name = claim_of(pod)
        known = ("default", name) in self.claims
        if not known:
            self._keep_claim(name, "")
        return not known

    def bind(self, pod: str, node: Node) -> bool:
        """Make the volume of a pod's claim where its node is; return whether there was none."""
        name = claim_of(pod)
        claim = self.claims.get(("default", name))
        if claim is None or claim["spec"].get("volumeName"):
            return False
        zone = {"key": keys.ZONE, "operator": "In", "values": [node.labels[keys.ZONE]]}
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"pv-{name}", "uid": f"uid-pv-{name}"},
            "spec": {
                "storageClassName": _CLASS,
                "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": f"vol-{name}"},
                "claimRef": {"namespace": "default", "name": name},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}},
            },
            "status": {"phase": "Bound"},
        }
        self.volumes[f"pv-{name}"] = volume
        self.log.append(volume)
        self._keep_claim(name, f"pv-{name}")
        return True

    def _keep_claim(self, name: str, volume: str) -> None:
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"namespace": "default", "name": name, "uid": f"uid-{name}"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": _CLASS,
                **({"volumeName": volume} if volume else {}),
            },
            "status": {"phase": "Bound" if volume else "Pending"},
        }
        self.claims["default", name] = claim
        self.log.append(claim)
