"""Whether instances of a NodePool join: its last four, as a memo that conditions are made from.

Source: https://karpenter.sh/docs/concepts/nodepools/#status (2026-11): NodeRegistrationHealthy.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.memo import Memo
from shared.ports import NodePorts

JOINS: Final = "joins#"
_LAST: Final = "last"
_OF: Final = "of"
_MOST: Final = 4
_TOO_MANY: Final = 2
_JOINED: Final = "1"
_KEEP: Final = timedelta(days=400)


def note_registration(ports: NodePorts, node: Node, *, joined: bool) -> None:
    """Keep whether an instance of a NodePool joined; results of another shape are dropped.

    A faster writer may drop a result: four are a sample.
    """
    pool = node.labels.get(keys.NODE_POOL)
    if not pool:
        return
    name, shape = ports.cluster.name, node.annotations.get(keys.PROVISIONER_HASH, "")
    memo = ports.ledger.memo(name, f"{JOINS}{pool}")
    before = str(memo.value.get(_LAST, "")) if memo.value.get(_OF) == shape else ""
    last = (before + (_JOINED if joined else "0"))[-_MOST:]
    if (last, shape) != (memo.value.get(_LAST), memo.value.get(_OF)):
        changed = Memo(name=memo.name, value={_LAST: last, _OF: shape}, version=memo.version)
        ports.ledger.change_memo(name, changed, ports.clock.now() + _KEEP)


def registers(memo: Mapping[str, object], shape: str) -> bool | None:
    """Return whether instances of a shape join, None when too little is known.

    Args:
        memo: What was kept of the NodePool.
        shape: Hash of what its nodes are now.
    """
    last = str(memo.get(_LAST, "")) if memo.get(_OF) == shape else ""
    if last.count("0") >= _TOO_MANY:
        return False
    return True if _JOINED in last else None
