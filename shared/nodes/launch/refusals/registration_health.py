"""Whether instances register; for a NodePool the last four results are saved for its conditions.

Source: https://karpenter.sh/docs/concepts/nodepools/#status (2026-11): NodeRegistrationHealthy.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from shared.model import labels as keys
from shared.model.ec2.instance_types import OfferingKey
from shared.model.ec2.launches import Trial
from shared.model.kubernetes.nodes import Node
from shared.model.note import Note
from shared.nodes.brakes.runaway import save_failure
from shared.nodes.launch.ami_canary import ImageCanary
from shared.nodes.launch.refusals.offering_facts import OfferingFact, mark_unavailable
from shared.ports import NodePorts

REGISTRATION_NOTES: Final = "joins#"
_LAST: Final = "last"
_OF: Final = "of"
_MOST: Final = 4
_TOO_MANY: Final = 2
_JOINED: Final = "1"
_KEEP: Final = timedelta(days=400)


def save_never_joined(
    ports: NodePorts, node: Node, offering: OfferingKey | None, trial: Trial | None
) -> bool:
    """Record everywhere that an instance never joined; return whether its image is no longer used.

    It counts against its pods, its owner, its image and its offering.

    Args:
        node: The node that the instance is, or would have become.
        offering: Marked unavailable for a while; None if the node's labels lack it.
        trial: What it was launched for; None if EC2 has terminated it.
    """
    if trial is not None:
        save_failure(ports.ledger, ports.cluster.name, trial)
    save_registration(ports, node, joined=False)
    if offering is not None:
        mark_unavailable(ports, OfferingFact.NEVER_JOINED, [offering])
    return ImageCanary(ports).save_failure(node)


def save_registration(ports: NodePorts, node: Node, *, joined: bool) -> None:
    """Save whether an instance of a NodePool registered; results for another hash are dropped.

    A concurrent write may lose a result: four are only a sample.
    """
    pool_name = node.labels.get(keys.NODE_POOL)
    if not pool_name:
        return
    name, shape = ports.cluster.name, node.annotations.get(keys.PROVISIONER_HASH, "")
    note = ports.ledger.note(name, f"{REGISTRATION_NOTES}{pool_name}")
    last = (_results(note.value, shape) + (_JOINED if joined else "0"))[-_MOST:]
    value = {_LAST: last, _OF: shape}
    if value != note.value:
        changed = Note(name=note.name, value=value, version=note.version)
        ports.ledger.change_note(name, changed, ports.clock.now() + _KEEP)


def registers(note: Mapping[str, object], shape: str) -> bool | None:
    """Return whether instances with this hash register, None if too little is known.

    Args:
        note: The value of the NodePool's note.
        shape: Hash of the NodePool's nodes as it declares them now.
    """
    last = _results(note, shape)
    if last.count("0") >= _TOO_MANY:
        return False
    return True if _JOINED in last else None


def _results(note: Mapping[str, object], shape: str) -> str:
    """Return the last results of instances with this hash, the latest last."""
    return str(note.get(_LAST, "")) if note.get(_OF) == shape else ""
