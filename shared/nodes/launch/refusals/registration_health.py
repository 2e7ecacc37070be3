"""Whether the instances of a NodePool register: the last four results, saved for its conditions.

Source: https://karpenter.sh/docs/concepts/nodepools/#status (2026-11): NodeRegistrationHealthy.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.note import Note
from shared.ports import NodePorts

REGISTRATION_NOTES: Final = "joins#"
_LAST: Final = "last"
_OF: Final = "of"
_MOST: Final = 4
_TOO_MANY: Final = 2
_JOINED: Final = "1"
_KEEP: Final = timedelta(days=400)


def save_registration(ports: NodePorts, node: Node, *, joined: bool) -> None:
    """Save whether an instance of a NodePool registered; results for another hash are dropped.

    A concurrent write may lose a result: four are only a sample.
    """
    pool_name = node.labels.get(keys.NODE_POOL)
    if not pool_name:
        return
    name, shape = ports.cluster.name, node.annotations.get(keys.PROVISIONER_HASH, "")
    note = ports.ledger.note(name, f"{REGISTRATION_NOTES}{pool_name}")
    before = str(note.value.get(_LAST, "")) if note.value.get(_OF) == shape else ""
    last = (before + (_JOINED if joined else "0"))[-_MOST:]
    if (last, shape) != (note.value.get(_LAST), note.value.get(_OF)):
        changed = Note(name=note.name, value={_LAST: last, _OF: shape}, version=note.version)
        ports.ledger.change_note(name, changed, ports.clock.now() + _KEEP)


def registers(note: Mapping[str, object], shape: str) -> bool | None:
    """Return whether instances with this hash register, None if too little is known.

    Args:
        note: The value of the NodePool's note.
        shape: Hash of the NodePool's nodes as it declares them now.
    """
    last = str(note.get(_LAST, "")) if note.get(_OF) == shape else ""
    if last.count("0") >= _TOO_MANY:
        return False
    return True if _JOINED in last else None
