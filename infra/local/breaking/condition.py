"""How a cluster is at a moment: what waits, and whether nodes and machines fit."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from shared.model.dollars_and_counts import counted, pods_that_wait

Object = Mapping[str, Any]
_OURS: Final = ("karpenter.sh/provisioner-name", "karpenter.sh/nodepool")
_ENDED: Final = ("Succeeded", "Failed")
_ALIVE: Final = ("pending", "running")


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What was read of the three APIs.

    Attributes:
        waiting: Pods that exist and do not run, without those that ended or are being deleted.
        not_ready: Names of Dovetail's nodes that are not Ready.
        machines: Ids of the instances that are pending or running.
        unmatched: Instances without a node of Dovetail, and such nodes without their instance.
    """

    waiting: int
    not_ready: frozenset[str]
    machines: frozenset[str]
    unmatched: int

    @property
    def settled(self) -> bool:
        """Whether every pod runs on Ready nodes, and each machine is a node."""
        return not (self.waiting or self.not_ready or self.unmatched)

    def told(self) -> str:
        parts = [pods_that_wait(self.waiting), counted(len(self.machines), "machine")]
        if self.not_ready:
            parts.append(f"{counted(len(self.not_ready), 'node')} not Ready")
        if self.unmatched:
            parts.append(f"{self.unmatched} not matched between nodes and machines")
        return ", ".join(parts)


def condition_of(
    pods: Iterable[Object], nodes: Iterable[Object], instances: Iterable[Object]
) -> Condition:
    ours = [node for node in nodes if any(key in _labels(node) for key in _OURS)]
    of_nodes = {str(node["spec"].get("providerID", "")).rsplit("/", 1)[-1] for node in ours}
    machines = {row["InstanceId"] for row in instances if row["State"]["Name"] in _ALIVE}
    return Condition(
        waiting=sum(map(_waits, pods)),
        not_ready=frozenset(node["metadata"]["name"] for node in ours if not _is_ready(node)),
        machines=frozenset(machines),
        unmatched=len(of_nodes ^ machines),
    )


def busiest_spot_node(pods: Iterable[Object], nodes: Iterable[Object]) -> str | None:
    """Return the name of the spot node of Dovetail with the most pods, None without any."""
    spot = [
        node["metadata"]["name"]
        for node in nodes
        if _labels(node).get("karpenter.sh/capacity-type") == "spot" and _is_ready(node)
    ]
    counts = dict.fromkeys(spot, 0)
    for pod in pods:
        if pod["spec"].get("nodeName") in counts:
            counts[pod["spec"]["nodeName"]] += 1
    return max(sorted(spot), key=lambda name: counts[name], default=None)


def _labels(node: Object) -> Mapping[str, str]:
    return node["metadata"].get("labels") or {}


def _is_ready(node: Object) -> bool:
    rows = (node.get("status") or {}).get("conditions") or []
    return any(row["type"] == "Ready" and row["status"] == "True" for row in rows)


def _waits(pod: Object) -> bool:
    if pod["metadata"].get("deletionTimestamp"):
        return False
    return (pod.get("status") or {}).get("phase", "Pending") not in ("Running", *_ENDED)
