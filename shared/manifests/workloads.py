"""The pods that workloads will have: what their controllers would make of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from shared.manifests.documents import Document
from shared.manifests.fields import Raw, controller, integer, mapping, mappings, text
from shared.manifests.pods import PodDecoder
from shared.manifests.priority_classes import priorities_of, with_priority
from shared.manifests.problems import Section
from shared.manifests.runtime_classes import runtimes_by_name, with_runtime
from shared.manifests.strictness import (
    MAX_REPLICAS,
    check_template,
    finish,
    metadata_of,
    replicas_of,
    spec_of,
)
from shared.manifests.volumes.claims import decode_claim
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.volumes import Claim

# (kind, namespace, name) of an object.
Key = tuple[str, str, str]

WORKLOADS: Final = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "Job"})


def key_of(document: Document) -> Key:
    """Return what identifies an object among the documents."""
    return document.kind, document.namespace, document.name


class PodReader:
    """Reads Pods and expands workloads, each pod once.

    A workload whose pods are among the documents too (as in `kubectl get all`) is only expanded
    by what is missing; a ReplicaSet of a Deployment that is there is the Deployment's.
    """

    def __init__(self, documents: Sequence[Document]) -> None:
        self._decoder = PodDecoder()
        self._workloads = {
            key_of(document): document for document in documents if document.kind in WORKLOADS
        }
        self._pods = [document for document in documents if document.kind == "Pod"]
        self._runtimes = runtimes_by_name(
            document.raw for document in documents if document.kind == "RuntimeClass"
        )
        self._priorities = priorities_of(
            document.raw for document in documents if document.kind == "PriorityClass"
        )
        self._documents = documents
        self._total = 0

    def read(self) -> tuple[Pod, ...]:
        """Return all pods that have not ended, sorted by key.

        Raises:
            InvalidDocumentError: For the first wrong field, in the order of the documents.
        """
        found: list[Pod] = []
        present: dict[Key, set[str]] = {}
        for document in self._pods:
            pod = self._pod(document)
            if pod.is_terminal:
                continue
            found.append(pod)
            root = self._root(document)
            if root is not None:
                present.setdefault(root, set()).add(pod.name)
        for document in self._documents:
            if document.kind in WORKLOADS and self._root(document) is None:
                taken = present.get(key_of(document), set())
                found.extend(self._expanded(document, taken))
        return tuple(sorted(found, key=lambda entry: (entry.key, entry.uid)))

    def _root(self, document: Document) -> Key | None:
        """Return the outermost workload among the documents that controls this object."""
        root = None
        seen: set[Key] = set()
        current: Document | None = document
        while current is not None:
            owner = controller(mapping(current.raw.get("metadata")))
            if owner is None:
                break
            key = (owner.kind, document.namespace, owner.name)
            if key not in self._workloads and owner.kind == "ReplicaSet":
                key = _deployment_of(document, owner.name)
            current = None if key in seen else self._workloads.get(key)
            seen.add(key)
            if current is not None:
                root = key
        return root

    def _pod(self, document: Document) -> Pod:
        metadata = metadata_of(document)
        check_template(document, Section(document.raw, "", []))
        name = document.name or f"{metadata.text('generateName')}{self._number()}"
        uid = text(metadata.raw.get("uid")) or f"Pod/{document.namespace}/{name}"
        own = {"name": name, "namespace": document.namespace, "uid": uid}
        given = {**metadata.raw, **own}
        spec = self._admitted(mapping(document.raw.get("spec")))
        pod = self._decoder.decode({**document.raw, "metadata": given, "spec": spec})
        status = mapping(document.raw.get("status"))
        conditions = mappings(status.get("conditions"))
        if not any(condition.get("type") == "PodScheduled" for condition in conditions):
            pod = replace(pod, unschedulable=not pod.node_name)
        return pod

    def _admitted(self, spec: Raw) -> Raw:
        return with_priority(with_runtime(spec, self._runtimes), self._priorities)

    def _number(self) -> int:
        self._total += 1
        return self._total - 1

    def _expanded(self, document: Document, taken: set[str]) -> Iterator[Pod]:
        metadata = metadata_of(document)
        spec = spec_of(document, "spec")
        template = spec_of(document, "spec", "template")
        check_template(document, template)
        claims = spec.sections("volumeClaimTemplates") if document.kind == "StatefulSet" else []
        count = _COUNTS[document.kind](document.raw, spec)
        finish(document, spec.problems)
        self._total += count
        if self._total > MAX_REPLICAS:
            remedy = f"all workloads together have more than {MAX_REPLICAS} pods: plan fewer"
            raise document.refused("spec", None, remedy)
        base = document.name or metadata.text("generateName").rstrip("-")
        spec_of_pod = self._admitted(mapping(template.raw.get("spec")))
        raw = _template_pod(document, base, {**template.raw, "spec": spec_of_pod})
        first = self._decoder.decode(raw)
        for name in _names(base, count - len(taken), taken):
            pod = replace(first, name=name, uid=f"{document.kind}/{first.namespace}/{name}")
            if not claims and not raw["spec"].get("volumes"):
                yield pod
                continue
            own = [_own_claim(claim.raw, pod) for claim in claims]
            named = self._decoder.decode({**raw, "metadata": {**raw["metadata"], "name": name}})
            wanted = {*named.scheduling.claims, *(claim.name for claim in own)}
            scheduling = replace(named.scheduling, claims=tuple(sorted(wanted)))
            made = tuple(sorted((*named.ephemeral, *own), key=lambda entry: entry.name))
            yield replace(pod, scheduling=scheduling, ephemeral=made)


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


def _deployment_of(pod: Document, replica_set: str) -> Key:
    """Return the Deployment of a pod by the name that its ReplicaSet has from it."""
    labels = mapping(mapping(pod.raw.get("metadata")).get("labels"))
    name = replica_set.removesuffix(f"-{text(labels.get('pod-template-hash'))}")
    return "Deployment", pod.namespace, name


def _own_claim(template: Raw, pod: Pod) -> Claim:
    """Return the claim that a StatefulSet makes for one of its pods."""
    metadata = mapping(template.get("metadata"))
    name = f"{text(metadata.get('name'))}-{pod.name}"
    return decode_claim({**template, "metadata": {"namespace": pod.namespace, "name": name}})


def _names(base: str, count: int, taken: set[str]) -> Iterator[str]:
    number = 0
    while count > 0:
        name = f"{base}-{number}"
        number += 1
        if name not in taken:
            count -= 1
            yield name


def _replicas(_: Raw, spec: Section) -> int:
    return replicas_of(spec, "replicas", 1)


def _job_pods(raw: Raw, spec: Section) -> int:
    """Return how many pods of a Job run at once, none when it is suspended or has ended."""
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


_COUNTS: Final[Mapping[str, Callable[[Raw, Section], int]]] = {
    "Deployment": _replicas,
    "ReplicaSet": _replicas,
    "StatefulSet": _replicas,
    "Job": _job_pods,
}
