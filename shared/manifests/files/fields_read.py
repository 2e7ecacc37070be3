"""The fields of pods and nodes that are read, by `shared.manifests` and the forwarder's views."""

from typing import Final

METADATA_FIELDS: Final = (
    *("name", "namespace", "uid", "resourceVersion", "labels", "annotations", "ownerReferences"),
    *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "finalizers"),
)
CONDITION_FIELDS: Final = ("type", "status", "reason", "lastTransitionTime")
CONTAINER_FIELDS: Final = ("name", "ports", "resources", "restartPolicy")
CONTAINER_STATUS_FIELDS: Final = ("name", "allocatedResources", "resources")
VOLUME_FIELDS: Final = ("name", "persistentVolumeClaim", "ephemeral", "awsElasticBlockStore")
POD_SPEC_FIELDS: Final = (
    *("affinity", "hostNetwork", "nodeName", "nodeSelector", "os", "overhead", "priority"),
    *("priorityClassName", "resourceClaims", "resources", "schedulerName", "schedulingGates"),
    *("terminationGracePeriodSeconds", "tolerations", "topologySpreadConstraints"),
)
POD_STATUS_FIELDS: Final = ("phase", "nominatedNodeName", "startTime")
NODE_STATUS_FIELDS: Final = ("allocatable", "capacity")
