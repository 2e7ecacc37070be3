"""Pods and nodes that are kept between two readings are those that a list would show."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from infra.local.kube.server import EmbeddedKube
from shared.kube.api import KubeApi, Query, Stream
from shared.kube.cluster import KubeCluster
from shared.kube.connection import connect_endpoint
from shared.kube.kept.copy import KeptCopy
from shared.kube.kept.stored import MOST_AGE, copy_stores, program_digest
from shared.kube.lists import WatchEvent
from shared.model.errors import ConflictError, UnauthorizedError, UnavailableError
from shared.model.kubernetes.nodes import Node
from tests.fakes.copies import FakeCopies
from tests.scale.manifests import node, node_name, pod

NODES = 12
NOW = datetime(2026, 1, 1, tzinfo=UTC)
MERGE = "application/merge-patch+json"


def asked(
    copies: FakeCopies, cluster: str = "c", server: str = "s", now: datetime = NOW
) -> dict[str, Any]:
    copy_store_of = copy_stores(copies, cluster=cluster, server=server)
    return {"small": 2, "copy_store_of": copy_store_of, "now": lambda: now}


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
    copies: FakeCopies
    cluster: KubeCluster

    def begun_anew(self, cluster: str = "c", server: str = "s", now: datetime = NOW) -> None:
        """Let another process go on, which has read nothing yet."""
        asks = asked(self.copies, cluster, server, now)
        self.cluster = KubeCluster(cluster, self.api, **asks)

    def listed_anew(self) -> KubeCluster:
        return KubeCluster("c", connect_endpoint(self.kube.url, "", lambda: "token"), small=2)

    def put(self, plural: str, manifest: dict[str, Any]) -> None:
        api = self.kube.api
        self.kube.do(lambda: api.store.write(api.kinds.core(plural), manifest, None))

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
def large() -> Iterator[Large]:
    with EmbeddedKube() as kube:
        api = Counted(kube.url)
        copies = FakeCopies()
        found = Large(kube, api, copies, KubeCluster("c", api, **asked(copies)))
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


def test_a_small_cluster_is_listed_each_time(large: Large) -> None:
    small = KubeCluster("c", large.api)
    small.nodes()
    small.nodes()
    assert large.api.pages == 2
    assert not small.leave_copies()


# --- what outlives a process


def test_a_process_that_begins_goes_on_from_the_copy(large: Large) -> None:
    assert large.cluster.leave_copies()
    bound(large)
    deleted(large)
    cordoned(large)
    large.begun_anew()
    assert large.same_as_a_list()
    assert large.api.pages == 0


def test_a_copy_holds_all_that_a_list_shows(large: Large) -> None:
    pods = [pod(90, 1), pod(91, 1), pod(92, 1)]
    rule = {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}
    anti = {"requiredDuringSchedulingIgnoredDuringExecution": [{**rule, "topologyKey": "zone"}]}
    pods[0]["spec"]["affinity"] = {"podAntiAffinity": anti}
    pods[1]["spec"]["topologySpreadConstraints"] = [
        {**rule, "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    ]
    pods[1]["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "5m"}
    pods[2]["spec"]["nodeSelector"] = {"size": "5"}
    pods[2]["spec"]["volumes"] = [{"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}]
    for manifest in pods:
        large.put("pods", manifest)
    large.cluster.bound_pods()
    assert large.cluster.leave_copies()
    large.begun_anew()
    assert large.same_as_a_list()
    assert large.api.pages == 0


def changed(document: bytes) -> bytes:
    place = len(document) // 2
    return document[:place] + bytes([document[place] ^ 1]) + document[place + 1 :]


def of_another_version(large: Large) -> None:
    large.copies.change(
        lambda text: text.replace(program_digest().encode(), b"0" * len(program_digest()))
    )


def torn(large: Large) -> None:
    large.copies.change(lambda text: text[: len(text) // 2])


def flipped(large: Large) -> None:
    large.copies.change(changed)


def flipped_in_a_name(large: Large) -> None:
    def changed(document: bytes) -> bytes:
        at = document.index(b" of c")
        return document[:at] + bytes([document[at] ^ 0x80]) + document[at + 1 :]

    large.copies.change(changed)


def lost(large: Large) -> None:
    large.copies.documents.clear()


def forgotten(large: Large) -> None:
    bound(large)
    large.kube.compact()


def away(large: Large) -> None:
    large.copies.error = UnavailableError("s3: 503")


@pytest.mark.parametrize(
    "happens", [of_another_version, torn, flipped, flipped_in_a_name, lost, forgotten, away]
)
def test_without_a_copy_that_can_be_used_all_is_listed(
    large: Large, happens: Callable[[Large], None]
) -> None:
    assert large.cluster.leave_copies()
    happens(large)
    large.begun_anew()
    assert large.same_as_a_list()
    assert large.api.pages > 0


@pytest.mark.parametrize(
    "other", [{"cluster": "d"}, {"server": "t"}, {"now": NOW + MOST_AGE}, {"now": NOW - MOST_AGE}]
)
def test_a_copy_of_another_cluster_or_hour_is_not_used(large: Large, other: Any) -> None:
    assert large.cluster.leave_copies()
    # As if the keys were the same.
    large.copies.documents = {
        key.replace("c/", f"{other.get('cluster', 'c')}/", 1): text
        for key, text in large.copies.documents.items()
    }
    large.begun_anew(**other)
    large.cluster.nodes()
    assert large.api.pages == 1


@pytest.mark.parametrize("odd", [0, 1])
def test_a_copy_that_has_drifted_is_found_and_listed_anew(large: Large, odd: int) -> None:
    pods = large.cluster._kept._pods
    del pods._known[list(pods._known)[odd]]
    pods._sorted = tuple(pods._known.values())
    assert large.cluster.leave_copies()
    large.begun_anew()
    for _ in range(NODES + 1):
        # As a plan reads them.
        large.cluster.bound_pods()
        large.cluster.nodes()
    assert large.same_as_a_list()
    assert large.api.pages > 0


def test_a_node_that_the_copy_lacks_is_missed_by_their_number(large: Large) -> None:
    nodes = large.cluster._kept._nodes
    del nodes._known[next(iter(nodes._known))]
    nodes._sorted = None
    assert len(large.cluster.nodes()) == NODES
    assert large.api.pages == 1


def test_a_role_that_may_not_watch_lists(large: Large, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> Stream:
        raise UnauthorizedError("watch /api/v1/pods: 403")

    monkeypatch.setattr(large.api, "stream", refused)
    bound(large)
    assert large.same_as_a_list()
    assert large.api.pages > 0


class Busy:
    """A feed of nodes whose next event comes before a reading ends, in answers of some events."""

    def __init__(self, *, most: int) -> None:
        self.nodes = {name: Node(name=name, uid=name) for name in ("a", "b", "c")}
        self.log: list[WatchEvent[Node]] = []
        self.version, self.lists, self.most = 10, 0, most

    def write(self, name: str, *, gone: bool = False) -> None:
        self.version += 1
        value = Node(name=name, uid=name, resource_version=str(self.version))
        if gone:
            del self.nodes[name]
        else:
            self.nodes[name] = value
        self.log.append(WatchEvent(self.version, value, gone))

    def listed(self, _: Any) -> tuple[list[Node], int]:
        self.lists += 1
        return list(self.nodes.values()), self.version

    def head(self) -> tuple[int, int]:
        return self.version, len(self.nodes)

    def since(self, version: int, *, again: bool = False) -> Iterator[WatchEvent[Node]]:
        self.write("a")
        found = [change for change in self.log if change.version > version]
        yield from found[: self.most]


def kept_of(feed: Busy) -> KeptCopy[Node]:
    return KeptCopy(feed, lambda node: node.name, lambda: NOW, 1, None)


def test_what_comes_after_a_pause_is_waited_for() -> None:
    feed = Busy(most=1)
    copy = kept_of(feed)
    copy.read()
    for name in ("d", "e", "f"):
        feed.write(name)
    assert [node.name for node in copy.read()] == ["a", "b", "c", "d", "e", "f"]
    assert feed.lists == 1


def test_a_lost_event_is_found_by_the_number_of_nodes_though_more_happens() -> None:
    feed = Busy(most=9)
    copy = kept_of(feed)
    copy.read()
    feed.write("b", gone=True)
    feed.log.clear()
    assert [node.name for node in copy.read()] == ["a", "c"]
    assert feed.lists == 2


def test_a_server_that_was_restored_from_a_backup_is_listed_anew(large: Large) -> None:
    large.cluster._kept._pods._version += 1_000_000
    assert large.same_as_a_list()
    assert large.api.pages > 0


def test_a_copy_is_listed_anew_after_an_hour_unless_a_newer_one_is_there(large: Large) -> None:
    hour = [NOW]
    copy_store_of = copy_stores(large.copies, cluster="c", server="s")
    lasting = KubeCluster("c", large.api, small=2, copy_store_of=copy_store_of, now=lambda: hour[0])
    assert lasting.nodes()
    large.api.pages = 0
    hour[0] += MOST_AGE
    large.begun_anew(now=hour[0])
    large.cluster.nodes()
    assert large.cluster.leave_copies()
    assert large.api.pages == 1
    lasting.nodes()
    assert large.api.pages == 1
    hour[0] += MOST_AGE
    lasting.nodes()
    assert large.api.pages == 2


def test_a_copy_that_cannot_be_written_stays_as_it_was(large: Large) -> None:
    large.copies.error = UnavailableError("s3: 503")
    assert not large.cluster.leave_copies()
    assert not large.copies.documents
