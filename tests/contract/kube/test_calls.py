"""Calls: authentication, translation of every failure, and the pool."""

import base64
import gzip
import json
import socket
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from kubernetes.client.api_client import ApiClient
from kubernetes.client.configuration import Configuration

from infra.local.kube.kubeconfig import write_kubeconfig
from shared.kube.api import ExpiredError, RejectedError
from shared.kube.cluster import KubeCluster
from shared.kube.connection import connect_endpoint
from shared.kube.kubeconfig import connect_in_cluster, connect_kubeconfig
from shared.kube.lists import ListWatch, list_all
from shared.model.errors import (
    AutoscalerError,
    ConflictError,
    NotFoundError,
    PermanentError,
    RetryableError,
    ThrottledError,
    UnauthorizedError,
    UnavailableError,
)
from tests.contract.kube.scripted import Answer, Request, scripted
from tests.waiting import until


def test_the_four_attributes_used_of_the_client_exist() -> None:
    configuration = Configuration(host="http://127.0.0.1:1")
    assert configuration.host == "http://127.0.0.1:1"
    assert configuration.auth_settings() == {}
    pool = ApiClient(configuration).rest_client.pool_manager
    assert callable(pool.request)
    assert isinstance(pool.connection_pool_kw, dict)


def test_a_call_carries_a_fresh_token_and_asks_for_gzip() -> None:
    packed = gzip.compress(json.dumps({"a": 1}).encode())
    answers = [Answer(raw=packed, headers={"Content-Encoding": "gzip"})]
    tokens = iter(["one", "two"])
    with scripted(answers) as server:
        api = connect_endpoint(server.url + "/", "", lambda: next(tokens))
        assert api.get("/x", [("a", "b c")]) == {"a": 1}
        assert api.get("/x") == {"a": 1}
        first, second = server.requests
        assert first.headers["authorization"] == "Bearer one"
        assert second.headers["authorization"] == "Bearer two"
        assert first.headers["accept-encoding"] == "gzip"
        assert first.headers["user-agent"] == "dovetail"
        assert first.query == {"a": "b c"}


@pytest.mark.parametrize("how", ["endpoint", "kubeconfig"])
def test_the_other_side_of_a_quiet_connection_is_asked_whether_it_is_there(
    tmp_path: Path, how: str
) -> None:
    with scripted([Answer(body={})]) as server:
        config = tmp_path / "config"
        write_kubeconfig(config, server.url, {}, {"token": "t"})
        api = (
            connect_endpoint(server.url, "", lambda: "t")
            if how == "endpoint"
            else connect_kubeconfig(str(config))
        )
        api.get("/x")
        pool = api._pool.connection_from_url(server.url)
        connection: Any = pool._get_conn()
        assert connection.sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert connection.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert connection.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT) == 3
        connection.close()


def test_calls_go_through_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted([Answer(body={})]) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "beside.example")
        api = connect_endpoint("http://api.example", "", lambda: "t")
        assert api.get("/x") == {}
        assert proxy.requests[0].headers["host"] == "api.example"
        beside = connect_endpoint("http://beside.example", "", lambda: "t")
        with pytest.raises(UnavailableError):
            beside.get("/x")


@pytest.mark.parametrize("raw", [b"<html>", b"", b"[]", b'{"items":' + b"[" * 5000])
def test_an_answer_that_is_no_object_is_not_taken_for_an_empty_list(raw: bytes) -> None:
    with scripted([Answer(raw=raw)]) as server:
        api = connect_endpoint(server.url, "", lambda: "t")
        with pytest.raises(UnavailableError, match="no JSON object"):
            list_all(api, "/api/v1/pods", lambda entry: entry)


def test_a_name_stays_one_segment_of_its_path() -> None:
    with scripted([Answer(status=404)]) as server:
        cluster = KubeCluster("c1", connect_endpoint(server.url, "", lambda: "t"))
        assert cluster.volumes(["x/status", "x/../y"]) == ()
        assert cluster.claims(["shop/pods", ""]) == ()
        assert cluster.node("n1/status") is None
        assert cluster.pod("shop", "a/log") is None
        assert server.requests == []


@pytest.mark.parametrize(
    "name",
    [
        "../pods",
        "..",
        "a..b",
        "../../pods?x=",
        "a%2e%2e",
        "x?limit=0",
        "a b",
        "",
        "In",
        "-a",
        "a/../b",
    ],
)
def test_name_that_no_object_can_have_is_not_found_without_a_call(name: str) -> None:
    with scripted([Answer()]) as server:
        api = connect_endpoint(server.url, "", lambda: "t")
        with pytest.raises(NotFoundError, match="no object can have such a name"):
            api.get(f"/api/v1/persistentvolumes/{name}")
        assert server.requests == []


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, RejectedError),
        (401, UnauthorizedError),
        (403, UnauthorizedError),
        (404, NotFoundError),
        (405, RejectedError),
        (408, UnavailableError),
        (409, ConflictError),
        (410, ExpiredError),
        (415, RejectedError),
        (422, RejectedError),
        (429, ThrottledError),
        (500, UnavailableError),
        (503, UnavailableError),
        (504, UnavailableError),
    ],
)
def test_each_status_has_its_error(status: int, error: type[AutoscalerError]) -> None:
    body = {"kind": "Status", "message": "because"}
    answer = Answer(status=status, body=body, headers={"Retry-After": "7"})
    with scripted([answer]) as server, pytest.raises(error, match=f"GET /x: {status} because") as e:
        server.api.get("/x")
    assert type(e.value) is error
    if isinstance(e.value, ThrottledError | UnavailableError):
        assert e.value.delay == timedelta(seconds=7)
    assert isinstance(e.value, RetryableError | PermanentError)


def test_a_page_that_is_no_json_becomes_the_message() -> None:
    page = Answer(status=502, raw=b"<html>bad gateway</html>")
    with scripted([page]) as server, pytest.raises(UnavailableError, match="bad gateway"):
        server.api.get("/x")


def test_closed_port_is_unavailable() -> None:
    with scripted([Answer(body={})]) as server:
        url = server.url
    with pytest.raises(UnavailableError, match="no answer"):
        connect_endpoint(url, "", lambda: "t").get("/x")


def test_a_server_that_does_not_answer_in_time_is_unavailable() -> None:
    with scripted([Answer(lines=[], then="hang")]) as server:
        api = connect_endpoint(server.url, "", lambda: "t", timeout=timedelta(seconds=0.05))
        with pytest.raises(UnavailableError):
            api.get("/x")
        # A busy machine lets the server read it after the call has ended.
        assert len(until(lambda: server.requests)) == 1


def test_a_connection_closed_without_answer_is_tried_once_more() -> None:
    with scripted([Answer(drop=True), Answer(body={"a": 1})]) as server:
        assert server.api.get("/x") == {"a": 1}
    with scripted([Answer(drop=True)]) as server:
        with pytest.raises(UnavailableError):
            server.api.get("/x")
        assert len(server.requests) == 2


def test_list_restarts_when_its_token_expires_and_fails_the_third_time() -> None:
    page = Answer(body={"metadata": {"continue": "t"}, "items": [{"n": 1}]})
    gone = Answer(status=410, body={})
    last = Answer(body={"metadata": {}, "items": [{"n": 2}, None]})
    with scripted([page, gone, page, last]) as server:
        assert list_all(server.api, "/x", lambda raw: raw["n"]) == [1, 2]
    with scripted([page, gone] * 3) as server:
        with pytest.raises(UnavailableError):
            list_all(server.api, "/x", lambda raw: raw["n"])
        assert len(server.requests) == 6


def test_pages_are_as_large_as_their_bytes_allow() -> None:
    def listed(object_bytes: int, most: int = 1000) -> list[str]:
        answered: list[str] = []

        def answer(request: Request) -> Answer:
            answered.append(request.query["limit"])
            more = "t" if len(answered) < 3 else ""
            items = [{"text": "x" * object_bytes}] * min(int(answered[-1]), 100)
            return Answer(body={"metadata": {"continue": more}, "items": items})

        with scripted(answer) as server:
            for _ in ListWatch(server.api, "/x", dict, most=most).pages():
                continue
        return answered

    assert listed(10) == ["250", "1000", "1000"]
    assert listed(10, most=100) == ["100"] * 3
    first, second, third = map(int, listed(2**16))
    assert first == 250
    assert 60 <= second <= 64
    assert 60 <= third <= 64


def test_lister_gets_each_page() -> None:
    page = Answer(body={"metadata": {"continue": "t"}, "items": [{"n": 1}]})
    last = Answer(body={"metadata": {}, "items": [{"n": 2}]})
    heard: list[int] = []
    with scripted([page, last]) as server:
        list_all(server.api, "/x", lambda raw: raw["n"], each_page=lambda: heard.append(1))
    assert heard == [1, 1]


def test_a_kubeconfig_file_gives_server_and_token(tmp_path: Path) -> None:
    with scripted([Answer(body={"a": 1})]) as server:
        path = tmp_path / "config"
        path.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "c",
                    "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
                    "clusters": [{"name": "k", "cluster": {"server": server.url}}],
                    "users": [{"name": "u", "user": {"token": "secret"}}],
                }
            )
        )
        assert connect_kubeconfig(str(path)).get("/x") == {"a": 1}
        assert server.requests[0].headers["authorization"] == "Bearer secret"
        assert server.requests[0].headers["accept-encoding"] == "identity"


def test_a_missing_kubeconfig_is_named(tmp_path: Path) -> None:
    with pytest.raises(PermanentError, match="nowhere"):
        connect_kubeconfig(str(tmp_path / "nowhere"))


def test_outside_a_cluster_there_is_no_service_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(PermanentError, match="name a kubeconfig file"):
        connect_in_cluster()


def test_the_clusters_certificates_never_become_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    encoded = base64.b64encode(_certificate()).decode()
    api = connect_endpoint("https://127.0.0.1:1", encoded, lambda: "t")
    with pytest.raises(UnavailableError, match="no answer"):
        api.get("/x")
    assert list(tmp_path.iterdir()) == []


def test_a_remark_beside_the_certificates_does_no_harm() -> None:
    encoded = base64.b64encode("né\n".encode() + _certificate()).decode()
    with pytest.raises(UnavailableError, match="refused"):
        connect_endpoint("https://127.0.0.1:1", encoded, lambda: "t").get("/x")


def _certificate() -> bytes:
    """Return the first certificate of the bundle that comes with the client."""
    import certifi

    end = b"-----END CERTIFICATE-----\n"
    bundle = Path(certifi.where()).read_bytes()
    start = bundle.index(b"-----BEGIN CERTIFICATE-----")
    return bundle[start : bundle.index(end, start) + len(end)]
