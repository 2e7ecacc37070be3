"""Finds fields of workloads that Kubernetes does not define: ignoring them can change a plan.

kubectl refuses them when it applies a manifest. A dump of a newer cluster may have fields that are
not known here, so only a name that is similar to a known one is refused; others get a note.

Source: Kubernetes 1.37, as in the models of the Python client 37; a test compares them.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from functions.cli.plan.reading.documents import Document
from functions.cli.plan.reading.workloads import WORKLOADS
from shared.manifests.raw_json import CONTAINERS, Raw, mapping, mappings
from shared.model.nearest import nearest

_NEAR: Final = 0.8
_NAMES: Final = {
    "Container": (
        "args command env envFrom image imagePullPolicy lifecycle livenessProbe name ports "
        "readinessProbe resizePolicy resources restartPolicy restartPolicyRules "
        "securityContext startupProbe stdin stdinOnce terminationMessagePath "
        "terminationMessagePolicy tty volumeDevices volumeMounts workingDir"
    ),
    "CronJob": (
        "concurrencyPolicy failedJobsHistoryLimit jobTemplate schedule startingDeadlineSeconds "
        "successfulJobsHistoryLimit suspend timeZone"
    ),
    "DaemonSet": ("minReadySeconds revisionHistoryLimit selector template updateStrategy"),
    "Deployment": (
        "minReadySeconds paused progressDeadlineSeconds replicas revisionHistoryLimit selector "
        "strategy template"
    ),
    "Job": (
        "activeDeadlineSeconds backoffLimit backoffLimitPerIndex completionMode completions "
        "managedBy manualSelector maxFailedIndexes parallelism podFailurePolicy "
        "podReplacementPolicy scheduling selector successPolicy suspend template "
        "ttlSecondsAfterFinished"
    ),
    "Pod": (
        "activeDeadlineSeconds affinity automountServiceAccountToken containers dnsConfig "
        "dnsPolicy enableServiceLinks ephemeralContainers evictionResponders hostAliases "
        "hostIPC hostNetwork hostPID hostUsers hostname hostnameOverride imagePullSecrets "
        "initContainers nodeName nodeSelector os overhead preemptionPolicy priority "
        "priorityClassName readinessGates resourceClaims resources restartPolicy "
        "runtimeClassName schedulerName schedulingGates schedulingGroup securityContext "
        "serviceAccount serviceAccountName setHostnameAsFQDN shareProcessNamespace subdomain "
        "terminationGracePeriodSeconds tolerations topologySpreadConstraints volumes"
    ),
    "PodTemplate": ("metadata spec"),
    "ReplicaSet": ("minReadySeconds replicas selector template"),
    "ReplicationController": ("minReadySeconds replicas selector template"),
    "Resources": ("claims limits requests"),
    "StatefulSet": (
        "minReadySeconds ordinals persistentVolumeClaimRetentionPolicy podManagementPolicy "
        "replicas revisionHistoryLimit selector serviceName template updateStrategy "
        "volumeClaimTemplates"
    ),
    "Toleration": ("effect key operator tolerationSeconds value"),
    "TopologySpreadConstraint": (
        "labelSelector matchLabelKeys maxSkew minDomains nodeAffinityPolicy nodeTaintsPolicy "
        "topologyKey whenUnsatisfiable"
    ),
}
FIELDS: Final = {kind: frozenset(names.split()) for kind, names in _NAMES.items()}


def check_fields(documents: Iterable[Document]) -> list[str]:
    """Return a note for each unknown field that is similar to no known one.

    Raises:
        InvalidDocumentError: If an unknown field is similar to a known one.
    """
    notes = []
    for document in documents:
        for path, raw, kind in _parts(document):
            known = FIELDS[kind]
            for name in sorted(key for key in raw if key not in known):
                if near := nearest(str(name), known, _NEAR):
                    remedy = f"unknown field; write {near}"
                    raise document.invalid(f"{path}.{name}", None, remedy)
                notes.append(f"{document.where}: {path}.{name}: unknown field, left out")
    return notes


def _parts(document: Document) -> Iterator[tuple[str, Raw, str]]:
    """Yield path, content and kind of each part of a workload whose fields are known."""
    spec = mapping(document.raw.get("spec"))
    if document.kind == "Pod":
        yield from _of_pod("spec", spec)
    elif document.kind == "CronJob":
        yield "spec", spec, "CronJob"
        job = mapping(mapping(spec.get("jobTemplate")).get("spec"))
        yield from _of_workload("spec.jobTemplate.spec", job, "Job")
    elif document.api_version == WORKLOADS.get(document.kind) or document.kind == "DaemonSet":
        yield from _of_workload("spec", spec, document.kind)


def _of_workload(path: str, spec: Raw, kind: str) -> Iterator[tuple[str, Raw, str]]:
    yield path, spec, kind
    template = mapping(spec.get("template"))
    yield f"{path}.template", template, "PodTemplate"
    yield from _of_pod(f"{path}.template.spec", mapping(template.get("spec")))


def _of_pod(path: str, spec: Raw) -> Iterator[tuple[str, Raw, str]]:
    yield path, spec, "Pod"
    for field in CONTAINERS:
        for at, container in _listed(f"{path}.{field}", mappings(spec.get(field))):
            yield at, container, "Container"
            yield f"{at}.resources", mapping(container.get("resources")), "Resources"
    yield from (
        (at, part, "Toleration")
        for at, part in _listed(f"{path}.tolerations", mappings(spec.get("tolerations")))
    )
    spreads = mappings(spec.get("topologySpreadConstraints"))
    for at, part in _listed(f"{path}.topologySpreadConstraints", spreads):
        yield at, part, "TopologySpreadConstraint"


def _listed(path: str, parts: Sequence[Raw]) -> Iterator[tuple[str, Raw]]:
    return ((f"{path}[{number}]", part) for number, part in enumerate(parts))
