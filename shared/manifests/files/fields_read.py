"""Which fields of pods and nodes `shared.manifests` reads.

Source: `shared.manifests.pods`, `pod_requests`, `volumes` and `nodes`.
"""

from typing import Final

METADATA: Final = (
    *("name", "namespace", "uid", "resourceVersion", "labels", "annotations", "ownerReferences"),
    *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "finalizers"),
)
CONDITION: Final = ("type", "status", "reason", "lastTransitionTime")
CONTAINER: Final = ("name", "ports", "resources", "restartPolicy")
CONTAINER_STATUS: Final = ("name", "allocatedResources", "resources")
VOLUME: Final = ("name", "persistentVolumeClaim", "ephemeral", "awsElasticBlockStore")
POD_SPEC: Final = (
    *("affinity", "hostNetwork", "nodeName", "nodeSelector", "os", "overhead", "priority"),
    *("priorityClassName", "resourceClaims", "resources", "schedulerName", "schedulingGates"),
    *("terminationGracePeriodSeconds", "tolerations", "topologySpreadConstraints"),
)
POD_STATUS: Final = ("phase", "nominatedNodeName", "startTime")
NODE_STATUS: Final = ("allocatable", "capacity")
