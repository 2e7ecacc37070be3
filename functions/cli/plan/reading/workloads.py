"""The pods of workloads, as controllers create them and admission completes them.

ReplicaSets, ReplicationControllers, Deployments, StatefulSets, Jobs and CronJobs are those of
Kubernetes. An object of another kind, such as a Rollout, is a workload if it has a pod template
under `spec.template` and a number under `spec.replicas`; its controller is unknown, so its pods
have only what their template says.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from functions.cli.plan.reading.checks import (
    MAX_REPLICAS,
    check_limit_range,
    check_quota,
    check_template,
    checked_metadata,
    raise_first_problem,
    replicas_of,
    required_section,
)
from functions.cli.plan.reading.documents import Document
from functions.cli.plan.reading.quotas import ResourceQuotas
from shared.manifests.admission import admission_of
from shared.manifests.affinity import label_selector
from shared.manifests.controllers import (
    TEMPLATE_HASH,
    PodIdentity,
    Workload,
    missing_identities,
    replaces_at_once,
)
from shared.manifests.pods import PodDecoder
from shared.manifests.problems import Section
from shared.manifests.raw_json import (
    Raw,
    controller_ref,
    integer,
    mapping,
    mappings,
    text,
    text_map,
    timestamp,
)
from shared.manifests.volumes.claims import decode_claim
from shared.model.dollars_and_counts import counted
from shared.model.kubernetes.pods import LabelSelector, Pod
from shared.model.kubernetes.volumes import Claim
from shared.model.values import replace

# (kind, namespace, name) of an object.
Key = tuple[str, str, str]

WORKLOADS: Final = {
    "CronJob": "batch/v1",
    "Deployment": "apps/v1",
    "Job": "batch/v1",
    "ReplicaSet": "apps/v1",
    "ReplicationController": "v1",
    "StatefulSet": "apps/v1",
}
_CRON_JOB: Final = "CronJob"
_CLAIM: Final = "PersistentVolumeClaim"
# Kinds that adopt pods without a controller. A Deployment adopts only through its ReplicaSets.
_ADOPTING: Final = ("Job", "ReplicaSet", "ReplicationController", "StatefulSet")
_RUN: Final = re.compile(r"-\d+$")
_REVISION: Final = "deployment.kubernetes.io/revision"
# By kind that creates ReplicaSets: the label with the hash that ends their names.
_HASHES: Final = {"Deployment": TEMPLATE_HASH, "Rollout": "rollouts-pod-template-hash"}


def key_of(document: Document) -> Key:
    """Return the key of an object among the documents."""
    return document.kind, document.namespace, document.name


def cron_job_of(job: str) -> str:
    """Return the name of the CronJob of a Job, whose name ends in the minute of its run."""
    return _RUN.sub("", job)


def is_workload(document: Document) -> bool:
    """Return whether pods are planned for an object, other than a Pod or a DaemonSet."""
    replicas = mapping(document.raw.get("spec")).get("replicas")
    other = has_other_template(document) and integer(replicas) is not None
    return other or _controller_of(document) is not None


def has_other_template(document: Document) -> bool:
    """Return whether an object of an unknown kind has a pod template."""
    template = mapping(mapping(document.raw.get("spec")).get("template"))
    known = _controller_of(document) or document.api_version == WORKLOADS["Deployment"]
    return not known and bool(mappings(mapping(template.get("spec")).get("containers")))


def _controller_of(document: Document) -> str | None:
    """Return the kind of a workload of Kubernetes, None for other objects."""
    group = WORKLOADS.get(document.kind, "?/").rpartition("/")[0]
    return document.kind if group == document.api_version.rpartition("/")[0] else None


class PodReader:
    """Reads Pods and expands workloads, each pod once.

    A workload whose pods are among the documents, too (as in `kubectl get all`), is expanded only
    by the missing pods; a ReplicaSet counts for its Deployment if that is among the documents. Pods
    that an API server has stored, which have a uid, are not changed; admission completes the
    others. A pod that would be refused has the reason among its `refusals`, so that no node is
    planned for it.

    Attributes:
        notes: After reading, one line for each decision about a workload.
    """

    def __init__(self, documents: Sequence[Document]) -> None:
        self._decoder = PodDecoder()
        self._workloads = {
            key_of(document): document
            for document in documents
            if is_workload(document) and _controller_of(document) != _CRON_JOB
        }
        self._adopting: dict[str, list[tuple[Document, LabelSelector]]] = {}
        for document in self._workloads.values():
            selector = _selector_of(document) if _controller_of(document) in _ADOPTING else None
            if selector is not None:
                self._adopting.setdefault(document.namespace, []).append((document, selector))
        self._pods = [document for document in documents if document.kind == "Pod"]
        self._documents = documents
        self._claims = {
            (document.namespace, document.name) for document in documents if document.kind == _CLAIM
        }
        for document in documents:
            if document.kind == "LimitRange":
                check_limit_range(document)
            elif document.kind == "ResourceQuota":
                check_quota(document)
        self._admission = admission_of(document.with_namespace for document in documents)
        self._quotas = ResourceQuotas(
            document.with_namespace for document in documents if document.kind == "ResourceQuota"
        )
        self._total = 0
        self.notes: list[str] = []

    def read(self) -> tuple[Pod, ...]:
        """Return all pods that are not terminal, sorted by key.

        Raises:
            InvalidDocumentError: For the first wrong field, in the order of the documents.
        """
        found: list[Pod] = []
        present: dict[Key, dict[str, Document]] = {}
        runs: set[Key] = set()
        for document in (*self._workloads.values(), *self._pods):
            runs |= self._run(document)
        for document in self._documents:
            self._count(document)
        for document in self._pods:
            pod = self._pod(document)
            if pod.is_terminal:
                continue
            found.append(pod)
            root = self._root(document) or self._adopter(document, pod)
            if root is not None:
                present.setdefault(root, {})[pod.name] = document
        for document in self._documents:
            if not is_workload(document):
                continue
            if _controller_of(document) == _CRON_JOB:
                found.extend(self._run_of(document, runs))
            elif self._root(document) is None:
                found.extend(self._expanded(document, present.get(key_of(document), {})))
        return tuple(sorted(found, key=lambda entry: (entry.key, entry.uid)))

    def _run(self, document: Document) -> set[Key]:
        """Return the CronJob of a Job, or of a pod's Job, in a set; empty if there is none."""
        owner = controller_ref(mapping(document.raw.get("metadata")))
        if owner is not None and owner.kind == _CRON_JOB:
            return {(_CRON_JOB, document.namespace, owner.name)}
        if owner is not None and owner.kind == "Job":
            return {(_CRON_JOB, document.namespace, cron_job_of(owner.name))}
        return set()

    def _root(self, document: Document) -> Key | None:
        """Return the outermost workload among the documents that controls this object."""
        root = None
        seen: set[Key] = set()
        current: Document | None = document
        while current is not None:
            owner = controller_ref(mapping(current.raw.get("metadata")))
            if owner is None:
                break
            key = (owner.kind, document.namespace, owner.name)
            if key not in self._workloads and owner.kind == "ReplicaSet":
                key = self._owner_of_replica_set(document, owner.name)
            current = None if key in seen else self._workloads.get(key)
            seen.add(key)
            if current is not None:
                root = key
        return root

    def _adopter(self, document: Document, pod: Pod) -> Key | None:
        """Return the outermost workload that adopts a pod without a controller, or None.

        Source: https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/
        #non-template-pod-acquisitions and
        https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/controller/
        controller_ref_manager.go (ClaimPods), 2026-11-29.
        """
        if pod.owner is not None or pod.is_terminating:
            return None
        for found, selector in self._adopting.get(document.namespace, ()):
            named = found.kind != "StatefulSet" or _has_ordinal(pod.name, found)
            if named and selector.selects(pod.labels):
                return self._root(found) or key_of(found)
        return None

    def _pod(self, document: Document) -> Pod:
        metadata = checked_metadata(document)
        check_template(document, Section(document.raw, "", []))
        name = document.name or f"{metadata.text('generateName')}{self._number()}"
        uid = text(metadata.raw.get("uid")) or f"Pod/{document.namespace}/{name}"
        own = {"name": name, "namespace": document.namespace, "uid": uid}
        given = {**metadata.raw, **own}
        spec, refusal = mapping(document.raw.get("spec")), ""
        if not text(metadata.raw.get("uid")):
            spec, refusal = self._admission.admit(document.namespace, spec)
        if _is_created(document):
            refusal = ""
        else:
            refusal = refusal or self._quotas.refusal(document.namespace, spec)
        pod = self._decoder.decode({**document.raw, "metadata": given, "spec": spec})
        status = mapping(document.raw.get("status"))
        conditions = mappings(status.get("conditions"))
        if not any(condition.get("type") == "PodScheduled" for condition in conditions):
            pod = replace(pod, unschedulable=not pod.node_name)
        return _refused(pod, refusal)

    def _count(self, document: Document) -> None:
        if document.kind == _CLAIM:
            self._quotas.count_claim(document.namespace, document.raw)
        elif document.kind == "Pod" and _is_created(document):
            ended = mapping(document.raw.get("status")).get("phase") in ("Succeeded", "Failed")
            self._quotas.count(document.namespace, mapping(document.raw.get("spec")), ended=ended)

    def _owner_of_replica_set(self, document: Document, replica_set: str) -> Key:
        """Return the owner, by name, of a ReplicaSet that is not among the documents."""
        labels = text_map(mapping(document.raw.get("metadata")).get("labels"))
        for kind, label in _HASHES.items():
            name = replica_set.removesuffix(f"-{labels.get(label, '')}")
            if (kind, document.namespace, name) in self._workloads:
                return kind, document.namespace, name
        return "ReplicaSet", document.namespace, replica_set

    def _number(self) -> int:
        self._total += 1
        return self._total - 1

    def _run_of(self, document: Document, runs: set[Key]) -> Iterator[Pod]:
        """Yield the pods of one run of a CronJob that has no run among the documents."""
        job = required_section(document, "spec", "jobTemplate", "spec")
        suspended = mapping(document.raw.get("spec")).get("suspend") is True
        if key_of(document) in runs:
            return
        count = 0 if suspended else job_pods(document.raw, job)
        what = "is suspended: no run is planned" if suspended else "one run is planned"
        pods = f", {counted(count, 'pod')} at once" if count else ""
        self.notes.append(f"CronJob {document.namespace}/{document.name}: {what}{pods}")
        if count:
            yield from self._expanded(document, {}, ("spec", "jobTemplate", "spec"), "Job")

    def _expanded(
        self,
        document: Document,
        present: Mapping[str, Document],
        path: tuple[str, ...] = ("spec",),
        kind: str = "",
    ) -> Iterator[Pod]:
        """Yield the missing pods of a workload.

        Args:
            document: The workload.
            present: Its existing pods, by name.
            path: Path of the section with the template.
            kind: Kind of the controller that creates the pods, where it is not the document's.
        """
        metadata = checked_metadata(document)
        spec = required_section(document, *path)
        template = required_section(document, *path, "template")
        check_template(document, template)
        kind = kind or _controller_of(document) or ""
        claims = spec.sections("volumeClaimTemplates") if kind == "StatefulSet" else []
        count = _COUNTS.get(kind, _replicas)(document.raw, spec)
        raise_first_problem(document, spec.problems)
        self._total += count
        if self._total > MAX_REPLICAS:
            remedy = f"all workloads together have more than {MAX_REPLICAS} pods: plan fewer"
            raise document.invalid("spec", None, remedy)
        workload = Workload(
            kind=kind,
            namespace=document.namespace,
            name=document.name or metadata.text("generateName").rstrip("-"),
            spec=spec.raw,
            metadata=metadata.raw,
            status=mapping(document.raw.get("status")),
            revision=self._revision(document, present),
        )
        ending = replaces_at_once(workload)
        leaving = {name for name, there in present.items() if ending and _is_ending(there)}
        taken = {
            name: text_map(mapping(there.raw.get("metadata")).get("labels"))
            for name, there in present.items()
            if name not in leaving
        }
        if not kind:
            left = max(count - len(taken), 0)
            place = f"{document.kind} {document.namespace}/{document.name}"
            self.notes.append(
                f"{place}: {document.api_version} is not known; "
                f"{left} pod{' is' if left == 1 else 's are'} planned as its pod template says"
            )
        spec_of_pod = _without_claimed(mapping(template.raw.get("spec")), claims)
        admitted, refusal = self._admission.admit(document.namespace, spec_of_pod)
        raw = _template_pod(document, workload.name, {**template.raw, "spec": admitted})
        last: tuple[PodIdentity, Pod] | None = None
        for identity in missing_identities(workload, count, taken, leaving):
            beyond = refusal or self._claims_refusal(document.namespace, identity.name, claims)
            beyond = beyond or self._quotas.refusal(document.namespace, admitted)
            pod = self._expanded_pod(raw, identity, claims, last)
            last = identity, pod
            yield _refused(replace(pod, uid=f"{document.kind}/{pod.key}"), beyond)

    def _claims_refusal(self, namespace: str, pod: str, claims: Sequence[Section]) -> str:
        """Return which quota keeps a claim of a pod, and so the pod, from being created.

        Source: https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/controller/statefulset/
        stateful_pod_control.go (CreateStatefulPod), 2026-11-29.
        """
        for claim in claims:
            name = _claim_name(claim.raw, pod)
            if (namespace, name) not in self._claims:
                refusal = self._quotas.claim_refusal(namespace, claim.raw)
                if refusal:
                    return f"claim {name}: {refusal}"
        return ""

    def _expanded_pod(
        self,
        raw: dict[str, Any],
        identity: PodIdentity,
        claims: Sequence[Section],
        last: tuple[PodIdentity, Pod] | None,
    ) -> Pod:
        """Return a pod of a workload; fast if it differs from the last only in its name."""
        alike = last is not None and last[0].labels == identity.labels
        if last is not None and alike and not claims and not raw["spec"].get("volumes"):
            return replace(last[1], name=identity.name)
        metadata = raw["metadata"]
        labels = {**text_map(metadata["labels"]), **identity.labels}
        given = {**metadata, "labels": labels, "name": identity.name}
        pod = self._decoder.decode({**raw, "metadata": given})
        if not claims:
            return pod
        own = [_own_claim(claim.raw, pod) for claim in claims]
        wanted = {*pod.scheduling.claims, *(claim.name for claim in own)}
        scheduling = replace(pod.scheduling, claims=tuple(sorted(wanted)))
        made = tuple(sorted((*pod.ephemeral, *own), key=lambda entry: entry.name))
        return replace(pod, scheduling=scheduling, ephemeral=made)

    def _revision(self, document: Document, present: Mapping[str, Document]) -> str:
        """Return the template hash of a Deployment's current pods, empty if it is unknown.

        It is that of its ReplicaSet of the same revision, else of its newest pod.

        Source: https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/controller/deployment/util/
        deployment_util.go (RevisionAnnotation), 2026-11-29.
        """
        if _controller_of(document) != "Deployment":
            return ""
        revision = _metadata_value(document, "annotations", _REVISION)
        for found in self._workloads.values():
            owner = controller_ref(mapping(found.raw.get("metadata")))
            if found.kind == "ReplicaSet" and owner is not None and revision:
                of_this = ("Deployment", found.namespace, owner.name) == key_of(document)
                if of_this and _metadata_value(found, "annotations", _REVISION) == revision:
                    return _metadata_value(found, "labels", TEMPLATE_HASH)
        newest = max(present.values(), key=_created_at, default=None)
        return _metadata_value(newest, "labels", TEMPLATE_HASH) if newest is not None else ""


def _is_created(document: Document) -> bool:
    """Return whether a pod has been created: an API server has stored it, or it has a node."""
    uid = mapping(document.raw.get("metadata")).get("uid")
    return bool(text(uid) or text(mapping(document.raw.get("spec")).get("nodeName")))


def _is_ending(document: Document) -> bool:
    return mapping(document.raw.get("metadata")).get("deletionTimestamp") is not None


def _selector_of(document: Document) -> LabelSelector | None:
    """Return the selector of a workload's pods, None without one."""
    spec = mapping(document.raw.get("spec"))
    selector = spec.get("selector")
    if document.kind == "ReplicationController":
        template = mapping(mapping(spec.get("template")).get("metadata"))
        selector = {"matchLabels": selector or template.get("labels")}
    found = label_selector(selector, "spec", [])
    return found if found != LabelSelector() else None


def _has_ordinal(name: str, document: Document) -> bool:
    """Return whether a pod's name is that of a StatefulSet with an ordinal."""
    begin, _, ordinal = name.rpartition("-")
    return begin == document.name and ordinal.isdecimal()


def _metadata_value(document: Document, where: str, key: str) -> str:
    return text_map(mapping(document.raw.get("metadata")).get(where)).get(key, "")


def _created_at(document: Document) -> tuple[str, str]:
    made = timestamp(mapping(document.raw.get("metadata")).get("creationTimestamp"))
    return made.isoformat() if made else "", document.name


def _refused(pod: Pod, refusal: str) -> Pod:
    """Return the pod with the reason why it would not be created, if there is one."""
    if not refusal:
        return pod
    asked = pod.scheduling
    reason = f"it would not be created: {refusal}"
    return replace(pod, scheduling=replace(asked, refusals=(*asked.refusals, reason)))


def _without_claimed(spec: Raw, claims: Sequence[Section]) -> Raw:
    """Return a template's spec without volumes that claims of a StatefulSet replace."""
    names = {text(mapping(claim.raw.get("metadata")).get("name")) for claim in claims}
    volumes = [entry for entry in mappings(spec.get("volumes")) if entry.get("name") not in names]
    return {**spec, "volumes": volumes} if names else spec


def _template_pod(document: Document, owner: str, template: Raw) -> dict[str, Any]:
    metadata = mapping(template.get("metadata"))
    reference = {
        "apiVersion": document.api_version,
        "kind": document.kind,
        "name": owner,
        "uid": f"{document.kind}/{document.namespace}/{owner}",
        "controller": True,
    }
    given = {
        "labels": metadata.get("labels"),
        "annotations": metadata.get("annotations"),
        "namespace": document.namespace,
        "ownerReferences": [reference],
    }
    waiting = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    spec = mapping(template.get("spec"))
    return {"metadata": given, "spec": spec, "status": {"conditions": [waiting]}}


def _own_claim(template: Raw, pod: Pod) -> Claim:
    """Return the claim that a StatefulSet creates for one of its pods."""
    metadata = {"namespace": pod.namespace, "name": _claim_name(template, pod.name)}
    return decode_claim({**template, "metadata": metadata})


def _claim_name(template: Raw, pod: str) -> str:
    return f"{text(mapping(template.get('metadata')).get('name'))}-{pod}"


def _replicas(_: Raw, spec: Section) -> int:
    return replicas_of(spec, "replicas", 1)


def job_pods(raw: Raw, spec: Section) -> int:
    """Return how many pods of a Job run at once, zero when it is suspended or finished."""
    parallel = replicas_of(spec, "parallelism", 1)
    completions = spec.integer("completions", 0)
    status = mapping(raw.get("status"))
    ended = any(
        condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True"
        for condition in mappings(status.get("conditions"))
    )
    if spec.flag("suspend") or ended:
        return 0
    if completions is None:
        return parallel
    return max(min(parallel, completions - (integer(status.get("succeeded")) or 0)), 0)


_COUNTS: Final[Mapping[str, Callable[[Raw, Section], int]]] = {"Job": job_pods}
