"""How a cluster is at a moment: what waits, and whether nodes and instances fit."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from infra.local.cluster_simulator.rules.matching import is_finished, is_true, labels_of
from shared.model.dollars_and_counts import counted, pods_that_wait

Object = Mapping[str, Any]
_OURS: Final = ("karpenter.sh/provisioner-name", "karpenter.sh/nodepool")
_ALIVE: Final = ("pending", "running")


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What was read of the three APIs.

    Attributes:
        waiting: Pods that exist and do not run, without those that ended or are being deleted.
        not_ready: Names of Dovetail's nodes that are not Ready.
        instance_ids: Ids of the instances that are pending or running.
        unmatched: Instances without a node of Dovetail, and such nodes without their instance.
    """

    waiting: int
    not_ready: frozenset[str]
    instance_ids: frozenset[str]
    unmatched: int

    @property
    def settled(self) -> bool:
        """Whether every pod runs on Ready nodes, and each instance is a node."""
        return not (self.waiting or self.not_ready or self.unmatched)

    def told(self) -> str:
        parts = [pods_that_wait(self.waiting), counted(len(self.instance_ids), "instance")]
        if self.not_ready:
            parts.append(f"{counted(len(self.not_ready), 'node')} not Ready")
        if self.unmatched:
            parts.append(f"{self.unmatched} not matched between nodes and instances")
        return ", ".join(parts)


def condition_of(
    pods: Iterable[Object], nodes: Iterable[Object], instances: Iterable[Object]
) -> Condition:
    ours = [node for node in nodes if any(key in labels_of(node) for key in _OURS)]
    of_nodes = {str(node["spec"].get("providerID", "")).rsplit("/", 1)[-1] for node in ours}
    instance_ids = {row["InstanceId"] for row in instances if row["State"]["Name"] in _ALIVE}
    return Condition(
        waiting=sum(map(_waits, pods)),
        not_ready=frozenset(
            node["metadata"]["name"] for node in ours if not is_true(node, "Ready")
        ),
        instance_ids=frozenset(instance_ids),
        unmatched=len(of_nodes ^ instance_ids),
    )


def busiest_spot_node(pods: Iterable[Object], nodes: Iterable[Object]) -> str | None:
    """Return the name of the spot node of Dovetail with the most pods, None without any."""
    spot = [
        node["metadata"]["name"]
        for node in nodes
        if labels_of(node).get("karpenter.sh/capacity-type") == "spot" and is_true(node, "Ready")
    ]
    counts = Counter(pod["spec"].get("nodeName") for pod in pods)
    return max(sorted(spot), key=lambda name: counts[name], default=None)


def _waits(pod: Object) -> bool:
    if pod["metadata"].get("deletionTimestamp") or is_finished(pod):
        return False
    return bool((pod.get("status") or {}).get("phase") != "Running")
