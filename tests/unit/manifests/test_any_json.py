"""Whatever the API server sends: decoding ends, and one strange object hides no other."""

import contextlib
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from functions.forwarder.views import view_node, view_pod, view_provisioner
from shared.manifests.admission import Admission
from shared.manifests.custom_resources.provisioners import decode_provisioner
from shared.manifests.daemonsets import decode_daemonset
from shared.manifests.nodes import decode_node
from shared.manifests.pods import decode_pod
from shared.manifests.problems import InvalidProvisionerError
from shared.manifests.raw_json import mapping
from shared.manifests.volumes.claims import decode_claim
from shared.manifests.volumes.storage_objects import (
    decode_attachment,
    decode_csi_node,
    decode_storage_class,
    decode_volume,
)

WORDS = [
    "metadata",
    "spec",
    "status",
    "name",
    "uid",
    "labels",
    "annotations",
    "ownerReferences",
    "controller",
    "kind",
    "template",
    "containers",
    "initContainers",
    "resources",
    "requests",
    "limits",
    "cpu",
    "memory",
    "overhead",
    "restartPolicy",
    "ports",
    "hostPort",
    "containerPort",
    "hostNetwork",
    "affinity",
    "nodeAffinity",
    "podAffinity",
    "podAntiAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
    "matchExpressions",
    "matchFields",
    "key",
    "operator",
    "values",
    "weight",
    "preference",
    "podAffinityTerm",
    "labelSelector",
    "matchLabels",
    "namespaces",
    "namespaceSelector",
    "topologyKey",
    "topologySpreadConstraints",
    "whenUnsatisfiable",
    "maxSkew",
    "matchLabelKeys",
    "mismatchLabelKeys",
    "tolerations",
    "effect",
    "tolerationSeconds",
    "volumes",
    "persistentVolumeClaim",
    "claimName",
    "ephemeral",
    "nodeSelector",
    "conditions",
    "type",
    "containerStatuses",
    "allocatedResources",
    "taints",
    "allocatable",
    "requirements",
    "startupTaints",
    "kubeletConfiguration",
    "provider",
    "limits",
    "ttlSecondsAfterEmpty",
    "evictionHard",
    "evictionSoft",
    "evictionSoftGracePeriod",
    "subnetSelector",
    "tags",
    "metadataOptions",
    "blockDeviceMappings",
    "deviceName",
    "ebs",
    "volumeSize",
    "consolidation",
    "enabled",
    "maxPods",
    "volumes",
    "ephemeral",
    "volumeClaimTemplate",
    "accessModes",
    "storageClassName",
    "required",
    "allowedTopologies",
    "drivers",
    "allocatable",
    "runtimeClassName",
    "scheduling",
    "podFixed",
    "clusterDNS",
]
VALUES = ["", "In", "Exists", "Gt", "Equal", "NoSchedule", "1", "-1", "1GiB", "5%", "True", "Ready"]

STORAGE: tuple[Callable[[dict[str, Any]], object], ...] = (
    decode_claim,
    decode_volume,
    decode_storage_class,
    decode_csi_node,
    decode_attachment,
)

leaf = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=True),
    st.sampled_from(VALUES),
    st.text(max_size=8),
)
json = st.recursive(
    leaf,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.sampled_from(WORDS), st.text(max_size=4)), inner, max_size=5),
    ),
    max_leaves=30,
)
# Mostly the right shape with anything inside: that is where mistakes hide.
shaped = st.fixed_dictionaries(
    {},
    optional={
        key: st.one_of(json, st.dictionaries(st.sampled_from(WORDS), json, max_size=8))
        for key in ("metadata", "spec", "status", "allowedTopologies", "overhead", "scheduling")
    },
)


@given(shaped)
def test_any_object_is_decoded(raw: dict[str, Any]) -> None:
    decode_pod(raw)
    decode_node(raw)
    decode_daemonset(raw)
    for decode in STORAGE:
        decode(raw)
    admission = Admission(runtimes={"": raw, "In": raw}, limit_ranges={"": (raw,)})
    admission.admit("", mapping(raw.get("spec")))
    view_pod(raw)
    view_node(raw)
    view_provisioner(raw)


@given(shaped)
def test_any_provisioner_is_read_or_refused_with_reasons(raw: dict[str, Any]) -> None:
    with contextlib.suppress(InvalidProvisionerError):
        decode_provisioner(raw)
