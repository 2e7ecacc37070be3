"""Tokens, TLS, and the server as a process."""

import asyncio
import base64
import json
import os
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from infra.local.kube.auth import Authenticator, User
from infra.local.kube.certificates import ca_file, server_context
from infra.local.kube.errors import ApiError
from infra.local.kube.server import EmbeddedKube
from tests.local.kube.client import PODS, Api
from tests.waiting import until

ROLE = "arn:aws:iam::123456789012:role/path/planner"
NODE = "ip-10-0-0-4.ec2.internal"
NODES = "arn:aws:iam::123456789012:role/nodes"
ASSUMED = "arn:aws:sts::123456789012:assumed-role/planner/session"


class Sts(ThreadingHTTPServer):
    """Answers GetCallerIdentity to queries whose signature is `good`, and EC2 about one instance.

    Attributes:
        assumed: ARN of who is told to call.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.calls: list[tuple[str, str]] = []
        self.assumed = ASSUMED

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Sts)
        query = parse_qs(urlsplit(self.path).query)
        self.server.calls.append((self.headers["Host"], self.headers["x-k8s-aws-id"]))
        good = query["X-Amz-Signature"] == ["good"]
        self._answer(200 if good else 403, f"<Arn>{self.server.assumed}</Arn>" if good else "<E/>")

    def do_POST(self) -> None:
        """Answer DescribeInstances."""
        asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
        item = f"<item><privateDnsName>{NODE}</privateDnsName></item>"
        known = item if parse_qs(asked)["InstanceId.1"] == ["i-1"] else ""
        instances = f"<item><instancesSet>{known}</instancesSet></item>"
        kind = "DescribeInstancesResponse"
        self._answer(200, f"<{kind}><reservationSet>{instances}</reservationSet></{kind}>")

    def _answer(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def sts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sts]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "some")
    server = Sts()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def write_auth(path: Path, sts_url: str, *, entries: bool = True) -> None:
    entry = {"role_arn": ROLE, "username": "planner", "groups": ["planners"]}
    settings = {
        "admin_token": "admin",
        "static_tokens": [{"token": "forwarder", "username": "f", "groups": []}],
        "sts_url": sts_url,
        "cluster": "demo",
        "access_entries": [entry] if entries else [],
    }
    path.write_text(json.dumps(settings))


@pytest.fixture
def guarded(sts: Sts, tmp_path: Path) -> Iterator[EmbeddedKube]:
    path = tmp_path / "auth.json"
    write_auth(path, sts.url)
    with EmbeddedKube(authenticator=Authenticator(path)) as kube:
        yield kube


def token(
    *,
    host: str = "sts.eu-west-1.amazonaws.com",
    minutes: int = 0,
    changes: dict[str, str] | None = None,
) -> str:
    moment = datetime.now(UTC) - timedelta(minutes=minutes)
    query = {
        "Action": "GetCallerIdentity",
        "Version": "2011-06-15",
        "X-Amz-Date": moment.strftime("%Y%m%dT%H%M%SZ"),
        "X-Amz-Expires": "60",
        "X-Amz-SignedHeaders": "host;x-k8s-aws-id",
        "X-Amz-Signature": "good",
    }
    url = f"https://{host}/?{urlencode(query | (changes or {}))}"
    return "k8s-aws-v1." + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")


def status_for(kube: EmbeddedKube, bearer: str) -> int:
    client = Api(kube.url, token=bearer)
    status = client.get("/api").status
    client.close()
    return status


def test_only_known_tokens_may_call(guarded: EmbeddedKube) -> None:
    assert status_for(guarded, "admin") == 200
    assert status_for(guarded, "forwarder") == 200
    assert status_for(guarded, "unknown") == 401
    anonymous = Api(guarded.url)
    refused = anonymous.get(PODS)
    assert (refused.status, refused.body["reason"]) == (401, "Unauthorized")
    assert anonymous.get("/readyz").status == 200
    anonymous.close()


def test_an_eks_token_is_confirmed_by_sts_once_a_minute(guarded: EmbeddedKube, sts: Sts) -> None:
    bearer = token()
    assert [status_for(guarded, bearer) for _ in range(3)] == [200, 200, 200]
    assert sts.calls == [("sts.eu-west-1.amazonaws.com", "demo")]


@pytest.mark.parametrize(
    "bearer",
    [
        token(host="example.com"),
        token(host="sts.amazonaws.com.example.com"),
        token(host="user@sts.amazonaws.com"),
        token(changes={"Action": "AssumeRole"}),
        token(changes={"X-Amz-SignedHeaders": "host"}),
        token(changes={"X-Amz-Expires": "3600"}),
        token(minutes=16),
        token(minutes=-600),
        token(changes={"action": "GetCallerIdentity"}),
        "k8s-aws-v1.!!!",
        "k8s-aws-v1.",
    ],
)
def test_a_token_that_is_not_what_it_should_be_never_reaches_sts(
    guarded: EmbeddedKube, sts: Sts, bearer: str
) -> None:
    assert status_for(guarded, bearer) == 401
    assert sts.calls == []


def test_a_bad_signature_is_refused(guarded: EmbeddedKube, sts: Sts) -> None:
    assert status_for(guarded, token(changes={"X-Amz-Signature": "forged"})) == 401
    assert len(sts.calls) == 1


def node_user(sts: Sts, path: Path, session: str) -> User:
    """Ask who a session of the nodes' role is."""
    username = "system:node:{{EC2PrivateDNSName}}"
    entry = {"role_arn": NODES, "username": username, "groups": ["system:nodes"]}
    settings = {"sts_url": sts.url, "ec2_url": sts.url, "region": "us-east-1", "cluster": "demo"}
    path.write_text(json.dumps(settings | {"access_entries": [entry]}))
    sts.assumed = f"arn:aws:sts::123456789012:assumed-role/nodes/{session}"

    async def ask() -> User:
        authenticator = Authenticator(path)
        try:
            return await authenticator.check(f"Bearer {token()}")
        finally:
            await authenticator.close()

    return asyncio.run(ask())


def test_an_instance_is_the_node_that_has_its_private_dns_name(sts: Sts, tmp_path: Path) -> None:
    found = node_user(sts, tmp_path / "auth.json", "i-1")
    assert found == User(name=f"system:node:{NODE}", groups=("system:nodes",))


@pytest.mark.parametrize("session", ["i-2", "a-user"])
def test_a_session_that_is_no_instance_is_no_node(sts: Sts, tmp_path: Path, session: str) -> None:
    with pytest.raises(ApiError) as refused:
        node_user(sts, tmp_path / "auth.json", session)
    assert refused.value.code == 401


def test_entries_added_later_are_seen_at_once(sts: Sts, tmp_path: Path) -> None:
    path = tmp_path / "auth.json"
    write_auth(path, sts.url, entries=False)
    bearer = token()
    with EmbeddedKube(authenticator=Authenticator(path)) as kube:
        assert status_for(kube, bearer) == 401
        write_auth(path, sts.url)
        assert status_for(kube, bearer) == 200


def test_https_is_served_with_a_certificate_of_its_own_authority(tmp_path: Path) -> None:
    with EmbeddedKube(tls=server_context(tmp_path)) as kube:
        trusted = ssl.create_default_context(cafile=ca_file(tmp_path))
        trusted.verify_flags |= ssl.VERIFY_X509_STRICT
        for url in (kube.url, kube.url.replace("127.0.0.1", "localhost")):
            client = Api(url, context=trusted)
            assert client.get("/version").status == 200
            client.close()
        stranger = Api(kube.url, context=ssl.create_default_context())
        with pytest.raises(ssl.SSLCertVerificationError):
            stranger.get("/version")
        stranger.close()


def test_a_kubeconfig_serves_the_official_client(tmp_path: Path) -> None:
    from kubernetes import client, config

    authority = ca_file(tmp_path)
    with EmbeddedKube(tls=server_context(tmp_path)) as kube:
        path = kube.write_kubeconfig(tmp_path / "config", token="any", ca_file=str(authority))
        settings = client.Configuration()
        config.load_kube_config(str(path), client_configuration=settings)  # type: ignore[no-untyped-call]
        with client.ApiClient(settings) as official:
            pool = official.rest_client.pool_manager
            reply = pool.request("GET", settings.host + "/api/v1/namespaces")
            assert len(reply.json()["items"]) == 4
            pool.clear()


def test_the_certificate_is_used_again(tmp_path: Path) -> None:
    server_context(tmp_path)
    before = ca_file(tmp_path).read_bytes()
    server_context(tmp_path)
    assert ca_file(tmp_path).read_bytes() == before
    assert (tmp_path / "server.key").stat().st_mode & 0o077 == 0


def test_the_process_says_when_it_is_ready_and_ends_on_sigterm(tmp_path: Path) -> None:
    ready, auth = tmp_path / "ready.json", tmp_path / "auth.json"
    write_auth(auth, "http://127.0.0.1:1")
    command = [sys.executable, "-m", "infra.local.kube", "--ready-file", str(ready)]
    command += ["--tls-dir", str(tmp_path / "tls"), "--auth-file", str(auth)]
    process = subprocess.Popen(command, env=dict(os.environ), stdout=subprocess.PIPE)
    try:
        until(lambda: ready.exists() or process.poll() is not None, "it is ready")
        said = json.loads(ready.read_text())
        assert said["admin_token"] == "admin"
        context = ssl.create_default_context(cafile=said["ca_file"])
        client = Api(said["url"], token="admin", context=context)
        assert client.get(PODS).status == 200
        with client.watch(PODS, timeoutSeconds="60") as stream:
            assert stream.response.status == 200
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == 0
        client.close()
    finally:
        process.kill()
        process.communicate()
