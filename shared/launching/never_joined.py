"""A machine that never joined counts against its pods, its owner, its image and its offering."""

from shared.brakes.runaway import note_failure
from shared.brakes.trials import recent_trials
from shared.launching.ami_canary import ImageRollout
from shared.launching.offering_facts import Fact, note
from shared.launching.registration_health import note_registration
from shared.model.ec2.instance_types import OfferingKey
from shared.model.ec2.launches import Trial
from shared.model.kubernetes.nodes import Node
from shared.ports import NodePorts


def note_never_joined(
    ports: NodePorts, node: Node, offering: OfferingKey | None, trial: Trial | None
) -> bool:
    """Note everywhere that a machine never joined; return whether its image is used no more.

    Args:
        node: What the machine is, or would have been.
        offering: Left out for a while; None where its node does not tell.
        trial: What it was launched for in vain; None when EC2 has terminated it.
    """
    if trial is not None:
        ledger, name = ports.ledger, ports.cluster.name
        note_failure(ledger, name, trial, recent_trials(ledger, name, ports.clock.now()))
    note_registration(ports, node, joined=False)
    if offering is not None:
        note(ports, Fact.NEVER_JOINED, [offering])
    return ImageRollout(ports).failed(node)
