"""The front of a foreign API server: who may pass, what is handed on, and how watches flow."""

import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from infra.local.api_proxy.target import Target
from infra.local.kube.auth import Authenticator
from infra.local.kube.certificates import ca_file, server_context
from infra.local.kube.server import EmbeddedKube
from tests.local.api_proxy.running import BEHIND, Asked, RunningFront, Scripted, kubeconfig
from tests.local.kube.client import MAPS, Api, config_map
from tests.local.kube.test_authentication import Sts, sts, token, write_auth

__all__ = ["sts"]


@pytest.fixture
def auth_file(sts: Sts, tmp_path: Path) -> Path:
    path = tmp_path / "auth.json"
    write_auth(path, sts.url)
    return path


@pytest.fixture
def foreign(tmp_path: Path) -> Iterator[EmbeddedKube]:
    """Return a server that knows one token, and none of the proxy's."""
    path = tmp_path / "foreign.json"
    path.write_text(json.dumps({"admin_token": BEHIND}))
    with EmbeddedKube(authenticator=Authenticator(path)) as kube:
        let_callers_read(Api(kube.url, token=BEHIND))
        yield kube


def let_callers_read(admin: Api) -> None:
    """Bind the callers that the proxy names to a role: the server behind it judges them by that."""
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    rule = {"verbs": ["list", "watch"], "apiGroups": [""], "resources": ["configmaps", "nodes"]}
    binding = {
        "metadata": {"name": "callers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "read"},
        "subjects": [{"kind": "Group", "name": "planners"}, {"kind": "User", "name": "f"}],
    }
    role = {"metadata": {"name": "read"}, "rules": [rule]}
    assert admin.post(f"{rbac}/clusterroles", role).status == 201
    assert admin.post(f"{rbac}/clusterrolebindings", binding).status == 201
    admin.close()


@pytest.fixture
def front(foreign: EmbeddedKube, auth_file: Path) -> Iterator[RunningFront]:
    with RunningFront(Target(url=foreign.url, token=BEHIND), auth_file) as running:
        yield running


def status(url: str, bearer: str, path: str = MAPS) -> int:
    client = Api(url, token=bearer)
    try:
        return client.get(path).status
    finally:
        client.close()


@pytest.mark.parametrize("bearer", ["", "unknown", BEHIND, token(minutes=60)])
def test_an_unknown_caller_is_refused(front: RunningFront, bearer: str) -> None:
    assert status(front.url, bearer) == 401


@pytest.mark.parametrize("bearer", ["admin", "forwarder", token()])
def test_our_tokens_pass_though_the_server_behind_refuses_them(
    front: RunningFront, foreign: EmbeddedKube, bearer: str
) -> None:
    assert status(foreign.url, bearer) == 401
    assert status(front.url, bearer) == 200


def test_health_is_answered_without_a_token(front: RunningFront) -> None:
    assert status(front.url, "", "/readyz") == 200
    assert status(front.url, "", "/readyz/../api/v1/nodes") == 401


def test_objects_are_made_changed_and_deleted_through_it(front: RunningFront) -> None:
    api = Api(front.url, token="admin")
    assert api.post(MAPS, config_map("a", text="ä" * 100_000)).status == 201
    change = {"data": {"text": "short"}}
    changed = api.call("PATCH", f"{MAPS}/a", change, "application/merge-patch+json")
    assert changed.body["data"] == {"text": "short"}
    assert api.get(MAPS, labelSelector="a in (b, c),d").body["items"] == []
    assert api.call("DELETE", f"{MAPS}/a").status == 200
    missing = api.get(f"{MAPS}/a")
    assert (missing.status, missing.body["reason"]) == (404, "NotFound")
    api.close()


def test_watch_events_come_while_the_stream_is_open(front: RunningFront) -> None:
    api = Api(front.url, token="admin")
    version = api.get(MAPS).version
    stream = http.client.HTTPConnection(urlsplit(front.url).netloc, timeout=60)
    query = f"?watch=1&timeoutSeconds=60&resourceVersion={version}"
    stream.request("GET", MAPS + query, headers={"Authorization": f"Bearer {token()}"})
    watch = stream.getresponse()
    for name in ("first", "second"):
        # Each is there before the next is made: nothing is held back.
        api.post(MAPS, config_map(name))
        event = json.loads(watch.readline())
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", name)
    watch.close()
    stream.close()
    api.close()


def behind() -> Scripted:
    return Scripted(lambda asked: asked.say(200, b"{}", Content_Type="application/json"))


def test_the_target_server_receives_the_caller(auth_file: Path) -> None:
    with behind() as server, RunningFront(Target(url=server.url, token=BEHIND), auth_file) as front:
        for bearer in (token(), "admin"):
            status(front.url, bearer, "/a%2Fb?c=%20d")
    caller, admin = (entry["headers"] for entry in server.seen)
    assert [entry["path"] for entry in server.seen] == ["/a%2Fb?c=%20d"] * 2
    assert ("Authorization", f"Bearer {BEHIND}") in caller
    claims = [entry for entry in caller if entry[0].startswith("Impersonate")]
    assert claims == [("Impersonate-User", "planner"), ("Impersonate-Group", "planners")]
    assert not [entry for entry in admin if entry[0].startswith("Impersonate")]


def test_a_caller_cannot_impersonate_another_user(auth_file: Path) -> None:
    with behind() as server, RunningFront(Target(url=server.url, token=BEHIND), auth_file) as front:
        api = Api(front.url, token="forwarder")
        api.headers |= {"Impersonate-Group": "system:masters", "X-Remote-User": "root"}
        api.get("/api")
        api.close()
    headers = [(key.lower(), value) for key, value in server.seen[0]["headers"]]
    assert ("impersonate-user", "f") in headers
    assert not [
        header for header in headers if "system:masters" in header or "x-remote-user" in header
    ]


def test_a_target_that_is_no_path_is_refused(auth_file: Path) -> None:
    with behind() as server, RunningFront(Target(url=server.url, token=BEHIND), auth_file) as front:
        assert status(front.url, "admin", "@127.0.0.2/api") == 400
    assert server.seen == []


def test_a_server_that_does_not_answer_is_unavailable(auth_file: Path) -> None:
    with RunningFront(Target(url="http://127.0.0.1:1"), auth_file) as front:
        assert status(front.url, "admin") == 503


def test_an_answer_that_is_cut_off_does_not_look_whole(auth_file: Path) -> None:
    def cut(asked: Asked) -> None:
        asked.say(200, b"half of it", Content_Length="100")
        asked.close_connection = True

    target = Scripted(cut)
    with target as server, RunningFront(Target(url=server.url), auth_file) as front:
        api = Api(front.url, token="admin")
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            api.get("/api")
        api.close()


def test_the_process_serves_https_before_an_https_server(
    foreign: EmbeddedKube, auth_file: Path, tmp_path: Path
) -> None:
    tokens = tmp_path / "foreign.json"
    behind_tls, ready = tmp_path / "behind", tmp_path / "ready"
    context = server_context(behind_tls)
    with EmbeddedKube(tls=context, authenticator=Authenticator(tokens)) as kube:
        authority = str(ca_file(behind_tls))
        trusted = ssl.create_default_context(cafile=authority)
        let_callers_read(Api(kube.url, token=BEHIND, context=trusted))
        config = kubeconfig(
            tmp_path / "config", kube.url, {"token": BEHIND}, **{"certificate-authority": authority}
        )
        places = ["--tls-dir", str(tmp_path / "tls"), "--auth-file", str(auth_file)]
        command = ["infra.local.api_proxy", "--kubeconfig", str(config), "--ready-file", str(ready)]
        process = subprocess.Popen([sys.executable, "-m", *command, *places])
        try:
            while not ready.exists():
                assert process.poll() is None
                time.sleep(0.02)
            said = json.loads(ready.read_text())
            trust = ssl.create_default_context(cafile=said["ca_file"])
            api = Api(said["url"], token=token(), context=trust)
            assert api.get("/api/v1/nodes").status == 200
            api.close()
            os.kill(process.pid, signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()
            process.wait()
