"""The input of one decision, frozen."""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct, field

from shared.model.brakes import Ceiling
from shared.model.ec2.instance_types import InstanceType, OfferingKey
from shared.model.ec2.launches import LaunchIntent, PlannedNode, Slot
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.provisioner import Provisioner
from shared.model.resources import Resources


class ProvisionerSite(Struct, frozen=True, kw_only=True):
    """Where a Provisioner's nodes can be launched.

    Attributes:
        zones: Zones with at least one matching subnet, sorted.
        reason: Why there is none, for people; empty when `zones` is not.
        refusal: Why no launch is tried for it now, for people; there are no zones then. Empty when
            launches may be tried.
        refused: Offerings that EC2 refuses to this Provisioner alone.
        without_image: Instance types that no image of its template boots; empty when there is no
            image at all, or when that is not known.
        observed: Allocatable resources that its nodes have reported, by instance type: memory, and
            whatever was less than estimated.
    """

    provisioner: str
    zones: tuple[str, ...]
    reason: str = ""
    refusal: str = ""
    refused: frozenset[OfferingKey] = frozenset()
    without_image: frozenset[str] = frozenset()
    observed: Mapping[str, Resources] = field(default_factory=dict)


class ClusterSnapshot(Struct, frozen=True, kw_only=True):
    """The input of one provisioning decision.

    Attributes:
        taken_at: When reading it began (UTC).
        pending: Unbound pods, provisionable or not, sorted by key.
        bound: Pods on nodes that are not terminal, sorted by key.
        slots: Launched nodes whose nominated pods are not all bound yet.
        intents: Unfinished launches.
        promised: Uids of pods that unfinished launches were decided for: they count as placed.
        launching: Nodes of unfinished launches that have no instance yet, as they were planned.
        namespaces: Labels of namespaces by name; an absent namespace has only the label of its
            name.
        instance_types: Instance types that can be launched in the Region, sorted by name.
        unavailable: Offerings for which EC2 recently had no capacity, or that exceed a quota.
        ceiling: That of the whole cluster; None if no ceiling applies, of a Provisioner neither.
        seed: Seed of every pseudo-random choice in the decision.
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
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    instance_types: tuple[InstanceType, ...]
    unavailable: frozenset[OfferingKey] = frozenset()
    ceiling: Ceiling | None = None
    seed: int = 0

    def owner_of(self, node: Node) -> str:
        """Return the name of the owner that Dovetail launched a node for, empty for other nodes.

        A deleted Provisioner still owns its nodes, unless a NodePool has its name now.
        """
        found = next((owner for owner in self.provisioners if owner.name == node.provisioner), None)
        return node.provisioner if found is None or found.owns(node) else ""
