"""The certificate of an API server, over each of the three connections, as Python 3.13 checks it.

Since 3.13 `ssl.create_default_context` sets VERIFY_X509_STRICT, and urllib3 follows.
Source: https://docs.python.org/3.13/library/ssl.html#ssl.create_default_context (2026-11).
"""

import base64
import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
import urllib3
from kubernetes.config import incluster_config

from infra.local.kube import certificates
from infra.local.kube.auth import Authenticator
from infra.local.kube.server import EmbeddedKube
from shared.kube.api import KubeApi
from shared.kube.connection import connect_endpoint
from shared.kube.kubeconfig import connect_in_cluster, connect_kubeconfig
from shared.kube.nodes import NODES_PATH
from shared.model.errors import CertificateError, PermanentError

Connect = Callable[[str, Path], KubeApi]


@pytest.fixture
def as_on_python_3_13(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make urllib3 choose the flags of its TLS contexts as it does on Python 3.13."""
    monkeypatch.setattr("urllib3.util.ssl_.sys", SimpleNamespace(version_info=(3, 13)))
    context = urllib3.util.create_urllib3_context()
    assert context.verify_flags & ssl.VERIFY_X509_STRICT


@pytest.fixture(params=["endpoint", "kubeconfig", "in-cluster"])
def connect(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    as_on_python_3_13: None,
) -> Connect:
    def by_endpoint(url: str, authority: Path) -> KubeApi:
        encoded = base64.b64encode(authority.read_bytes()).decode()
        return connect_endpoint(url, encoded, lambda: "admin")

    def by_kubeconfig(url: str, authority: Path) -> KubeApi:
        path = tmp_path / "kubeconfig"
        cluster = {"server": url, "certificate-authority": str(authority)}
        path.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "c",
                    "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
                    "clusters": [{"name": "k", "cluster": cluster}],
                    "users": [{"name": "u", "user": {"token": "admin"}}],
                }
            )
        )
        return connect_kubeconfig(str(path))

    def in_cluster(url: str, authority: Path) -> KubeApi:
        token = tmp_path / "token"
        token.write_text("admin")
        host, port = url.removeprefix("https://").split(":")
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
        monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
        monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(authority))
        return connect_in_cluster()

    ways: dict[str, Connect] = {
        "endpoint": by_endpoint,
        "kubeconfig": by_kubeconfig,
        "in-cluster": in_cluster,
    }
    return ways[request.param]


@contextmanager
def serving(folder: Path, context: ssl.SSLContext) -> Iterator[str]:
    settings = folder / "auth.json"
    settings.write_text(json.dumps({"admin_token": "admin"}))
    with EmbeddedKube(tls=context, authenticator=Authenticator(settings)) as server:
        yield server.url


@pytest.mark.parametrize("key_identifiers", [False, True], ids=["old", "new"])
def test_a_cluster_is_reached_whatever_its_age(
    connect: Connect, tmp_path: Path, *, key_identifiers: bool
) -> None:
    context = certificates.server_context(tmp_path, key_identifiers=key_identifiers)
    with serving(tmp_path, context) as url:
        api = connect(url, certificates.ca_file(tmp_path))
        assert api.get(NODES_PATH)["items"] == []


def test_a_certificate_for_another_address_is_refused_for_good(
    connect: Connect, tmp_path: Path
) -> None:
    context = certificates.server_context(tmp_path, addresses=("127.0.0.2",), key_identifiers=False)
    with serving(tmp_path, context) as url:
        api = connect(url, certificates.ca_file(tmp_path))
        with pytest.raises(CertificateError, match=f"{url}.*IP address mismatch"):
            api.get(NODES_PATH)


def test_a_certificate_of_another_authority_is_refused_for_good(
    connect: Connect, tmp_path: Path
) -> None:
    others = tmp_path / "others"
    certificates.server_context(others, key_identifiers=False)
    context = certificates.server_context(tmp_path, key_identifiers=False)
    with serving(tmp_path, context) as url:
        api = connect(url, certificates.ca_file(others))
        with pytest.raises(CertificateError, match="certificate"):
            api.get(NODES_PATH)
        with pytest.raises(CertificateError, match="certificate"):
            api.stream(NODES_PATH, [("watch", "1")], read_seconds=5.0)


def test_an_authority_that_is_no_certificate_is_refused_for_good(
    connect: Connect, tmp_path: Path
) -> None:
    authority = tmp_path / "ca.crt"
    authority.write_text("not a certificate")
    with pytest.raises(PermanentError, match="certificate authority"):
        connect("https://127.0.0.1:1", authority)
