"""The labels of namespaces, which are read only if rules of pods select by them."""

from collections.abc import Iterable, Mapping

from shared.model.kubernetes.pods import Pod
from shared.ports import NodeCluster


def namespaces_for(cluster: NodeCluster, pods: Iterable[Pod]) -> Mapping[str, Mapping[str, str]]:
    """Return the labels of namespaces by name; empty if no pod's rule selects by them."""
    distinct = {id(pod.scheduling): pod.scheduling for pod in pods}
    asked = any(
        term.namespace_selector is not None
        for scheduling in distinct.values()
        for term in (*scheduling.affinity, *scheduling.anti_affinity)
    )
    return cluster.namespaces() if asked else {}
