"""Everything one decision sees, frozen."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from shared.model.ec2.instance_types import InstanceType, OfferingKey
from shared.model.ec2.launches import LaunchIntent, PlannedNode, Slot
from shared.model.kubernetes.daemonsets import DaemonSet
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.provisioner import Provisioner
from shared.model.resources import Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionerSite:
    """Where a Provisioner's nodes can stand.

    Attributes:
        zones: Zones with at least one matching subnet, sorted.
        reason: Why there is none, for people; empty when `zones` is not.
        refusal: Why EC2 is not asked for it now, for people; empty when it may be. There are no
            zones then.
        refused: Offerings that EC2 refuses to this Provisioner alone.
        without_image: Instance types that no image of its template boots; empty when none is found
            at all, or when that is not known.
        observed: What its nodes have shown for pods, by type: of memory, and of what they had less
            of than was estimated.
    """

    provisioner: str
    zones: tuple[str, ...]
    reason: str = ""
    refusal: str = ""
    refused: frozenset[OfferingKey] = frozenset()
    without_image: frozenset[str] = frozenset()
    observed: Mapping[str, Resources] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSnapshot:
    """Everything one provisioning decision sees.

    Attributes:
        taken_at: When gathering began (UTC).
        pending: Unbound pods, provisionable or not, sorted by key.
        bound: Pods on nodes that are not terminal, sorted by key.
        slots: Launched nodes whose promises are not yet kept.
        intents: Unfinished launches.
        promised: Uids of pods that unfinished launches were decided for: they count as placed.
        launching: Nodes of unfinished launches that have no instance yet, as they were planned.
        namespaces: Labels of namespaces by name; one that is absent has only its own name.
        instance_types: What can be bought in the Region, sorted by name.
        unavailable: Offerings EC2 was out of lately, or beyond a quota.
        seed: Of every pseudo-random choice in the decision.
    """

    cluster: str
    taken_at: datetime
    pending: tuple[Pod, ...]
    bound: tuple[Pod, ...]
    nodes: tuple[Node, ...]
    provisioners: tuple[Provisioner, ...]
    sites: tuple[ProvisionerSite, ...]
    daemonsets: tuple[DaemonSet, ...]
    slots: tuple[Slot, ...]
    intents: tuple[LaunchIntent, ...]
    promised: frozenset[str] = frozenset()
    launching: tuple[PlannedNode, ...] = ()
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict, hash=False)
    instance_types: tuple[InstanceType, ...]
    unavailable: frozenset[OfferingKey] = frozenset()
    seed: int = 0

    def owner_of(self, node: Node) -> str:
        """Return the name of what a node was launched for by Dovetail, empty for any other node.

        A Provisioner that is gone still has its nodes, unless a NodePool has its name now.
        """
        found = next((owner for owner in self.provisioners if owner.name == node.provisioner), None)
        return node.provisioner if found is None or found.owns(node) else ""
