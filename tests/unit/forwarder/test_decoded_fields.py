"""Pages of pods and nodes are decoded with all fields that the views read."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from functions.forwarder.views import view_node, view_pod
from shared.kube.kept.decoding import NODE_PAGE_DECODER, POD_PAGE_DECODER
from shared.model import labels as keys
from tests.scale import manifests

OURS = manifests.node(1, joining=True)
OF_A_POOL = {
    **OURS,
    "metadata": {
        **OURS["metadata"],
        "labels": {keys.NODE_POOL: "a", keys.INITIALIZED: "true"},
        "annotations": {keys.SLOT: "s", keys.PRICE: "5", keys.EMPTINESS_TIMESTAMP: "2026-11-25"},
        "deletionTimestamp": "2026-11-25T00:00:00Z",
    },
}
WAITS = manifests.pod(1, None)


@pytest.mark.parametrize(
    ("decode", "view", "raw"),
    [
        (POD_PAGE_DECODER, view_pod, WAITS),
        (POD_PAGE_DECODER, view_pod, manifests.pod(1, 2)),
        (
            POD_PAGE_DECODER,
            view_pod,
            {**WAITS, "spec": {**WAITS["spec"], "schedulingGates": [{"name": "a"}]}},
        ),
        (
            POD_PAGE_DECODER,
            view_pod,
            {**WAITS, "spec": {**WAITS["spec"], "schedulerName": "fargate-scheduler"}},
        ),
        (
            POD_PAGE_DECODER,
            view_pod,
            {**WAITS, "status": {**WAITS["status"], "nominatedNodeName": "n"}},
        ),
        (POD_PAGE_DECODER, view_pod, {**WAITS, "status": {"phase": "Succeeded"}}),
        (NODE_PAGE_DECODER, view_node, OURS),
        (NODE_PAGE_DECODER, view_node, OF_A_POOL),
    ],
    ids=("waits", "runs", "gated", "fargate", "nominated", "ended", "ours", "of a pool"),
)
def test_a_view_of_a_decoded_page_is_that_of_the_whole_object(
    decode: Callable[[bytes], Any], view: Callable[[Any], object], raw: dict[str, Any]
) -> None:
    (decoded,) = decode(json.dumps({"metadata": {}, "items": [raw]}).encode())["items"]
    assert view(decoded) == view(raw)
