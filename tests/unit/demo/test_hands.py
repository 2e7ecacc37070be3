"""Whose a node is: all that tells must agree."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from infra.local.demo.karpenter import hands_of

FINALIZER = "karpenter.sh/termination"
Parts = dict[str, Any]


def karpenters() -> Parts:
    return {
        "node": {
            "metadata": {
                "finalizers": [FINALIZER],
                "ownerReferences": [{"kind": "NodeClaim", "uid": "uid-claim"}],
            },
            "spec": {"providerID": "aws:///a/i-1"},
        },
        "claim": {
            "metadata": {"uid": "uid-claim", "finalizers": [FINALIZER]},
            "status": {"providerID": "aws:///a/i-1"},
        },
        "tags": {"karpenter.sh/nodepool": "a", "karpenter.k8s.aws/ec2nodeclass": "b"},
    }


def dovetails() -> Parts:
    node = copy.deepcopy(karpenters()["node"])
    node["metadata"]["ownerReferences"] = [{"kind": "NodePool", "uid": "uid-pool"}]
    node["metadata"]["annotations"] = {"dovetail.dev/slot": "plan/0/0"}
    return {"node": node, "claim": None, "tags": {"dovetail.dev/cluster": "demo"}}


def hand(parts: Parts) -> str:
    instance = {
        "InstanceId": "i-1",
        "Tags": [{"Key": key, "Value": value} for key, value in parts["tags"].items()],
    }
    claims = [parts["claim"]] if parts["claim"] else []
    return hands_of([parts["node"]], claims, [instance])["i-1"]


def test_a_node_is_of_the_owner_that_all_parts_name() -> None:
    assert hand(karpenters()) == "karpenter"
    assert hand(dovetails()) == "dovetail"
    assert hands_of([karpenters()["node"]], [], []) == {}


WRONG: list[tuple[Callable[[], Parts], Callable[[Parts], object]]] = [
    (karpenters, lambda p: p["tags"].clear()),
    (karpenters, lambda p: p["tags"].update({"dovetail.dev/plan": "x"})),
    (karpenters, lambda p: p.update(claim=None)),
    (karpenters, lambda p: p["claim"]["metadata"].update(finalizers=[])),
    (karpenters, lambda p: p["claim"]["metadata"].update(uid="other")),
    (karpenters, lambda p: p["node"]["metadata"].update(finalizers=[])),
    (dovetails, lambda p: p["tags"].clear()),
    (dovetails, lambda p: p["tags"].update({"karpenter.sh/nodepool": "a"})),
    (dovetails, lambda p: p.update(claim=karpenters()["claim"])),
    (dovetails, lambda p: p["node"]["metadata"].update(ownerReferences=[])),
    (dovetails, lambda p: p["node"]["metadata"].update(finalizers=[])),
]


@pytest.mark.parametrize(("made", "falsify"), WRONG)
def test_a_part_that_names_another_owner_is_told(
    made: Callable[[], Parts], falsify: Callable[[Parts], object]
) -> None:
    parts = made()
    falsify(parts)
    assert hand(parts) not in ("karpenter", "dovetail")
