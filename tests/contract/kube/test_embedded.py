"""Connections, the reflector and the whole forwarder against the embedded API server."""

import base64
import json
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes.config import incluster_config

from infra.local.kube import certificates
from infra.local.kube.auth import Authenticator
from infra.local.kube.server import EmbeddedKube
from shared.kube.api import KubeApi
from shared.kube.connection import connect_endpoint
from shared.kube.kubeconfig import connect_in_cluster
from shared.kube.nodes import NODES_PATH, PODS_PATH
from shared.kube.reflector import Reflector, ReflectorOptions
from shared.model.errors import CertificateError, UnauthorizedError
from tests.benchmarks.forwarder_memory import PODS, Bus, forwarder, pod, prepare, put
from tests.waiting import until


@pytest.fixture
def kube() -> Iterator[EmbeddedKube]:
    with EmbeddedKube() as running:
        yield running


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[EmbeddedKube]:
    settings = tmp_path / "auth.json"
    settings.write_text(json.dumps({"admin_token": "admin"}))
    context = certificates.server_context(tmp_path)
    with EmbeddedKube(tls=context, authenticator=Authenticator(settings)) as running:
        yield running


def test_a_function_reaches_a_server_by_its_certificates_and_a_fresh_token(
    secure: EmbeddedKube, tmp_path: Path
) -> None:
    authority = base64.b64encode(certificates.ca_file(tmp_path).read_bytes()).decode()
    tokens = iter(["stranger", "admin"])
    api = connect_endpoint(secure.url, authority, lambda: next(tokens))
    with pytest.raises(UnauthorizedError):
        api.get(NODES_PATH)
    assert api.get(NODES_PATH)["items"] == []
    with pytest.raises(CertificateError, match="certificate"):
        connect_endpoint(secure.url, "", lambda: "admin").get(NODES_PATH)


def test_a_pod_reaches_its_server_by_its_service_account(
    secure: EmbeddedKube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.write_text("admin")
    host, port = secure.url.removeprefix("https://").split(":")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    authority = str(certificates.ca_file(tmp_path))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", authority)
    assert connect_in_cluster().get(NODES_PATH)["items"] == []


def name_of(raw: Any) -> str:
    return str(raw["metadata"]["name"])


def small(name: str) -> dict[str, Any]:
    raw = pod(0, 1)
    raw["metadata"]["name"] = name
    return raw


def test_what_happened_while_the_server_forgot_its_history_is_found_by_a_list(
    kube: EmbeddedKube,
) -> None:
    api = connect_endpoint(kube.url, "", lambda: "t")
    put(api, PODS, small("stays"))
    put(api, PODS, small("goes"))
    kube.fault(PODS_PATH, watch=True, close=True)
    changes: list[tuple[str | None, str | None]] = []
    pauses: list[int] = []
    arrived = threading.Condition()

    def changed(old: str | None, new: str | None) -> None:
        with arrived:
            changes.append((old, new))
            arrived.notify_all()

    def pause(_: float) -> bool:
        pauses.append(1)
        if len(pauses) == 1:
            assert api.send("DELETE", f"{PODS}/goes", body={"gracePeriodSeconds": 0}).ok
            put(api, PODS, small("comes"))
            kube.compact()
        return False

    reflector = Reflector(api, PODS_PATH, name_of, changed, options=ReflectorOptions(pause=pause))
    reflector.start()
    try:
        with arrived:
            assert arrived.wait_for(lambda: len(changes) >= 4, 60), changes
        assert sorted(changes[:2], key=str) == [(None, "goes"), (None, "stays")]
        assert changes[2:] == [(None, "comes"), ("goes", None)]
        put(api, PODS, small("later"))
        with arrived:
            assert arrived.wait_for(lambda: len(changes) >= 5, 60), changes
        assert changes[4] == (None, "later")
    finally:
        reflector.stop()


def add_provisioner(api: KubeApi) -> None:
    prepare(api)
    raw = {
        "apiVersion": "karpenter.sh/v1alpha5",
        "kind": "Provisioner",
        "metadata": {"name": "default"},
        "spec": {},
    }
    assert api.send("POST", "/apis/karpenter.sh/v1alpha5/provisioners", body=raw).ok


@pytest.fixture
def bus() -> Iterator[Bus]:
    running = Bus()
    yield running
    running.server.shutdown()
    running.server.server_close()


def test_the_forwarder_killed_in_mid_burst_says_everything_again_and_ends_on_sigterm(
    kube: EmbeddedKube, bus: Bus, tmp_path: Path
) -> None:
    api = connect_endpoint(kube.url, "", lambda: "t")
    add_provisioner(api)
    with forwarder(kube.url, bus.url, tmp_path) as process:
        until(lambda: bus.count("provisioner-changed") == 1)
        for number in range(10):
            put(api, PODS, small(f"early-{number}"))
        until(lambda: bus.count("pod-pending") > 0)
        process.kill()
        assert process.stdout is not None
        process.stdout.close()
    for number in range(10):
        put(api, PODS, small(f"late-{number}"))
    heard_before = len(bus.objects.pop("pod-pending"))
    assert heard_before > 0
    with forwarder(kube.url, bus.url, tmp_path) as process:
        until(lambda: bus.count("pod-pending") == 20)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert process.stdout is not None
        lines = [json.loads(line) for line in process.stdout]
        process.stdout.close()
    assert any(line["message"].startswith("synced after") for line in lines)
    assert lines[-1]["message"].startswith("stopped:")
    assert all(line["cluster"] == "bench" for line in lines)
