"""An instance that never joined counts against its pods, its owner, its image and its offering."""

from shared.model.ec2.instance_types import OfferingKey
from shared.model.ec2.launches import Trial
from shared.model.kubernetes.nodes import Node
from shared.nodes.brakes.runaway import recent_trials, save_failure
from shared.nodes.launch.ami_canary import ImageCanary
from shared.nodes.launch.refusals.offering_facts import OfferingFact, mark_unavailable
from shared.nodes.launch.refusals.registration_health import save_registration
from shared.ports import NodePorts


def save_never_joined(
    ports: NodePorts, node: Node, offering: OfferingKey | None, trial: Trial | None
) -> bool:
    """Record everywhere that an instance never joined; return whether its image is no longer used.

    Args:
        node: The node that the instance is, or would have become.
        offering: Marked unavailable for a while; None if the node's labels lack it.
        trial: What it was launched for; None if EC2 has terminated it.
    """
    if trial is not None:
        ledger, name = ports.ledger, ports.cluster.name
        save_failure(ledger, name, trial, recent_trials(ledger, name, ports.clock.now()))
    save_registration(ports, node, joined=False)
    if offering is not None:
        mark_unavailable(ports, OfferingFact.NEVER_JOINED, [offering])
    return ImageCanary(ports).save_failure(node)
