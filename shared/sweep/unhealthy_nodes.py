"""Nodes that were initialized once and have not been Ready for five minutes: told, once each."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from shared.disruption.unhealthy_nodes import prospect
from shared.events.node_events import MOST_PODS, unhealthy
from shared.events.recorder import EventRecorder
from shared.model.digest import digest, digests_of
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.provisioner import Provisioner, owner_among
from shared.ports import NodePorts

_TOLD: Final = "unhealthy-told"
_MARKS: Final = "marks"
_KEEP: Final = timedelta(days=400)


def tell_unhealthy(
    ports: NodePorts,
    nodes: Sequence[Node],
    bound: Sequence[Pod],
    owners: Mapping[str, Provisioner],
    *,
    held_back: str,
    now: datetime,
) -> None:
    """Record on each of Dovetail's nodes that it is NotReady for long, and what becomes of it.

    Each is told once for as long as it stays so, at most 25 a minute: each Event is a call to the
    API server.

    Args:
        bound: Pods on nodes.
        owners: By name.
        held_back: Why nothing is removed in the cluster, empty where it is.
    """
    found = {_mark(node): node for node in nodes if node.is_ours and node.is_unhealthy(now)}
    if not found:
        return
    memo = ports.ledger.memo(ports.cluster.name, _TOLD)
    told = digests_of(str(memo.value.get(_MARKS, ""))) & found.keys()
    fresh = sorted(found.keys() - told)[:MOST_PODS]
    if not fresh:
        return
    marks = "".join(sorted(told.union(fresh)))
    # Noted first: an Event that is lost is better than one each minute.
    if ports.ledger.change_memo(
        ports.cluster.name, replace(memo, value={_MARKS: marks}), now + _KEEP
    ):
        EventRecorder(ports).record_each(
            *(
                unhealthy(
                    node,
                    prospect(
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
    """Name a node and the time since when it is not Ready."""
    return digest(node.uid, str(node.ready_changed_at))
