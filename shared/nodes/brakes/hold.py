"""Whether Dovetail may act in a cluster: pause, shadow mode, other autoscalers, catalog."""

from typing import Final

from msgspec import Struct

from shared.model import labels as keys
from shared.ports import ClusterPorts, Rival, RivalKind

PAUSED: Final = "paused"
SHADOW: Final = "shadow"
RIVAL: Final = "another autoscaler"
NO_CATALOGUE: Final = "no catalogue"
PAUSED_REASON: Final = "Paused"
RIVAL_REASON: Final = "AnotherAutoscaler"
NO_CATALOGUE_REASON: Final = "NoCatalogue"
# EC2 Auto Scaling sets this tag on every instance of its groups.
_GROUP_TAG: Final = "aws:autoscaling:groupName"


class Hold(Struct, frozen=True, kw_only=True):
    """Why nothing is launched or removed in a whole cluster.

    Attributes:
        reason: The reason of conditions and Events.
        text: The message: what blocks, and how that ends.
    """

    reason: str
    text: str


def rivals_of(ports: ClusterPorts) -> tuple[Rival, ...]:
    """Return the running autoscalers that would work on the same nodes, sorted.

    Karpenter always works on the same objects and finalizer. Cluster Autoscaler only terminates
    instances of Auto Scaling groups: it is a rival once such a group contains a node of Dovetail.
    """
    running = ports.rivals.running()
    if any(rival.kind == RivalKind.CLUSTER_AUTOSCALER for rival in running) and not _in_a_group(
        ports
    ):
        running = tuple(rival for rival in running if rival.kind != RivalKind.CLUSTER_AUTOSCALER)
    return running


def held_back(ports: ClusterPorts, rivals: tuple[Rival, ...]) -> str:
    """Return why no launch and no voluntary removal is allowed, empty if both are.

    Shadow mode continues beside another autoscaler: its reports show what Dovetail would do
    instead.
    """
    if ports.brakes.paused:
        return PAUSED
    if ports.brakes.shadow:
        return SHADOW
    return RIVAL if rivals else ""


def hold_of(ports: ClusterPorts, rivals: tuple[Rival, ...], catalogue: str = "") -> Hold | None:
    """Return what Provisioners and pending pods show while nothing is launched, else None.

    Args:
        catalogue: What is wrong with the catalog, empty for nothing or if that is not known.
    """
    if ports.brakes.paused:
        parameter = f"/dovetail/clusters/{ports.cluster.name}/brakes"
        text = (
            f"cluster {ports.cluster.name} is paused by SSM parameter {parameter}: "
            "no node is launched or removed by choice until it is resumed"
        )
        return Hold(reason=PAUSED_REASON, text=text)
    if rivals:
        who = ", ".join(f"{rival.kind.value} (lease {rival.where})" for rival in rivals)
        text = f"{who} is running: no node is launched or removed beside it; stop one of the two"
        return Hold(reason=RIVAL_REASON, text=text)
    if catalogue:
        return Hold(reason=NO_CATALOGUE_REASON, text=catalogue)
    return None


def _in_a_group(ports: ClusterPorts) -> bool:
    instances = ports.cloud.tagged_instances({keys.TAG_CLUSTER: ports.cluster.name})
    return any(_GROUP_TAG in instance.tags for instance in instances)
