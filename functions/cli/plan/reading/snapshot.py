"""A snapshot made of manifests alone: no cluster, no AWS."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from functions.cli.plan.explanation import of_other_scheduler
from functions.cli.plan.reading.autoscalers import with_autoscaled_replicas
from functions.cli.plan.reading.checks import (
    check_template,
    checked_metadata,
    raise_first_problem,
    required_section,
)
from functions.cli.plan.reading.documents import Document
from functions.cli.plan.reading.provisioners import as_current, read_provisioners
from functions.cli.plan.reading.unknown_fields import check_fields
from functions.cli.plan.reading.volumes import read_volumes, unknown_claims, with_volumes
from functions.cli.plan.reading.workloads import (
    WORKLOADS,
    PodReader,
    has_other_template,
    is_workload,
)
from shared.instance_types.catalog import Catalog
from shared.manifests.admission import admission_of
from shared.manifests.custom_resources.pool_lifetimes import is_foreign
from shared.manifests.daemonsets import decode_daemonset
from shared.manifests.nodes import decode_node
from shared.manifests.problems import Section
from shared.manifests.raw_json import mapping, mappings, text_map
from shared.manifests.volumes.node_demands import VolumeLookup
from shared.model import labels as keys
from shared.model.brakes import NO_CEILING
from shared.model.dialect import V1, V1ALPHA5
from shared.model.dollars_and_counts import counted
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import ControllerRef, Pod, without_stale_nominations
from shared.model.nearest import nearest
from shared.model.provisioner import Provisioner
from shared.model.snapshot import ClusterSnapshot, ProvisionerSite
from shared.model.values import replace
from shared.planning.rules.labels_and_taints import labels_accepted, taint_refusal
from shared.planning.rules.provided_daemonsets import provided_daemonsets
from shared.planning.rules.provisioner_offerings import never_with_image
from shared.snapshot.standing_daemons import with_standing

CLUSTER: Final = "offline"
KINDS: Final = {
    V1ALPHA5.template_kind: V1ALPHA5.template_version,
    "CSINode": "storage.k8s.io/v1",
    "DaemonSet": "apps/v1",
    V1.template_kind: V1.template_version,
    "LimitRange": "v1",
    "Namespace": "v1",
    "Node": "v1",
    V1.owner_kind: V1.owner_version,
    "PersistentVolume": "v1",
    "PersistentVolumeClaim": "v1",
    "Pod": "v1",
    "PodDisruptionBudget": "policy/v1",
    "PriorityClass": "scheduling.k8s.io/v1",
    V1ALPHA5.owner_kind: V1ALPHA5.owner_version,
    "ResourceQuota": "v1",
    "RuntimeClass": "node.k8s.io/v1",
    "StorageClass": "storage.k8s.io/v1",
    **WORKLOADS,
}
# Karpenter's objects that Dovetail does not act on; each is noted once.
_NOT_OFFERED: Final = {
    "CapacityBuffer": "no room is kept for pods to come; use a Deployment of placeholder pods with "
    "a low priority",
    "NodeOverlay": "prices and capacity of instance types are those of EC2; choose types by "
    "requirements of the NodePool",
}
_LONG_AGO: Final = "extensions"
_NEAR: Final = 0.8
_EXAMPLES: Final = {"apiVersion": "apps/v1", "kind": "Deployment"}
_CLUSTER_WIDE: Final = frozenset(
    {
        "AWSNodeTemplate",
        "CSINode",
        "EC2NodeClass",
        "Namespace",
        "Node",
        "NodePool",
        "PersistentVolume",
        "PriorityClass",
        "Provisioner",
        "RuntimeClass",
        "StorageClass",
    }
)
_NOTED: Final = 3  # left-out DaemonSets that get a note of their own
_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"


class OfflineSnapshot(Struct, frozen=True, kw_only=True):
    """A snapshot, with notes on how it was made.

    Attributes:
        notes: One line each: what was left out or assumed.
    """

    snapshot: ClusterSnapshot
    notes: tuple[str, ...]


def read_snapshot(documents: Sequence[Document], catalog: Catalog) -> OfflineSnapshot:
    """Return the snapshot that the documents describe.

    All pods without a node and without a status wait for capacity; every zone of the catalogue
    has a subnet for every Provisioner. The snapshot is dated like the prices, so that the same
    documents give the same snapshot.

    Raises:
        InvalidManifestError: For the first wrong field, with file and document.
    """
    notes: list[str] = []
    workloads = with_autoscaled_replicas(documents, notes)
    known = _without_repetitions(_recognized(workloads, notes))
    _refuse_nothing(documents, known)
    provisioners = read_provisioners(known, catalog, notes)
    pods, volumes = _pods(known, notes)
    notes += check_fields(known)
    daemonsets = _daemonsets(known, notes)
    nodes = tuple(
        _owned(_node(document, catalog), provisioners)
        for document in known
        if document.kind == "Node"
    )
    zones = sorted(
        {
            offering.zone
            for instance_type in catalog.instance_types
            for offering in instance_type.offerings
        }
    )
    sites = tuple(
        ProvisionerSite(
            provisioner=p.name,
            zones=tuple(zones),
            without_image=never_with_image(p.template, catalog.instance_types),
        )
        for p in provisioners
    )
    bound = [pod for pod in pods if pod.node_name]
    provided = provided_daemonsets(
        with_standing(daemonsets, bound), provisioners, catalog.instance_types
    )
    notes += [
        f"DaemonSet {daemonset.key} is left out: {why}"
        for daemonset, why in provided.left_out[:_NOTED]
    ]
    if len(provided.left_out) > _NOTED:
        notes.append(f"DaemonSets left out besides: {len(provided.left_out) - _NOTED}")
    daemonsets = provided.daemonsets
    bound += _missing_daemons(nodes, daemonsets, bound)
    snapshot = ClusterSnapshot(
        cluster=CLUSTER,
        taken_at=datetime.fromisoformat(catalog.date).replace(tzinfo=UTC),
        pending=tuple(pod for pod in pods if not pod.node_name),
        bound=tuple(sorted(bound, key=lambda pod: (pod.key, pod.uid))),
        nodes=tuple(sorted(nodes, key=lambda node: node.name)),
        provisioners=provisioners,
        sites=sites,
        daemonsets=daemonsets,
        slots=(),
        intents=(),
        namespaces=_namespaces(known),
        instance_types=catalog.instance_types,
        ceiling=NO_CEILING,
    )
    if not snapshot.pending:
        notes += _why_none_waits(known, snapshot)
    snapshot = with_volumes(snapshot, volumes, known)
    return OfflineSnapshot(snapshot=snapshot, notes=tuple(notes))


def _recognized(documents: Iterable[Document], notes: list[str]) -> list[Document]:
    """Return the documents that matter; the others are counted in a note.

    Raises:
        InvalidDocumentError: If one has no kind or version, or an unsupported version.
    """
    found = []
    ignored: Counter[str] = Counter()
    for written in documents:
        document = as_current(written, notes)
        for field, value in (("apiVersion", document.api_version), ("kind", document.kind)):
            if not value:
                remedy = f"write the {field} of a Kubernetes object, such as {_EXAMPLES[field]}"
                raise document.invalid(field, document.raw.get(field), remedy)
        version = KINDS.get(document.kind)
        _refuse_misspelt(document, version)
        if version is None or _group(version) != _group(document.api_version):
            if is_workload(document):
                found.append(document)
            elif has_other_template(document):
                place = f"{document.kind} {document.namespace}/{document.name}"
                notes.append(f"{place}: not planned: it has a pod template and no spec.replicas")
            else:
                ignored[document.kind] += 1
        elif version != document.api_version:
            raise document.invalid("apiVersion", document.api_version, f"write {version}")
        elif document.kind != V1.owner_kind or not is_foreign(document.raw):
            found.append(document)
    notes.extend(
        f"{kind}: left out: {_NOT_OFFERED[kind]}"
        for kind in sorted(_NOT_OFFERED)
        if ignored.pop(kind, 0)
    )
    if ignored:
        named = ", ".join(f"{count} {kind}" for kind, count in sorted(ignored.items()))
        notes.append(f"left out, of kinds that are not read: {named}")
    return found


def _refuse_nothing(documents: Sequence[Document], known: Sequence[Document]) -> None:
    kinds = {document.kind for document in documents}
    if documents and not known and kinds.isdisjoint(KINDS):
        remedy = (
            f"no workload in these files, only {', '.join(sorted(kinds))}; name Pods or workloads"
        )
        raise documents[0].invalid("", None, remedy)


def _refuse_misspelt(document: Document, version: str | None) -> None:
    """Refuse a kind or group that is nearly one that is read, and groups of long ago.

    Source: https://kubernetes.io/docs/reference/using-api/deprecation-guide/#v1-16 (2026-11).
    """
    given = document.api_version
    if version is None:
        same = [kind for kind, known in KINDS.items() if known == given]
        if near := nearest(document.kind, same, _NEAR):
            raise document.invalid("kind", document.kind, f"unknown kind; write {near}")
    elif _group(version) != _group(given) and (
        _group(given) == _LONG_AGO or nearest(given, [version], _NEAR)
    ):
        raise document.invalid("apiVersion", given, f"write {version}")


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]


def _without_repetitions(documents: Sequence[Document]) -> tuple[Document, ...]:
    """Return the documents without exact repetitions.

    Raises:
        InvalidDocumentError: If two different ones claim the same name.
    """
    found: dict[tuple[str, str, str], Document] = {}
    unnamed = []
    for document in documents:
        namespace = "" if document.kind in _CLUSTER_WIDE else document.namespace
        first = found.setdefault((document.kind, namespace, document.name), document)
        if not document.name:
            unnamed.append(document)
        elif first is not document and first.raw != document.raw:
            remedy = f"another {document.kind} of that name is in {first.where}: keep one of them"
            raise document.invalid("metadata.name", document.name, remedy)
    return (*(document for document in found.values() if document.name), *unnamed)


def _daemonsets(documents: Sequence[Document], notes: list[str]) -> tuple[DaemonSet, ...]:
    admission = admission_of(document.with_namespace for document in documents)
    found = []
    for document in documents:
        if document.kind == "DaemonSet":
            checked_metadata(document)
            check_template(document, required_section(document, "spec", "template"))
            read = decode_daemonset(document.with_namespace, admission)
            if read.problem:
                name = f"{read.namespace}/{read.name}"
                notes.append(f"DaemonSet {name} makes no pods, left out: {read.problem}")
            else:
                found.append(read)
    return tuple(sorted(found, key=lambda entry: (entry.namespace, entry.name)))


def _pods(documents: Sequence[Document], notes: list[str]) -> tuple[tuple[Pod, ...], VolumeLookup]:
    for document in documents:
        if not is_workload(document) and document.kind != "Pod":
            checked_metadata(document)
    volumes = read_volumes(documents)
    reader = PodReader(documents)
    nodes = (document.name for document in documents if document.kind == "Node")
    found = without_stale_nominations(reader.read(), nodes)
    notes += reader.notes
    notes += unknown_claims(found, volumes)
    notes += _on_schedulers(found)
    return found, volumes


def _on_schedulers(pods: Iterable[Pod]) -> Iterator[str]:
    """Yield why no capacity is planned for pending pods, and which other scheduler has some."""
    resting: dict[str, list[str]] = {}
    of_others: dict[str, list[str]] = {}
    for pod in pods:
        if pod.node_name:
            continue
        if reason := pod.why_not_provisionable:
            resting.setdefault(reason, []).append(pod.key)
        elif scheduler := of_other_scheduler(pod):
            of_others.setdefault(scheduler, []).append(pod.key)
    for reason, names in sorted(resting.items()):
        who = "each" if len(names) > 1 else "it"
        yield f"no capacity is planned for {_such_as(names)}: {who} {reason}"
    for scheduler, names in sorted(of_others.items()):
        yield f"{_such_as(names)}: {scheduler}"


def _such_as(names: Sequence[str]) -> str:
    return f"{counted(len(names), 'pod')}, {'such as ' if len(names) > 1 else ''}{min(names)}"


def _why_none_waits(documents: Iterable[Document], snapshot: ClusterSnapshot) -> list[str]:
    """Return why no pod waits for capacity: what runs already, and workloads without pods."""
    notes = []
    if snapshot.bound:
        nodes = len({pod.node_name for pod in snapshot.bound})
        notes.append(f"{counted(len(snapshot.bound), 'pod')} on {counted(nodes, 'node')} already")
    for document in documents:
        spec = mapping(document.raw.get("spec"))
        fields = ("parallelism", "completions") if document.kind == "Job" else ("replicas",)
        for field in fields:
            if document.kind in WORKLOADS and spec.get(field) == 0:
                named = f"{document.kind} {document.namespace}/{document.name}"
                notes.append(f"{named} asks for no pods: {field} is 0")
        if document.kind == "Job" and spec.get("suspend") is True:
            notes.append(f"Job {document.namespace}/{document.name} is suspended")
    return notes


def _namespaces(documents: Sequence[Document]) -> dict[str, dict[str, str]]:
    found = {
        document.name: text_map(checked_metadata(document).raw.get("labels"))
        for document in documents
        if document.kind == "Namespace"
    }
    return {name: {**labels, _NAMESPACE_NAME: name} for name, labels in sorted(found.items())}


def _owned(node: Node, provisioners: Iterable[Provisioner]) -> Node:
    """Return a node, as one of Dovetail's if its labels name a Provisioner or NodePool here.

    In a cluster Dovetail counts only nodes that it launched; Karpenter launched these.
    """
    known = any(node.labels.get(owner.owner_label) == owner.name for owner in provisioners)
    return replace(node, annotations={keys.SLOT: "", **node.annotations}) if known else node


def _node(document: Document, catalog: Catalog) -> Node:
    """Return a node; fields that a short manifest leaves out are those of a healthy node.

    Raises:
        InvalidDocumentError: If a quantity is invalid, or allocatable resources are unknown.
    """
    checked_metadata(document)
    status = Section(document.raw, "", []).section("status") or Section({}, "status", [])
    for field in ("capacity", "allocatable"):
        amounts = status.section(field)
        if amounts is not None:
            amounts.resources()
    raise_first_problem(document, status.problems)
    node = decode_node(document.raw)
    allocatable = node.allocatable or node.capacity
    if not allocatable:
        of_type = catalog.get(node.labels.get(keys.INSTANCE_TYPE, ""))
        if of_type is None:
            remedy = (
                f"write what pods can have, or the label {keys.INSTANCE_TYPE} with a type of the "
                "catalogue"
            )
            raise document.invalid("status.allocatable", None, remedy)
        allocatable = of_type.allocatable
    conditions = mappings(mapping(document.raw.get("status")).get("conditions"))
    return replace(
        node,
        uid=node.uid or f"Node/{node.name}",
        labels={keys.HOSTNAME: node.name, **node.labels},
        allocatable=allocatable,
        ready=node.ready if conditions else True,
    )


def _missing_daemons(
    nodes: Iterable[Node], daemonsets: Sequence[DaemonSet], bound: Iterable[Pod]
) -> list[Pod]:
    """Return the pods that DaemonSets will still create on existing nodes."""
    present = {
        (pod.node_name, pod.namespace, pod.owner.name)
        for pod in bound
        if pod.owner is not None and pod.is_daemon
    }
    return [
        Pod(
            namespace=daemon_set.namespace,
            name=f"{daemon_set.name}-{node.name}",
            uid=f"DaemonSet/{daemon_set.namespace}/{daemon_set.name}/{node.name}",
            labels=daemon_set.labels,
            scheduling=daemon_set.scheduling,
            node_name=node.name,
            owner=ControllerRef(
                kind="DaemonSet", name=daemon_set.name, uid="", api_version="apps/v1"
            ),
        )
        for node in nodes
        for daemon_set in daemonsets
        if (node.name, daemon_set.namespace, daemon_set.name) not in present
        and labels_accepted(daemon_set.scheduling, node.labels)
        and not taint_refusal(daemon_set.scheduling, node.taints)
    ]
