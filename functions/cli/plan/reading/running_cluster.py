"""What runs in a cluster, from the documents of a dump or of its API server."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct, field

from functions.cli.input_error import InputError
from functions.cli.plan.reading.documents import Document
from functions.cli.plan.reading.provisioners import OWNERS, as_current, read_provisioners
from functions.cli.plan.reading.snapshot import read_snapshot
from functions.cli.plan.reading.subnets import within_node_zones
from functions.cli.plan.reading.volumes import read_volumes, unknown_claims, with_volumes
from functions.cli.plan.reading.workloads import WORKLOADS
from shared.disruption.simulate import with_claims_of
from shared.instance_types.catalog import Catalog
from shared.manifests.disruption_budgets import decode_budget
from shared.manifests.raw_json import Raw, mapping, text
from shared.model import labels as keys
from shared.model.dialect import V1, V1ALPHA5
from shared.model.errors import InvalidManifestError
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.provisioning.savings.pools import Pool, PoolKind

_TEMPLATES: Final = frozenset({V1ALPHA5.template_kind, V1.template_kind})
_READ: Final = frozenset(
    {
        "CSINode",
        "DaemonSet",
        "LimitRange",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Pod",
        "PriorityClass",
        "RuntimeClass",
        "StorageClass",
        *OWNERS,
        *_TEMPLATES,
    }
)
_BUDGET: Final = "PodDisruptionBudget"
_CLUSTER_NAME: Final = "alpha.eksctl.io/cluster-name"


class Manifests(Struct, frozen=True, kw_only=True):
    """What the API server has.

    Attributes:
        declared: The NodePools and Provisioners whose nodes Dovetail can plan.
        others: Those whose nodes it cannot plan; with a NodePool's kind those of EKS Auto Mode.
        pod_specs: The specs of pods, by namespace/name.
    """

    declared: Mapping[Pool, Raw] = field(default_factory=dict)
    others: Mapping[Pool, Raw] = field(default_factory=dict)
    pod_specs: Mapping[str, Raw] = field(default_factory=dict)

    def of_pool(self, pool: Pool) -> Raw | None:
        """Return the object that declares a pool, None where none was read."""
        kind = PoolKind.NODE_POOL if pool.kind == PoolKind.AUTO_MODE else pool.kind
        own = Pool(kind, pool.name)
        return self.declared.get(own) or self.others.get(own)

    def is_fixed(self, pool: Pool) -> bool:
        """Return whether a pool keeps a fixed number of nodes, which nothing consolidates.

        Source: https://karpenter.sh/docs/concepts/nodepools/#specreplicas (2026-12).
        """
        return _is_fixed(self.of_pool(pool) or {})


class RunningCluster(Struct, frozen=True, kw_only=True):
    """A cluster that runs.

    Attributes:
        name: As its nodes give it, else empty.
        snapshot: Includes what the volume claims of running pods require of nodes.
        notes: One line each: what was left out or assumed.
    """

    name: str
    snapshot: ClusterSnapshot
    budgets: tuple[PodDisruptionBudget, ...]
    manifests: Manifests
    notes: tuple[str, ...]


def read_running_cluster(documents: Sequence[Document], catalog: Catalog) -> RunningCluster:
    """Return the cluster that the documents describe; Provisioners that cannot be used are noted.

    Workloads are left out: their pods are among the documents.

    Raises:
        InvalidManifestError: If a pod, node or volume is malformed, or the nodes are in another
            Region than the catalogue.
        InputError: If there is no node.
    """
    fixed = {found.name for found in documents if _is_fixed(found.raw)}
    notes = [
        f"NodePool {name} keeps a fixed number of nodes (spec.replicas): they stay as they are"
        for name in sorted(fixed)
    ]
    planned = [found for found in documents if not _is_fixed(found.raw)]
    usable = usable_documents(planned, catalog, notes)
    known = [found for found in usable if found.kind in _READ]
    snapshot = read_snapshot(known, catalog).snapshot
    if not snapshot.nodes:
        raise InputError(
            "no Nodes among the objects: kubectl get nodes,pods --all-namespaces -o json has them"
        )
    refuse_another_region(snapshot.nodes, catalog)
    snapshot = _with_daemonsets(snapshot, notes)
    volumes = read_volumes(usable)
    notes += unknown_claims(snapshot.bound, volumes)
    running = {pod.uid for pod in snapshot.bound if pod.counts_for_emptiness}
    budgets = [decode_budget(found.with_namespace) for found in usable if found.kind == _BUDGET]
    return RunningCluster(
        name=next(
            (name for node in snapshot.nodes if (name := node.labels.get(_CLUSTER_NAME))), ""
        ),
        snapshot=with_claims_of(
            replace(within_node_zones(snapshot), taken_at=_latest(snapshot)),
            running,
            lambda asking: with_volumes(asking, volumes, usable),
        ),
        budgets=tuple(sorted(budgets, key=lambda budget: (budget.namespace, budget.name))),
        manifests=_manifests(documents, snapshot),
        notes=tuple(notes),
    )


def _is_fixed(raw: Raw) -> bool:
    """Return whether a NodePool says how many nodes it has."""
    return raw.get("kind") == V1.owner_kind and mapping(raw.get("spec")).get("replicas") is not None


def _manifests(documents: Iterable[Document], snapshot: ClusterSnapshot) -> Manifests:
    """Return what the API server has of pods, and of the NodePools and Provisioners in use."""
    used = {Pool(PoolKind(owner.kind), owner.name) for owner in snapshot.provisioners}
    named = {
        Pool(PoolKind(found.kind), found.name): found.raw
        for found in documents
        if found.kind in OWNERS
    }
    return Manifests(
        declared={pool: raw for pool, raw in named.items() if pool in used},
        others={pool: raw for pool, raw in named.items() if pool not in used},
        pod_specs={
            f"{found.namespace}/{found.name}": mapping(found.raw.get("spec"))
            for found in documents
            if found.kind == "Pod"
        },
    )


def usable_documents(
    documents: Iterable[Document], catalog: Catalog, notes: list[str]
) -> tuple[Document, ...]:
    """Return the documents without workloads, and without Provisioners that cannot be used."""
    current = [as_current(found, notes) for found in documents if found.kind not in WORKLOADS]
    templates = [
        found for found in current if found.kind in _TEMPLATES and _reads([found], catalog, notes)
    ]
    owners: dict[str, Document] = {}
    for found in current:
        if found.kind in OWNERS and _reads([found, *templates], catalog, notes):
            first = owners.setdefault(found.name, found)
            if first.kind != found.kind:
                notes.append(
                    f"{found.kind} {found.name}: a {first.kind} has this name, too; what this one "
                    "may launch is taken from its nodes"
                )
    others = [found for found in current if found.kind not in (*OWNERS, *_TEMPLATES)]
    return (*others, *templates, *owners.values())


def _reads(documents: Sequence[Document], catalog: Catalog, notes: list[str]) -> bool:
    """Return whether the first document can be used together with the others; else add a note."""
    try:
        read_provisioners(documents, catalog, [])
    except InvalidManifestError as error:
        kind = documents[0].kind
        notes.append(f"{kind} {documents[0].name} is left out: {error.field}: {error.remedy}")
        return False
    return True


def region_of(documents: Iterable[Document]) -> str:
    """Return the Region that the first node names, empty when none does."""
    named = (
        text(mapping(mapping(found.raw.get("metadata")).get("labels")).get(keys.REGION))
        for found in documents
        if found.kind == "Node"
    )
    return next(filter(None, named), "")


def refuse_another_region(nodes: Iterable[Node], catalog: Catalog) -> None:
    """Refuse prices of another Region than that of the nodes.

    Raises:
        InvalidManifestError: If the nodes are in another Region than the catalogue.
    """
    regions = {node.labels[keys.REGION] for node in nodes if keys.REGION in node.labels}
    if regions and catalog.region not in regions:
        found = ", ".join(sorted(regions))
        remedy = (
            f"the prices are those of {catalog.region}; make the catalogue of the Region with "
            f"`dovetail catalog --region {min(regions)} --output FILE` and name it with --catalog, "
            "or ask AWS with --live-prices"
        )
        raise InvalidManifestError(field=f"label {keys.REGION}", value=found, remedy=remedy)


def _with_daemonsets(snapshot: ClusterSnapshot, notes: list[str]) -> ClusterSnapshot:
    """Return the snapshot with the DaemonSets that are only known by their pods."""
    known = {(found.namespace, found.name) for found in snapshot.daemonsets}
    shown: dict[tuple[str, str], Pod] = {}
    for pod in snapshot.bound:
        if pod.owner is not None and pod.is_daemon and (pod.namespace, pod.owner.name) not in known:
            shown.setdefault((pod.namespace, pod.owner.name), pod)
    if not shown:
        return snapshot
    names = ", ".join(f"{namespace}/{name}" for namespace, name in sorted(shown))
    notes.append(f"DaemonSets that only their pods show, taken to run on every node: {names}")
    more = [
        DaemonSet(
            namespace=namespace,
            name=name,
            labels=pod.labels,
            # The DaemonSet controller names the node in each pod's affinity.
            scheduling=replace(pod.scheduling, required_terms=(), refusals=()),
        )
        for (namespace, name), pod in shown.items()
    ]
    every = (*snapshot.daemonsets, *more)
    return replace(
        snapshot,
        daemonsets=tuple(sorted(every, key=lambda found: (found.namespace, found.name))),
    )


def _latest(snapshot: ClusterSnapshot) -> datetime:
    """Return the latest time in the snapshot, including its own."""
    made = [node.created_at for node in snapshot.nodes] + [pod.created_at for pod in snapshot.bound]
    return max((snapshot.taken_at, *filter(None, made)))
