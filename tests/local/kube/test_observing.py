"""The demo's observer misses no state of a node, however short it lasts."""

from typing import Any

from infra.local.demo.cluster_client import ClusterClient
from infra.local.demo.observer import Observer
from infra.local.kube.server import EmbeddedKube


class NoMachines:
    """An EC2 client that describes none."""

    def get_paginator(self, _operation: str) -> "NoMachines":
        return self

    def paginate(self) -> list[dict[str, Any]]:
        return [{"Reservations": []}]


def test_a_node_that_is_cordoned_and_gone_between_two_readings_was_cordoned(
    kube: EmbeddedKube,
) -> None:
    client = ClusterClient(kube.url)
    observer = Observer(client, NoMachines())
    documents: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}} for name in ("a", "b")
    ]
    for document in documents:
        client.apply(document)
    observer.look()
    client.merge("api/v1/nodes/a", {"spec": {"unschedulable": True}})
    for document in documents:
        client.delete(document)
    observer.look()
    cordoned = {track.name: track.cordoned for track in observer.timeline.nodes.values()}
    gone = {track.name: track.gone for track in observer.timeline.nodes.values()}
    assert None not in gone.values()
    assert cordoned == {"a": gone["a"], "b": None}
