"""A change to a Node as a JSON patch that applies only to the Node as it was read."""

from collections.abc import Iterator, Mapping
from typing import Any

from shared.kube.paths_and_documents import owner_reference
from shared.manifests.nodes import encode_taint
from shared.model.kubernetes.nodes import Node
from shared.ports import NodeChange

Operation = dict[str, Any]


def node_patch(node: Node, change: NodeChange) -> list[Operation]:
    """Return the operations; the first two fail when uid or resourceVersion differs."""
    return [
        {"op": "test", "path": "/metadata/uid", "value": node.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": node.resource_version},
        *_map("/metadata/labels", node.labels, change.set_labels),
        *_map("/metadata/annotations", node.annotations, change.set_annotations),
        *_finalizers(change),
        *_owner(node, change),
        *_spec(change),
        *_taints(node, change),
    ]


def _map(
    path: str, known: Mapping[str, str], wanted: Mapping[str, str | None]
) -> Iterator[Operation]:
    if wanted and not known:
        # The map itself may be missing.
        yield {"op": "add", "path": path, "value": {}}
    for key in sorted(wanted):
        value = wanted[key]
        place = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
        if value is not None:
            yield {"op": "add", "path": place, "value": value}
        elif key in known:
            yield {"op": "remove", "path": place}


def _finalizers(change: NodeChange) -> Iterator[Operation]:
    if change.finalizers is not None:
        yield {"op": "add", "path": "/metadata/finalizers", "value": list(change.finalizers)}


def _owner(node: Node, change: NodeChange) -> Iterator[Operation]:
    """Change owners one by one: the order of `node.owners` is the manifest's."""
    left = [uid for uid in node.owners if uid not in change.drop_owners]
    for number in range(len(node.owners) - 1, -1, -1):
        if node.owners[number] in change.drop_owners:
            yield {"op": "remove", "path": f"/metadata/ownerReferences/{number}"}
    if change.owner is None:
        return
    reference = owner_reference(change.owner)
    if left:
        yield {"op": "add", "path": "/metadata/ownerReferences/-", "value": reference}
    else:
        yield {"op": "add", "path": "/metadata/ownerReferences", "value": [reference]}


def _spec(change: NodeChange) -> Iterator[Operation]:
    if change.unschedulable is not None:
        yield {"op": "add", "path": "/spec/unschedulable", "value": change.unschedulable}
    if change.provider_id:
        yield {"op": "add", "path": "/spec/providerID", "value": change.provider_id}


def _taints(node: Node, change: NodeChange) -> Iterator[Operation]:
    """Change taints one by one, so that the others keep fields that Taint does not have.

    The order of `node.taints` is the manifest's, and the version is tested: positions are valid.
    """
    kept = []
    for number in range(len(node.taints) - 1, -1, -1):
        if node.taints[number].key in change.remove_taint_keys:
            yield {"op": "remove", "path": f"/spec/taints/{number}"}
        else:
            kept.append(node.taints[number])
    present = {(taint.key, taint.effect) for taint in kept}
    added = [
        add_taint
        for add_taint in change.add_taints
        if (add_taint.key, add_taint.effect) not in present
    ]
    if added and not node.taints:
        yield {"op": "add", "path": "/spec/taints", "value": [encode_taint(t) for t in added]}
        return
    for taint in added:
        yield {"op": "add", "path": "/spec/taints/-", "value": encode_taint(taint)}
