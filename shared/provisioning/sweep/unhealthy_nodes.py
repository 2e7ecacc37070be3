"""Records once each node that was initialized and has not been Ready for five minutes."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from shared.disruption.unhealthy_outcome import unhealthy_outcome
from shared.model.digest import digest, digests_of
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.provisioner import Provisioner, owner_among
from shared.model.values import replace
from shared.nodes.events.node_events import MOST_PODS, unhealthy
from shared.nodes.events.recorder import EventRecorder
from shared.ports import NodePorts

_RECORDED: Final = "unhealthy-told"
_MARKS: Final = "marks"
_KEEP: Final = timedelta(days=400)


def record_unhealthy(
    ports: NodePorts,
    nodes: Sequence[Node],
    bound: Sequence[Pod],
    owners: Mapping[str, Provisioner],
    *,
    held_back: str,
    now: datetime,
) -> None:
    """Record on each unhealthy node of Dovetail that it is NotReady, and what happens to it.

    Each node is recorded once for as long as it stays NotReady, at most 25 nodes a minute: each
    Event is a call to the API server.

    Args:
        bound: Pods on nodes.
        owners: Provisioners by name.
        held_back: Why nothing is removed in the cluster, empty if removals are allowed.
    """
    found = {_mark(node): node for node in nodes if node.is_ours and node.is_unhealthy(now)}
    if not found:
        return
    note = ports.ledger.note(ports.cluster.name, _RECORDED)
    recorded = digests_of(str(note.value.get(_MARKS, ""))) & found.keys()
    fresh = sorted(found.keys() - recorded)[:MOST_PODS]
    if not fresh:
        return
    marks = "".join(sorted(recorded.union(fresh)))
    # The note is written first: losing an Event is better than recording one each minute.
    if ports.ledger.change_note(
        ports.cluster.name, replace(note, value={_MARKS: marks}), now + _KEEP
    ):
        EventRecorder(ports).record_each(
            *(
                unhealthy(
                    node,
                    unhealthy_outcome(
                        node,
                        owner_among(node, owners),
                        [pod for pod in bound if pod.node_name == node.name],
                        held_back,
                    ),
                )
                for node in (found[mark] for mark in fresh)
            )
        )


def _mark(node: Node) -> str:
    """Return a digest of a node and of the time since when it is not Ready."""
    return digest(node.uid, str(node.ready_changed_at))
