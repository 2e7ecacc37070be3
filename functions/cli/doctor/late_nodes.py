"""Findings about nodes that start for too long, and about workloads that a brake holds back."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from functions.cli.doctor.findings import Finding
from shared.model.dollars_and_counts import counted
from shared.model.ec2.launches import Slot, Trial, slot_of
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.provisioner import Provisioner, owner_among
from shared.nodes.brakes.runaway import MOST_TRIALS, runaways, workload_of
from shared.nodes.events.node_events import CONSOLE, node_instance_text
from shared.nodes.node_waits import (
    device_plugin_problem,
    is_late,
    missing_devices,
    waiting_for,
)

_MINUTE: Final = 60


def late_nodes(
    nodes: Sequence[Node],
    slots: Sequence[Slot],
    provisioners: Mapping[str, Provisioner],
    pending: Mapping[str, Pod],
    daemonsets: Sequence[DaemonSet],
    now: datetime,
) -> list[Finding]:
    """Return a finding for each of Dovetail's nodes that should take pods by now and does not.

    Args:
        pending: Pods without a node, by uid.
    """
    found: list[Finding] = []
    for node in nodes:
        if not node.is_ours or node.deletion_at is not None or not node.instance_id:
            continue
        if node.was_initialized and node.ready is not True:
            found.append(_not_ready(node))
        elif is_late(node, now) and not node.was_initialized:
            slot = slot_of(slots, node.instance_id)
            nominated = (
                [pending[ref.uid] for ref in slot.pods if ref.uid in pending] if slot else []
            )
            owner = owner_among(node, provisioners)
            found += _late(node, waiting_for(node, owner, nominated), nominated, daemonsets, now)
    return found


def held_workloads(pending: Sequence[Pod], trials: Sequence[Trial], cluster: str) -> list[Finding]:
    """Return a finding for each workload that no node is launched for; it says until when."""
    until = runaways(pending, trials)
    held: dict[str, list[Pod]] = {}
    for pod in pending:
        if pod.uid in until:
            held.setdefault(workload_of(pod), []).append(pod)
    return [
        Finding(
            kind="workload-held",
            subject=workload,
            text=f"{counted(len(pods), 'pod')} held until "
            f"{max(until[pod.uid] for pod in pods):%H:%M} UTC: nodes of {MOST_TRIALS} launches "
            "never joined or never became usable for them; look for 'Unable to register node' in "
            "the kubelet's log on the EC2 console",
            command=f"dovetail why pod/{pods[0].key} --cluster {cluster}",
        )
        for workload, pods in sorted(held.items())
    ]


def _not_ready(node: Node) -> Finding:
    return Finding(
        kind="node-not-ready",
        subject=node.name,
        text=f"{node_instance_text(node)} has joined and is not Ready now; "
        "Dovetail repairs no node, and "
        "removes it once it is empty, if its owner has empty nodes removed; sooner: delete it, and "
        "its pods get another",
        command=f"kubectl describe node {node.name}",
    )


def _late(
    node: Node,
    missing: str,
    nominated: Sequence[Pod],
    daemonsets: Sequence[DaemonSet],
    now: datetime,
) -> list[Finding]:
    minutes = int((now - (node.created_at or now)).total_seconds() // _MINUTE)
    if node.ready is not True:
        return [
            Finding(
                kind="node-not-joined",
                subject=node.name,
                text=f"{node_instance_text(node)} was launched {minutes} min ago "
                "and its kubelet has not "
                "joined; look for 'Unable to register node' in its log on the EC2 console",
                command=f"{CONSOLE} {node.instance_id}",
            )
        ]
    found = [
        Finding(
            kind="node-not-initialized",
            subject=node.name,
            text=f"{node_instance_text(node)} was launched {minutes} min ago, "
            "is Ready and waits for "
            f"{missing or 'the bind function'}",
            command=f"kubectl describe node {node.name}",
        )
    ]
    for resource in sorted({name for pod in nominated for name in missing_devices(node, pod)}):
        trouble = device_plugin_problem(node, resource, daemonsets)
        if trouble:
            found.append(
                Finding(
                    kind="device-plugin",
                    subject=node.name,
                    text=trouble,
                    command="kubectl get daemonsets --all-namespaces",
                )
            )
    return found
