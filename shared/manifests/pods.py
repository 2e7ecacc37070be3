"""Pods and pod templates."""

import hashlib
import marshal
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from shared.manifests import affinity as terms
from shared.manifests.pod_bounds import exceeded_bounds
from shared.manifests.pod_requests import is_sidecar, pod_requests, resize_is_infeasible
from shared.manifests.raw_json import (
    CONTAINERS,
    Raw,
    condition,
    controller_ref,
    integer,
    mapping,
    mappings,
    text,
    text_map,
    timestamp,
)
from shared.manifests.spans import read_go_duration
from shared.manifests.volumes.claims import ephemeral_claims
from shared.model import labels as keys
from shared.model.kubernetes.pods import DEFAULT_SCHEDULER, ControllerRef, Pod, Scheduling
from shared.model.kubernetes.taints import Effect, Toleration
from shared.model.kubernetes.volumes import inline_claim
from shared.model.requirements import Requirements
from shared.model.values import replace

_CACHE_ENTRIES: Final = 20_000
_SPEC_KEYS: Final = (
    "affinity",
    "hostNetwork",
    "nodeSelector",
    "os",
    "overhead",
    "priority",
    "resourceClaims",
    "resources",
    "schedulerName",
    "tolerations",
    "topologySpreadConstraints",
)
_CONTAINER_KEYS: Final = ("name", "ports", "resources", "restartPolicy")


# Digest of what decides placement, labels that its own selectors read, and its claims.
_Key = tuple[bytes, tuple[str, ...], tuple[str, ...]]


class PodDecoder:
    """Decodes raw pods; pods of one workload share one `Scheduling` object.

    What decides placement is a small part of a pod and the same for all pods of a workload, so it
    is decoded once per content hash. Keep one decoder for many pods; its cache is bounded.
    """

    def __init__(self) -> None:
        self._label_keys: dict[bytes, tuple[str, ...]] = {}
        self._by_content: dict[_Key, Scheduling] = {}
        self._shared: dict[Scheduling, Scheduling] = {}
        self._labels: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}

    def decode(self, raw: Raw) -> Pod:
        """Return the pod. A field that cannot be read becomes a refusal, never an exception."""
        metadata, spec, status = (mapping(raw.get(k)) for k in ("metadata", "spec", "status"))
        annotations = text_map(metadata.get("annotations"))
        scheduled = condition(status, "PodScheduled")
        deletion_at = timestamp(metadata.get("deletionTimestamp"))
        grace = integer(spec.get("terminationGracePeriodSeconds"))
        if deletion_at is not None:
            grace = integer(metadata.get("deletionGracePeriodSeconds"))
        return Pod(
            namespace=text(metadata.get("namespace")),
            name=text(metadata.get("name")),
            uid=text(metadata.get("uid")),
            resource_version=text(metadata.get("resourceVersion")),
            labels=self._shared_labels(text_map(metadata.get("labels"))),
            annotations={k: v for k, v in annotations.items() if k in keys.POD_ANNOTATIONS},
            scheduling=self.scheduling(metadata, spec, status),
            node_name=text(spec.get("nodeName")),
            nominated_node=text(status.get("nominatedNodeName")),
            phase=text(status.get("phase")) or "Pending",
            unschedulable=(
                scheduled.get("status") == "False" and scheduled.get("reason") == "Unschedulable"
            ),
            gated=bool(spec.get("schedulingGates")),
            owner=_owner(metadata, spec, annotations),
            created_at=timestamp(metadata.get("creationTimestamp")),
            deletion_at=deletion_at,
            grace_period_seconds=grace,
            ephemeral=ephemeral_claims(
                text(metadata.get("namespace")), text(metadata.get("name")), spec
            ),
            started_at=timestamp(status.get("startTime")),
            kept_for=_kept_for(annotations),
            priority_class=text(spec.get("priorityClassName")),
            ready=condition(status, "Ready").get("status") == "True",
        )

    def scheduling(self, metadata: Raw, spec: Raw, status: Raw) -> Scheduling:
        """Return the scheduling constraints of a pod, the same object for the same content."""
        digest = _digest(_relevant(metadata, spec, status))
        used = self._label_keys.get(digest)
        if used is None:
            used = self._label_keys[digest] = terms.used_label_keys(spec)
        labels = mapping(metadata.get("labels")) if used else {}
        asked = tuple(text(labels.get(value)) for value in used)
        claims = _claims(text(metadata.get("name")), spec)
        known = self._by_content.get((digest, asked, claims))
        if known is None:
            if len(self._by_content) >= _CACHE_ENTRIES:
                self._forget()
            known = self._by_content[digest, asked, claims] = self._read(
                (digest, asked, ()), metadata, spec, status, claims
            )
        return known

    def _read(
        self, bare: _Key, metadata: Raw, spec: Raw, status: Raw, claims: tuple[str, ...]
    ) -> Scheduling:
        """Decode all, or only the claims: each pod of a StatefulSet has its own claims."""
        known = self._by_content.get(bare)
        if known is None:
            read = decode_scheduling(metadata, {**spec, "volumes": None}, status)
            known = self._by_content[bare] = self._shared.setdefault(read, read)
        return replace(known, claims=claims) if claims else known

    def _forget(self) -> None:
        for memory in (self._label_keys, self._by_content, self._shared, self._labels):
            memory.clear()

    def _shared_labels(self, labels: dict[str, str]) -> dict[str, str]:
        if len(self._labels) >= _CACHE_ENTRIES:
            self._labels.clear()
        return self._labels.setdefault(tuple(sorted(labels.items())), labels)


def decode_pod(raw: Raw) -> Pod:
    """Return one raw pod as a value; for many, keep a `PodDecoder`."""
    return PodDecoder().decode(raw)


def decode_scheduling(metadata: Raw, spec: Raw, status: Raw) -> Scheduling:
    """Return the scheduling constraints of a pod, or of the pods of a template.

    Args:
        metadata: Of the pod; affinity, claims and selectors depend on namespace, name and labels.
        spec: Spec of the pod or template.
        status: Status of the pod; empty for a template.
    """
    problems: list[str] = []
    namespace, labels = text(metadata.get("namespace")), text_map(metadata.get("labels"))
    affinity = mapping(spec.get("affinity"))
    requests = pod_requests(spec, status, problems)
    if (system := text(mapping(spec.get("os")).get("name")) or "linux") != "linux":
        # kube-scheduler ignores the field, but the kubelet of a Dovetail node refuses the pod.
        problems.append(f"spec.os.name: {system!r}: only Linux instances are launched")
    if spec.get("resourceClaims"):
        # Only its driver knows which nodes can satisfy a claim.
        problems.append(
            "spec.resourceClaims: claimed devices are not planned for; ask for an extended "
            "resource, such as nvidia.com/gpu"
        )
    host_ports = _host_ports(spec)
    asked = Scheduling(
        requests=requests,
        host_ports=host_ports,
        claims=_claims(text(metadata.get("name")), spec),
        resource_claims=bool(spec.get("resourceClaims")),
        scheduler_name=text(spec.get("schedulerName")) or DEFAULT_SCHEDULER,
        priority=integer(spec.get("priority")) or 0,
    )
    beyond = tuple(exceeded_bounds(spec, host_ports, requests.items))
    if beyond:
        asked = replace(
            asked,
            anti_affinity=terms.bounded_anti_affinity_terms(affinity, namespace, labels, problems),
            beyond=beyond,
        )
    else:
        asked = replace(
            asked,
            node_selector=Requirements.from_labels(text_map(spec.get("nodeSelector"))),
            required_terms=terms.required_node_terms(affinity, problems),
            preferred_nodes=terms.preferred_node_terms(affinity, problems),
            tolerations=_tolerations(spec, problems),
            spreads=terms.topology_spreads(spec, labels, problems),
            affinity=terms.pod_affinity_terms(affinity, "podAffinity", namespace, labels, problems),
            anti_affinity=terms.pod_affinity_terms(
                affinity, "podAntiAffinity", namespace, labels, problems
            ),
        )
    return replace(asked, refusals=tuple(dict.fromkeys((*problems, *beyond))))


def _relevant(metadata: Raw, spec: Raw, status: Raw) -> dict[str, Any]:
    """Return the parts of a pod that `decode_scheduling` reads."""
    found: dict[str, Any] = {key: spec[key] for key in _SPEC_KEYS if spec.get(key)}
    for field in CONTAINERS:
        found[field] = [
            {k: entry[k] for k in _CONTAINER_KEYS if entry.get(k)}
            for entry in mappings(spec.get(field))
        ]
    for field in ("containerStatuses", "initContainerStatuses"):
        found[field] = [
            (entry.get("name"), entry.get("allocatedResources"), mapping(entry.get("resources")))
            for entry in mappings(status.get(field))
            if entry.get("allocatedResources") or entry.get("resources")
        ]
    if resize_is_infeasible(status):
        found["resizeInfeasible"] = True
    if "affinity" in found:
        found["namespace"] = metadata.get("namespace")
    return found


def _digest(content: dict[str, Any]) -> bytes:
    """Return a hash of plain JSON; pods of one workload have their keys in the same order.

    `marshal` writes equal values as equal bytes (version 2 has no references) in a quarter of the
    time of `json`. Values that it cannot write come from YAML, not from an API server.
    """
    try:
        written = marshal.dumps(content, 2)
    except ValueError:
        written = repr(content).encode("utf-8", "backslashreplace")
    return hashlib.blake2b(written, digest_size=16).digest()


def _tolerations(spec: Raw, problems: list[str]) -> tuple[Toleration, ...]:
    found = []
    for n, toleration in enumerate(mappings(spec.get("tolerations"))):
        operator, effect = (
            text(toleration.get("operator")) or "Equal",
            text(toleration.get("effect")),
        )
        if operator not in ("Equal", "Exists"):
            problems.append(f"spec.tolerations[{n}].operator: {operator!r} is not supported")
        elif effect and effect not in tuple(Effect):
            problems.append(f"spec.tolerations[{n}].effect: {effect!r} is unknown")
        else:
            found.append(
                Toleration(
                    key=text(toleration.get("key")),
                    operator=operator,
                    value=text(toleration.get("value")),
                    effect=Effect(effect) if effect else None,
                    seconds=integer(toleration.get("tolerationSeconds")),
                )
            )
    return tuple(found)


def _host_ports(spec: Raw) -> tuple[tuple[str, str, int], ...]:
    containers = [
        *mappings(spec.get("containers")),
        *(
            init_container
            for init_container in mappings(spec.get("initContainers"))
            if is_sidecar(init_container)
        ),
    ]
    shares_host = spec.get("hostNetwork") is True
    found = set()
    for container in containers:
        for port in mappings(container.get("ports")):
            number = integer(port.get("hostPort"))
            if number is None and shares_host:
                number = integer(port.get("containerPort"))
            if number:
                ip = text(port.get("hostIP")) or "0.0.0.0"  # noqa: S104 - means any address
                found.add((ip, text(port.get("protocol")) or "TCP", number))
    return tuple(sorted(found))


def _claims(pod_name: str, spec: Raw) -> tuple[str, ...]:
    found = set()
    for volume in mappings(spec.get("volumes")):
        if name := text(mapping(volume.get("persistentVolumeClaim")).get("claimName")):
            found.add(name)
        elif volume.get("ephemeral") and pod_name:
            found.add(f"{pod_name}-{text(volume.get('name'))}")
        elif volume_id := text(mapping(volume.get("awsElasticBlockStore")).get("volumeID")):
            found.add(inline_claim(volume_id))
    return tuple(sorted(found))


def _owner(metadata: Raw, spec: Raw, annotations: Mapping[str, str]) -> ControllerRef | None:
    owner = controller_ref(metadata)
    if owner is None and keys.MIRROR_POD in annotations:
        # Kubelets before 1.12 created mirror pods without an owner.
        return ControllerRef(kind="Node", name=text(spec.get("nodeName")), uid="", api_version="v1")
    return owner


def _kept_for(annotations: Mapping[str, str]) -> timedelta | None:
    """Return the span above zero in the value of do-not-disrupt, None without one.

    Source: https://karpenter.sh/docs/concepts/disruption/#pod-level-controls and
    https://github.com/kubernetes-sigs/karpenter/blob/v1.12.0/pkg/utils/pod/scheduling.go
    (parseDoNotDisrupt), 2026-11-27.
    """
    written = annotations.get(keys.DO_NOT_DISRUPT)
    if written is None or written == "true":
        return None
    try:
        span = read_go_duration(written)
    except ValueError:
        return None
    return span if span > timedelta(0) else None
