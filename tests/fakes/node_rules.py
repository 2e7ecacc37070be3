"""What an API server refuses in a Node, judged by the rules of the embedded one."""

from functools import cache

from infra.local.kube.kinds import Kinds, Resource
from infra.local.kube.objects.validation import complaints
from shared.manifests.nodes import encode_taint
from shared.model.errors import PermanentError
from shared.model.kubernetes.nodes import Node


def refuse_invalid_node(node: Node) -> None:
    """Check a Node that a client wants to be created.

    Raises:
        PermanentError: If it is invalid; the text is that of the API server.
    """
    metadata = {
        "name": node.name,
        "labels": dict(node.labels),
        "annotations": dict(node.annotations),
        "finalizers": list(node.finalizers),
    }
    spec = {"taints": [encode_taint(taint) for taint in node.taints]}
    causes = complaints(_nodes(), {"metadata": metadata, "spec": spec})
    if causes:
        listed = ", ".join(f"{field}: {message}" for _, message, field in causes)
        raise PermanentError(f"create node {node.name}: 422 {listed}")


@cache
def _nodes() -> Resource:
    return Kinds().core("nodes")
