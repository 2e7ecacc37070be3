"""Pods and nodes that are kept between two readings are those that a list would show."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from infra.local.kube.server import EmbeddedKube
from shared.kube.api import KubeApi, Query, Stream
from shared.kube.cluster import KubeCluster
from shared.kube.connection import connect_endpoint
from shared.kube.kept import copy, state
from shared.model.errors import ConflictError
from tests.scale.manifests import node, node_name, pod

NODES = 12
MERGE = "application/merge-patch+json"


class Counted(KubeApi):
    """Counts pages of whole lists, and watches."""

    def __init__(self, url: str) -> None:
        self._plain = connect_endpoint(url, "", lambda: "token")
        self.pages = 0
        self.watches = 0

    def send(self, method: str, path: str, **options: Any) -> Any:
        query = dict(options.get("query", ()))
        of_one_node = query.get("fieldSelector", "").startswith("spec.nodeName=")
        self.pages += query.get("limit", "1") != "1" and not of_one_node
        return self._plain.send(method, path, **options)

    def stream(self, path: str, query: Query, read_seconds: float) -> Stream:
        self.watches += 1
        return self._plain.stream(path, query, read_seconds)


@dataclass
class Large:
    """A cluster of a dozen nodes that counts as large."""

    kube: EmbeddedKube
    api: Counted
    cluster: KubeCluster

    def listed_anew(self) -> KubeCluster:
        return KubeCluster("c", connect_endpoint(self.kube.url, "", lambda: "token"))

    def put(self, plural: str, manifest: dict[str, Any]) -> None:
        api = self.kube.api
        self.kube._do(lambda: api.store.write(api.kinds.core(plural), manifest, None))

    def call(self, method: str, path: str, body: Any = None) -> None:
        content = {"content_type": MERGE} if method == "PATCH" else {}
        reply = self.api.send(method, path, body=body, **content)
        assert reply.ok, reply

    def same_as_a_list(self) -> bool:
        other = self.listed_anew()
        return self.cluster.bound_pods() == other.bound_pods() and (
            self.cluster.nodes() == other.nodes()
        )


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> Iterator[Large]:
    for module in (copy, state):
        monkeypatch.setattr(module, "SMALL", 2)
    with EmbeddedKube() as kube:
        api = Counted(kube.url)
        found = Large(kube, api, KubeCluster("c", api))
        for number in range(NODES):
            found.put("nodes", node(number))
            found.put("pods", pod(number, number))
        found.cluster.bound_pods()
        found.cluster.nodes()
        api.pages = 0
        yield found


def test_what_did_not_change_is_not_read_again(large: Large) -> None:
    assert large.same_as_a_list()
    assert (large.api.pages, large.api.watches) == (0, 0)


def path_of(number: int) -> str:
    return f"/api/v1/namespaces/default/pods/{pod(number, number)['metadata']['name']}"


def bound(large: Large) -> None:
    large.put("pods", pod(50, 1))


def deleted(large: Large) -> None:
    large.call("DELETE", path_of(3), {"gracePeriodSeconds": 0})


def ended(large: Large) -> None:
    large.call("PATCH", f"{path_of(4)}/status", {"status": {"phase": "Succeeded"}})


def relabelled(large: Large) -> None:
    large.call("PATCH", f"/api/v1/nodes/{node_name(5)}", {"metadata": {"labels": {"a": "b"}}})


def cordoned(large: Large) -> None:
    large.call("PATCH", f"/api/v1/nodes/{node_name(2)}", {"spec": {"unschedulable": True}})


def joined(large: Large) -> None:
    large.put("nodes", node(70, joining=True))


@pytest.mark.parametrize("happens", [bound, deleted, ended, relabelled, cordoned, joined])
def test_what_changed_is_watched_and_nothing_is_listed(
    large: Large, happens: Callable[[Large], None]
) -> None:
    happens(large)
    assert large.same_as_a_list()
    assert large.api.pages == 0
    assert large.api.watches > 0


def test_a_version_that_the_server_has_forgotten_is_listed_anew(large: Large) -> None:
    bound(large)
    large.kube.compact()
    deleted(large)
    assert large.same_as_a_list()
    assert large.api.pages > 0


def test_a_watch_that_is_torn_is_listed_anew(large: Large) -> None:
    bound(large)
    large.kube.fault("/api/v1/pods", watch=True, abort=True, times=2)
    assert large.same_as_a_list()
    assert large.api.pages > 0


def test_a_lost_event_is_found_on_the_node_that_is_looked_at(large: Large) -> None:
    pods = large.cluster._kept._pods
    lost = next(iter(pods._known))
    del pods._known[lost]
    pods._sorted = None
    for _ in range(NODES):
        # Each reading looks at another node.
        large.cluster.bound_pods()
    assert large.same_as_a_list()
    assert large.api.pages > 0


def test_what_a_caller_raises_between_pages_ends_the_reading(large: Large) -> None:
    def overtaken() -> None:
        raise ConflictError("the lease was lost")

    with pytest.raises(ConflictError):
        large.listed_anew().bound_pods(overtaken)


def test_a_small_cluster_is_listed_each_time(large: Large, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copy, "SMALL", 1000)
    large.cluster.nodes()
    large.cluster.nodes()
    assert large.api.pages == 2
