"""A cluster in memory that keeps the promises of the Cluster port."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from shared.manifests.daemonsets import decode_daemonsets
from shared.manifests.disruption_budgets import decode_budget
from shared.manifests.nodes import decode_node
from shared.manifests.pods import PodDecoder
from shared.model import labels as keys
from shared.model.dialect import OwnerKind
from shared.model.errors import (
    ConflictError,
    EvictionRefusedError,
    NotFoundError,
    PermanentError,
    UnauthorizedError,
)
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.provisioner import InvalidProvisioner, Provisioner
from shared.model.values import replace
from shared.ports import ConditionType, KubernetesEvent, NodeChange, NodeManifest, PastEvent
from shared.ports.cluster import EachPage, nothing
from tests.fakes.calls import Call
from tests.fakes.node_rules import refuse_invalid_node
from tests.fakes.provisioners import FakeProvisioners, owner_key
from tests.fakes.storage import merged

START = datetime(2026, 1, 1, tzinfo=UTC)
_Value = Pod | Node | Provisioner | InvalidProvisioner | DaemonSet | PodDisruptionBudget
_Versioned = TypeVar("_Versioned", Pod, Node, Provisioner)


class FakeCluster(FakeProvisioners):
    """Implements shared.ports.Cluster.

    Seed it with `add` (values) or `apply` (raw manifests). Every write is in `calls`, every read's
    name in `reads`. `fail_next("bind", error)` makes the next call of a method raise. Pods named
    in `budgeted` cannot be evicted, those in `finalized` have a finalizer, those in `undeletable`
    are kept by an admission webhook. With `taints_cordoned`
    the node lifecycle controller taints each node as soon as it is cordoned. Bound pods that are
    deleted or evicted stay terminating until `kubelets_stop_pods`, as on a real cluster.
    """

    def __init__(self, name: str = "test", *, now: datetime = START) -> None:
        super().__init__()
        self._name = name
        self.now = now
        self.calls: list[Call] = []
        self.pods: dict[str, Pod] = {}
        self.node_values: dict[str, Node] = {}
        self.provisioner_values: dict[str, Provisioner] = {}
        self.invalid_provisioners: dict[str, InvalidProvisioner] = {}
        self.daemonset_values: dict[str, DaemonSet] = {}
        self.runtimes: list[Mapping[str, Any]] = []
        self.attachments: dict[str, tuple[str, ...]] = {}
        self.budgeted: set[str] = set()
        self.finalized: set[str] = set()
        self.undeletable: set[str] = set()
        self.taints_cordoned = False
        self.budgets: dict[str, PodDisruptionBudget] = {}
        self.kube_events: Counter[KubernetesEvent] = Counter()
        self.told_at: dict[KubernetesEvent, datetime] = {}
        self.conditions: dict[str, tuple[bool, str, str]] = {}
        self.nodes_current: dict[str, tuple[bool, str, str]] = {}
        self.usable: dict[str, tuple[bool, str, str]] = {}
        self.within_ceiling: dict[str, tuple[bool, str, str]] = {}
        self._version = 100
        self._decoder = PodDecoder()

    # --- seeding

    def add(self, *values: _Value) -> None:
        """Store values, those of the same name replaced, uid and version filled in, claims too."""
        for value in values:
            if isinstance(value, DaemonSet):
                self.daemonset_values[f"{value.namespace}/{value.name}"] = value
            elif isinstance(value, PodDisruptionBudget):
                self.budgets[f"{value.namespace}/{value.name}"] = value
            elif isinstance(value, Pod):
                self.pods[value.key] = self._known(value)
                self.bring_claims(value)
            elif isinstance(value, Node):
                self.node_values[value.name] = self._known(value)
            elif isinstance(value, Provisioner):
                self.invalid_provisioners.pop(owner_key(value.kind, value.name), None)
                self.provisioner_values[owner_key(value.kind, value.name)] = self._known(value)
            else:
                self.provisioner_values.pop(owner_key(value.kind, value.name), None)
                self.invalid_provisioners[owner_key(value.kind, value.name)] = value

    def apply(self, *raws: Mapping[str, Any]) -> None:
        """Store raw manifests by their kind."""
        for raw in raws:
            match raw["kind"]:
                case "Pod":
                    pod = self._decoder.decode(raw)
                    self.pods[pod.key] = self._known(pod)
                case "Node":
                    self.add(decode_node(raw))
                case "DaemonSet":
                    self.add(*decode_daemonsets([raw], self.runtimes))
                case "Provisioner" | "AWSNodeTemplate" | "NodePool" | "EC2NodeClass":
                    self.add(*self.apply_provisioner(raw))
                case "PodDisruptionBudget":
                    self.add(decode_budget(raw))
                case "RuntimeClass":
                    self.runtimes.append(raw)
                case kind:
                    assert self.apply_storage(raw), f"the fake keeps no {kind}"

    def kubelets_stop_pods(self) -> None:
        """Remove all terminating pods."""
        self.pods = {k: pod for k, pod in self.pods.items() if not pod.is_terminating}

    def called(self, method: str) -> list[str]:
        """Return the subjects of all calls of a method, in order."""
        return [call.subject for call in self.calls if call.method == method]

    # --- reading

    @property
    def name(self) -> str:
        return self._name

    def pending_pods(self, each_page: EachPage = nothing) -> tuple[Pod, ...]:
        self._read("pending_pods")
        each_page()
        return self._sorted_pods(lambda pod: not pod.node_name and not pod.is_terminal)

    def bound_pods(self, each_page: EachPage = nothing) -> tuple[Pod, ...]:
        self._read("bound_pods")
        each_page()
        return self._sorted_pods(lambda pod: bool(pod.node_name) and not pod.is_terminal)

    def pods_on(self, node: str) -> tuple[Pod, ...]:
        self._read("pods_on")
        return self._sorted_pods(lambda pod: pod.node_name == node)

    def pod(self, namespace: str, name: str) -> Pod | None:
        self._read("pod")
        return self.pods.get(f"{namespace}/{name}")

    def nodes(self, each_page: EachPage = nothing) -> tuple[Node, ...]:
        self._read("nodes")
        each_page()
        return tuple(self.node_values[name] for name in sorted(self.node_values))

    def node(self, name: str) -> Node | None:
        self._read("node")
        return self.node_values.get(name)

    def provisioners(self) -> tuple[tuple[Provisioner, ...], tuple[InvalidProvisioner, ...]]:
        self._read("provisioners")
        usable, unusable = self.provisioner_values, self.invalid_provisioners
        return (
            tuple(sorted(usable.values(), key=lambda entry: entry.name)),
            tuple(sorted(unusable.values(), key=lambda entry: (entry.name, entry.kind))),
        )

    def daemonsets(self) -> tuple[DaemonSet, ...]:
        self._read("daemonsets")
        return tuple(daemon_set for _, daemon_set in sorted(self.daemonset_values.items()))

    def disruption_budgets(self) -> tuple[PodDisruptionBudget, ...]:
        self._read("disruption_budgets")
        return tuple(budget for _, budget in sorted(self.budgets.items()))

    def volume_attachments(self, node: str) -> tuple[str, ...]:
        self._read("volume_attachments")
        return tuple(sorted(self.attachments.get(node, ())))

    # --- writing

    def create_node(self, manifest: NodeManifest) -> Node:
        self._write("create_node", manifest.name, manifest)
        node = Node(
            name=manifest.name,
            uid=f"uid-node-{manifest.name}-{self._version}",
            labels=dict(manifest.labels),
            annotations=dict(manifest.annotations),
            taints=manifest.taints,
            finalizers=manifest.finalizers,
            provider_id=manifest.provider_id,
            owners=(manifest.owner.uid,) if manifest.owner is not None else (),
            capacity=manifest.capacity,
            allocatable=manifest.allocatable,
        )
        try:
            return self.post_node(node)
        except ConflictError:
            return self.node_values[manifest.name]

    def post_node(self, node: Node) -> Node:
        """Store a new Node as the API server does: validation comes first, then admission.

        Raises:
            PermanentError: If its name, a label or a taint is invalid, or two taints share key
                and effect.
            ConflictError: If a Node of this name exists.
        """
        refuse_invalid_node(node)
        if node.name in self.node_values:
            raise ConflictError(f"nodes {node.name!r} already exists")
        admitted = Taint(key=keys.NODE_NOT_READY_TAINT, effect=Effect.NO_SCHEDULE)
        stored = replace(
            node,
            resource_version=self._next_version(),
            taints=tuple(dict.fromkeys((*node.taints, admitted))),
            created_at=self.now,
        )
        self.node_values[node.name] = stored
        return stored

    def change_node(self, node: Node, change: NodeChange) -> Node:
        self._write("change_node", node.name, change)
        known = self._as_read(node)
        taints = tuple(t for t in known.taints if t.key not in change.remove_taint_keys)
        present = {(t.key, t.effect) for t in taints}
        added = tuple(t for t in change.add_taints if (t.key, t.effect) not in present)
        flag, finalizers = change.unschedulable, change.finalizers
        changed = replace(
            known,
            labels=merged(known.labels, change.set_labels),
            annotations=merged(known.annotations, change.set_annotations),
            taints=(*taints, *added),
            unschedulable=known.unschedulable if flag is None else flag,
            finalizers=known.finalizers if finalizers is None else finalizers,
            provider_id=change.provider_id or known.provider_id,
            owners=(
                *(uid for uid in known.owners if uid not in change.drop_owners),
                *([_uid_of(change.owner)] if change.owner else []),
            ),
        )
        if changed != known:
            changed = replace(changed, resource_version=self._next_version())
        self.node_values[node.name] = changed
        if changed.deletion_at is not None and not changed.finalizers:
            del self.node_values[node.name]
        elif self.taints_cordoned and change.unschedulable:
            taint = Taint(key=keys.UNSCHEDULABLE_TAINT, effect=Effect.NO_SCHEDULE)
            self.node_values[node.name] = replace(
                changed,
                taints=tuple(dict.fromkeys((*changed.taints, taint))),
                resource_version=self._next_version(),
            )
        return changed

    def delete_node(self, node: Node) -> None:
        self._write("delete_node", node.name)
        if node.name not in self.node_values:
            return
        known = self._as_read(node)
        if not known.finalizers:
            del self.node_values[node.name]
        elif known.deletion_at is None:
            self.node_values[node.name] = replace(
                known, deletion_at=self.now, resource_version=self._next_version()
            )

    def bind(self, pod: Pod, node: str) -> None:
        self._write("bind", pod.key, node)
        known = self.pods.get(pod.key)
        if known is None:
            raise NotFoundError(f"pod {pod.key} is gone")
        if known.uid != pod.uid:
            raise ConflictError(f"pod {pod.key} is another one")
        if known.node_name == node:
            return
        if known.node_name or known.is_terminating:
            raise ConflictError(f"pod {pod.key} is bound to {known.node_name!r} or terminating")
        self.pods[pod.key] = replace(
            known, node_name=node, unschedulable=False, resource_version=self._next_version()
        )

    def bind_all(self, bindings: Sequence[tuple[Pod, str]]) -> tuple[Pod, ...]:
        return tuple(pod for pod, node in bindings if self._bound(pod, node))

    def _bound(self, pod: Pod, node: str) -> bool:
        try:
            self.bind(pod, node)
        except (ConflictError, PermanentError):
            return False
        return True

    def evict(self, pod: Pod) -> None:
        self._write("evict", pod.key)
        if pod.key in self.budgeted:
            raise EvictionRefusedError(f"pod {pod.key}: a PodDisruptionBudget forbids it")
        self._stop(pod)

    def _admit_deletion(self, pod: Pod) -> None:
        if pod.key in self.undeletable:
            raise UnauthorizedError(f"delete pod {pod.key}: 403 admission webhook denied it")

    def delete_pod(self, pod: Pod, grace_seconds: int | None = None) -> None:
        self._write("delete_pod", pod.key)
        self._admit_deletion(pod)
        self._stop(pod, grace_seconds)

    def force_delete_pod(self, pod: Pod) -> None:
        self._write("force_delete_pod", pod.key)
        self._admit_deletion(pod)
        known = self.pods.get(pod.key)
        if known is None or known.uid != pod.uid:
            return
        if pod.key in self.finalized:
            self.pods[pod.key] = replace(known, deletion_at=known.deletion_at or self.now)
        else:
            del self.pods[pod.key]

    def record_events(self, kube_events: Sequence[KubernetesEvent]) -> None:
        self._write("happened", self._name, tuple(kube_events))
        self.kube_events.update(kube_events)
        self.told_at.update(dict.fromkeys(kube_events, self.now))

    def events(self, kind: str, namespace: str, name: str) -> tuple[PastEvent, ...]:
        self._read("events")
        about = (kind, namespace, name)
        found = [
            PastEvent(
                at=self.told_at[event],
                source="dovetail",
                reason=event.reason,
                message=event.message,
                count=count,
            )
            for event, count in self.kube_events.items()
            if (event.kind, event.namespace, event.name) == about
        ]
        return tuple(sorted(found, key=lambda entry: entry.at or self.now))

    def set_provisioner_condition(
        self,
        name: str,
        *,
        active: bool,
        reason: str,
        message: str,
        kind: ConditionType = ConditionType.ACTIVE,
        owner: OwnerKind = OwnerKind.PROVISIONER,
    ) -> None:
        name = owner_key(owner, name)
        self._write("set_provisioner_condition", name, (active, reason, message))
        if name in self.provisioner_values or name in self.invalid_provisioners:
            known = {
                ConditionType.ACTIVE: self.conditions,
                ConditionType.NODES_USABLE: self.usable,
                ConditionType.NODES_CURRENT: self.nodes_current,
                ConditionType.WITHIN_CEILING: self.within_ceiling,
            }
            known[kind][name] = (active, reason, message)

    # --- inside

    def _stop(self, pod: Pod, grace_seconds: int | None = None) -> None:
        known, sooner = self.pods.get(pod.key), grace_seconds is not None
        if known is None or known.uid != pod.uid or (known.is_terminating and not sooner):
            return
        if not known.node_name or known.is_terminal:
            del self.pods[pod.key]
            return
        asked = known.grace_period_seconds if grace_seconds is None else grace_seconds
        ends = self.now + timedelta(seconds=30 if asked is None else asked)
        version, ends = self._next_version(), min(ends, known.deletion_at or ends)
        self.pods[pod.key] = replace(known, deletion_at=ends, resource_version=version)

    def _as_read(self, node: Node) -> Node:
        known = self.node_values.get(node.name)
        if known is None:
            raise NotFoundError(f"node {node.name} is gone")
        if (known.uid, known.resource_version) != (node.uid, node.resource_version):
            raise ConflictError(f"node {node.name} has changed")
        return known

    def _sorted_pods(self, wanted: Callable[[Pod], bool]) -> tuple[Pod, ...]:
        return tuple(sorted(filter(wanted, self.pods.values()), key=lambda pod: pod.key))

    def _write(self, method: str, subject: str, argument: object = None) -> None:
        self.calls.append(Call(method, subject, argument))
        self._raise_planned(method)

    def _known(self, value: _Versioned) -> _Versioned:
        uid = value.uid or f"uid-{type(value).__name__.lower()}-{value.name}"
        version = value.resource_version or self._next_version()
        return replace(value, uid=uid, resource_version=version)

    def _next_version(self) -> str:
        self._version += 1
        return str(self._version)


def _uid_of(owner: Provisioner | Mapping[str, Any]) -> str:
    return owner.uid if isinstance(owner, Provisioner) else str(owner["uid"])
