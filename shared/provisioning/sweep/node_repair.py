"""Corrects Nodes that contradict EC2.

Records Events on them and on Nodes that falsely claim to be Dovetail's.
"""

import contextlib

from shared.model.errors import ConflictError, NotFoundError
from shared.model.kubernetes.nodes import Node
from shared.nodes.events.node_events import event_on
from shared.nodes.events.recorder import EventRecorder
from shared.ports import NodePorts
from shared.provisioning.sweep.node_by_node import NodeByNode
from shared.snapshot.node_facts import NodeFacts


def repair_nodes(ports: NodePorts, facts: NodeFacts, node_by_node: NodeByNode) -> int:
    """Correct Nodes, with an Event on each and on strangers; return the number of both."""
    changes = {found.node.name: found.change for found in facts.contradictions}

    def repair(node: Node) -> int:
        # A Node that others write to all the time still contradicts EC2 in a minute.
        with contextlib.suppress(ConflictError, NotFoundError):
            ports.cluster.change_node(node, changes[node.name])
        return 1

    node_by_node.each(repair, [found.node for found in facts.contradictions])
    EventRecorder(ports).record(
        [
            *(
                event_on(
                    found.node,
                    "NodeCorrected",
                    f"contradicted EC2 and was corrected: {found.text}; its own kubelet may have "
                    "written this: check what runs on the instance",
                )
                for found in facts.contradictions
            ),
            *(
                event_on(
                    node,
                    "NotOurInstance",
                    f"has Dovetail's annotation, but {facts.strangers[node.name]}: Dovetail "
                    "neither counts nor changes it",
                )
                for node in facts.nodes
                if node.name in facts.strangers
            ),
        ]
    )
    return len(facts.contradictions) + len(facts.strangers)
