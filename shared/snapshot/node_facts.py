"""EC2's facts about an instance take precedence over what its kubelet may write on the Node.

The NodeRestriction admission plugin lets a kubelet change every annotation and finalizer of its own
Node, and all labels but those of `kubernetes.io` and `k8s.io` that are not a kubelet's. So instance
type, zone, capacity type, Provisioner and the marks of Dovetail's nodes may have any value. EC2's
description of the instance and its tags change only with permissions in the account.

A kubelet cannot write to a Node of another name, but it may create its own with any providerID.

Source: https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction
and https://github.com/kubernetes/kubernetes/blob/v1.35.4/plugin/pkg/admission/noderestriction/admission.go
(admitNode, getForbiddenLabels; 2026-11).
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from msgspec import Struct, field

from shared.model import labels as keys
from shared.model.ec2.launches import Instance, LaunchIntent, Slot
from shared.model.errors import ThrottledError
from shared.model.kubernetes.nodes import Node
from shared.model.values import replace
from shared.ports import NodeChange, NodePorts

# Karpenter's capacity type of an instance in a capacity reservation; EC2 describes it as on-demand.
_RESERVED: Final = "reserved"
# EC2 allows an account 20 calls of this kind a second.
# Source: https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html (2026-11).
_PAUSES: Final = (timedelta(seconds=1), timedelta(seconds=2))


class Contradiction(Struct, frozen=True, kw_only=True):
    """A Node of Dovetail that contradicts EC2.

    Attributes:
        node: The Node as it is.
        change: The change that corrects it.
    """

    node: Node
    change: NodeChange

    @property
    def text(self) -> str:
        """What is corrected, for messages."""
        parts = [
            f"{key} {self.node.labels.get(key, '') or 'missing'} (EC2: {value or 'none'})"
            for key, value in sorted(self.change.set_labels.items())
        ]
        parts += [f"annotation {key}" for key in sorted(self.change.set_annotations)]
        if self.change.finalizers is not None:
            parts.append(f"finalizer {keys.TERMINATION_FINALIZER}")
        return ", ".join(parts)


class NodeFacts(Struct, frozen=True, kw_only=True):
    """The nodes of a cluster as EC2 describes their instances.

    Attributes:
        nodes: All nodes, in their order. A node that contradicts EC2 is corrected and cordoned,
            because kube-scheduler sees its uncorrected labels; a stranger is not Dovetail's.
        contradictions: The contradictions, in the same order.
        strangers: Why a Node that claims to be Dovetail's is not, by name.
    """

    nodes: tuple[Node, ...]
    contradictions: tuple[Contradiction, ...] = ()
    strangers: Mapping[str, str] = field(default_factory=dict)


def cluster_instances(
    ports: NodePorts, also: Mapping[str, str] = MappingProxyType({})
) -> tuple[Instance, ...]:
    """Return the instances with the cluster's tag that are not terminated, sorted by ID.

    A throttled call is retried twice: nothing is planned without its answer.

    Args:
        also: Further tags that the instances must have.

    Raises:
        RetryableError: If EC2 does not answer.
    """
    tags = {keys.TAG_CLUSTER: ports.cluster.name, **also}
    for pause in _PAUSES:
        try:
            return ports.cloud.tagged_instances(tags)
        except ThrottledError:
            ports.clock.sleep(pause)
    return ports.cloud.tagged_instances(tags)


def node_facts(
    ports: NodePorts,
    nodes: Sequence[Node],
    instances: Iterable[Instance],
    slots: Iterable[Slot],
    intents: Iterable[LaunchIntent],
) -> NodeFacts:
    """Return the nodes as EC2 describes their instances.

    Nodes that are still to be created or adopted are not corrected, nor are Nodes that change hands
    with Karpenter. If a Node claims an instance without the cluster's tags, EC2 is called again for
    it: lists may lag behind, and lack instances that have ended.

    Args:
        instances: The instances with the cluster's tags.
        slots: The slots, read before the nodes.
        intents: The open intents, read before the instances.
    """
    tagged = {instance.instance_id: instance for instance in instances}
    paired = {slot.instance_id: bool(slot.node_name) for slot in slots}
    launching = _launching(ports, nodes, tagged, paired, intents)
    unproved = sorted(
        {node.instance_id for node in nodes if _may_be_ours(node) and node.instance_id}
        - tagged.keys()
        - paired.keys()
    )
    shown = ports.cloud.instances(unproved) if unproved else ()
    others = {instance.instance_id: instance for instance in shown}
    found: list[Node] = []
    contradictions: list[Contradiction] = []
    strangers: dict[str, str] = {}
    for node in nodes:
        instance = tagged.get(node.instance_id)
        other = others.get(node.instance_id)
        reason = _why_stranger(ports.cluster.name, node, instance or other)
        if reason:
            if node.provisioner:
                strangers[node.name] = reason
            found.append(_disowned(node, provider_id="" if instance else node.provider_id))
            continue
        if not node.is_ours:
            instance = instance or other
        if instance is None or node.instance_id in launching or _changes_hands(node, instance):
            found.append(node)
            continue
        change = _correction(node, instance)
        if change is None:
            found.append(node)
            continue
        contradictions.append(Contradiction(node=node, change=change))
        found.append(_corrected(node, change))
    return NodeFacts(nodes=tuple(found), contradictions=tuple(contradictions), strangers=strangers)


def _launching(
    ports: NodePorts,
    nodes: Iterable[Node],
    tagged: Mapping[str, Instance],
    paired: Mapping[str, bool],
    intents: Iterable[LaunchIntent],
) -> set[str]:
    """Return the instances whose Nodes are still to be created or adopted.

    These are counted by their slots or, without a slot, by the intent of their group. An instance
    that no longer has a slot is counted by its Node alone, although its group may still request
    others. The ledger is read for those instances whose Node contradicts EC2.

    Args:
        paired: Whether the Node is created, by ID of each instance that has a slot.
    """
    groups = {(intent.plan_id, str(intent.group)) for intent in intents}
    doubtful = sorted(
        {
            node.instance_id
            for node in nodes
            if (instance := tagged.get(node.instance_id)) is not None
            and node.instance_id not in paired
            and (instance.tags.get(keys.TAG_PLAN), instance.tags.get(keys.TAG_GROUP)) in groups
            and _correction(node, instance) is not None
        }
    )

    def is_launching(instance_id: str) -> bool:
        # In this order, because the instance may be paired in between.
        had_slot = ports.ledger.cluster_of(instance_id) is not None
        return not had_slot or ports.ledger.slot_with(ports.cluster.name, instance_id) is not None

    answers = ports.executor.each(is_launching, doubtful)
    left = {instance_id for instance_id, is_left in zip(doubtful, answers, strict=True) if is_left}
    return left | {instance_id for instance_id, is_made in paired.items() if not is_made}


def _may_be_ours(node: Node) -> bool:
    """Return whether a Node claims to be Dovetail's, or may have lost its marks.

    Its instance may have ended since. Nodes of Karpenter have the finalizer, too, so only those
    that are not Ready are checked.
    """
    lost = keys.TERMINATION_FINALIZER in node.finalizers and node.ready is not True
    return bool(node.provisioner) or lost


def _why_stranger(cluster: str, node: Node, instance: Instance | None) -> str:
    """Return why a Node does not belong to its instance, or the instance not to the cluster."""
    if instance is None:
        return ""
    if instance.tags.get(keys.TAG_CLUSTER) != cluster:
        tagged_cluster = instance.tags.get(keys.TAG_CLUSTER, "")
        tag = f"the tag {keys.TAG_CLUSTER} of {instance.instance_id}"
        return f"{tag} is {tagged_cluster!r}, not {cluster!r}"
    if not instance.matches_node(node.name):
        return f"{instance.instance_id} is the instance of node {instance.private_dns_name}"
    return ""


def _disowned(node: Node, *, provider_id: str) -> Node:
    """Return the Node without the marks of Dovetail's nodes."""
    left = {key: value for key, value in node.annotations.items() if key != keys.SLOT}
    return replace(node, annotations=left, provider_id=provider_id)


def _changes_hands(node: Node, instance: Instance) -> bool:
    taken_over = instance.tags.get(keys.TAG_PLAN, "").startswith(keys.TAKE_OVER_PLAN)
    return taken_over and keys.NODE_CLAIM in node.annotations and keys.SLOT not in node.annotations


def _correction(node: Node, instance: Instance) -> NodeChange | None:
    """Return the change that makes a Node agree with EC2, None if it does."""
    owner = instance.owner_labels
    wanted: dict[str, str | None] = {**instance.offering.labels, **owner}
    if owner:
        wanted |= dict.fromkeys(keys.OWNER_LABELS - owner.keys())
    if node.labels.get(keys.CAPACITY_TYPE) == _RESERVED:
        del wanted[keys.CAPACITY_TYPE]
    labels = {key: value for key, value in wanted.items() if node.labels.get(key) != value}
    annotations = _annotations(node, instance) if owner else {}
    lacks = owner and node.deletion_at is None and keys.TERMINATION_FINALIZER not in node.finalizers
    finalizers = (*node.finalizers, keys.TERMINATION_FINALIZER) if lacks else None
    if not labels and not annotations and finalizers is None:
        return None
    return NodeChange(set_labels=labels, set_annotations=annotations, finalizers=finalizers)


def _annotations(node: Node, instance: Instance) -> dict[str, str | None]:
    """Return the annotations that identify a node of Dovetail, if they must be corrected."""
    plan_id, group = (instance.tags.get(key, "") for key in (keys.TAG_PLAN, keys.TAG_GROUP))
    launch = f"{plan_id}/{group}/" if plan_id else ""
    slot_name = node.annotations.get(keys.SLOT)
    wanted: dict[str, str | None] = {}
    if slot_name is None or not slot_name.startswith(launch):
        wanted[keys.SLOT] = f"{launch or 'unknown/0/'}0"
    if instance.image_id and node.annotations.get(keys.IMAGE_ID) != instance.image_id:
        wanted[keys.IMAGE_ID] = instance.image_id
    return wanted


def _corrected(node: Node, change: NodeChange) -> Node:
    """Return a node after a change, cordoned."""
    return replace(
        node,
        labels=_with(node.labels, change.set_labels),
        annotations=_with(node.annotations, change.set_annotations),
        finalizers=node.finalizers if change.finalizers is None else change.finalizers,
        unschedulable=True,
    )


def _with(texts: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """Return labels or annotations after a change; None removes a key."""
    changed = {**texts, **changes}
    return {key: value for key, value in changed.items() if value is not None}
