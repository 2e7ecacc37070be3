"""NodeOverlays are not offered: a plan says so once, and buys at the prices of EC2."""

from typing import Any

import pytest

from functions.cli.plan.reading.documents import Document
from functions.cli.plan.reading.snapshot import OfflineSnapshot, read_snapshot
from shared.instance_types.catalog import Catalog
from tests.builders import instance_type
from tests.unit.manifests.documents import node_class, node_pool, wants

CATALOG = Catalog(
    region="us-east-1", source="a test", date="2026-01-01", instance_types=(instance_type(),)
)
M5 = wants("karpenter.k8s.aws/instance-family", "In", "m5")
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": 1}}}]},
}


def overlay(name: str = "one", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": name},
        "spec": {"requirements": [M5], **spec},
    }


def read(*overlays: dict[str, Any]) -> OfflineSnapshot:
    raws = [*overlays, node_pool(), node_class(), POD]
    documents = [Document(where=f"a: document {n}", raw=raw) for n, raw in enumerate(raws, 1)]
    return read_snapshot(documents, CATALOG)


HEAVY: dict[str, Any] = {"weight": 10}
GPU: dict[str, Any] = {"capacity": {"example.com/gpu": "2"}}
SPOT = wants("karpenter.sh/capacity-type", "In", "spot")
ZONE = wants("topology.kubernetes.io/zone", "In", "us-east-1a")
PAIRS: dict[str, tuple[dict[str, Any], ...]] = {
    "V1": tuple(
        overlay(f"o{number}", priceAdjustment=text)
        for number, text in enumerate(("+0.5", "-0.5", "+10%", "-100%", "10%", "-101%", "1e3"))
    ),
    "V2": (overlay(price="1", priceAdjustment="+1"), overlay("two", capacity={"cpu": "1"})),
    "V3": (overlay(requirements=[wants("a", "In")]),),
    "V4": (),
    "V5": (overlay(price="1"), overlay("two", price="1")),
    "V6": (overlay(**GPU), overlay("two", **GPU)),
    "V7": (overlay(price="1"), overlay("two", price="2", **HEAVY)),
    "V8": (overlay(**GPU), overlay("two", **GPU, **HEAVY)),
    "V9": (overlay(requirements=[SPOT], price="1"), overlay("two", requirements=[ZONE], price="2")),
    "V10": (overlay(price="none"), overlay("two", price="2")),
    "V11": (overlay(requirements=[wants("karpenter.sh/nodepool", "In", "default")], price="1"),),
    "V12": (overlay(requirements=[wants("a", "Exists")], price="0.01"),),
}


@pytest.mark.parametrize("case", PAIRS)
def test_overlays_change_no_price_and_are_said_once(case: str) -> None:
    found, plain = read(*PAIRS[case]), read()
    assert found.snapshot.instance_types == plain.snapshot.instance_types == (instance_type(),)
    said = [note for note in found.notes if "NodeOverlay" in note]
    assert len(said) == min(len(PAIRS[case]), 1)
    assert all("choose types by requirements of the NodePool" in note for note in said)


def test_room_kept_for_later_is_not_offered_either() -> None:
    buffer = {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": "spare", "namespace": "default"},
    }
    (note,) = read(buffer).notes
    assert "use a Deployment of placeholder pods" in note
