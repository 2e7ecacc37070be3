"""Which server and credentials a kubeconfig means, and which servers may be used."""

import base64
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from infra.local.api_proxy.target import read_target, require_allowed, server_of
from tests.local.api_proxy.running import RunningFront, Scripted, kubeconfig
from tests.local.kube.client import Api

LOCAL = "https://127.0.0.1:6443"


def test_the_current_context_is_read(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", "http://127.0.0.1:8001/", {"token": "t"})
    target = read_target(path)
    assert (target.url, target.token, target.trust) == ("http://127.0.0.1:8001", "t", None)
    assert server_of(path) == "http://127.0.0.1:8001"
    assert "'t'" not in repr(target)


def test_a_token_file_is_relative_to_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file\n")
    assert read_target(kubeconfig(tmp_path / "c", LOCAL, {"tokenFile": "token"})).token == (
        "from-file"
    )


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ({"exec": {"command": "aws"}}, r"user\.exec is not supported; give a token"),
        ({"username": "admin", "password": "x"}, r"user\.username is not supported"),
        ({"tokenFile": "missing"}, r"missing cannot be read"),
        ({"client-certificate-data": "ä"}, r"client-certificate-data is no base64"),
    ],
)
def test_what_is_not_understood_is_named(
    tmp_path: Path, user: dict[str, object], expected: str
) -> None:
    with pytest.raises(ValueError, match=expected):
        read_target(kubeconfig(tmp_path / "config", LOCAL, user))


@pytest.mark.parametrize("text", ["", "[]", "current-context: a", "{", "contexts: 3"])
def test_a_file_that_is_no_kubeconfig_is_named_in_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(ValueError, match=f"kubeconfig {tmp_path / 'config'}: ") as caught:
        server_of(tmp_path / "config")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("server", [LOCAL, "https://localhost:1", "http://[::1]:8001"])
def test_servers_on_this_machine_may_be_used(server: str) -> None:
    require_allowed(server, "")


@pytest.mark.parametrize("allowed", ["", "https://other", "https://prod.example.com:444"])
def test_a_server_elsewhere_must_be_named_exactly(allowed: str) -> None:
    with pytest.raises(ValueError, match=r"set TEST_CLUSTER_OK=https://prod\.example\.com if"):
        require_allowed("https://prod.example.com", allowed)


def test_a_server_elsewhere_that_was_named_may_be_used() -> None:
    require_allowed("https://prod.example.com", "https://prod.example.com/")


class Pair:
    """A certificate that signs itself, and its key, both PEM."""

    def __init__(self, name: str) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        now = datetime.now(UTC)
        place = x509.SubjectAlternativeName([x509.DNSName("localhost")])
        certificate = (
            x509.CertificateBuilder(names, names, key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(minutes=5))
            .not_valid_after(now + timedelta(hours=1))
            .add_extension(place, critical=False)
            .sign(key, hashes.SHA256())
        )
        pem = serialization.Encoding.PEM
        self.certificate = certificate.public_bytes(pem)
        self.key = key.private_bytes(
            pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )


@pytest.mark.parametrize("inline", [True, False])
def test_a_client_certificate_lets_us_in(tmp_path: Path, *, inline: bool) -> None:
    pairs = {"server": Pair("server"), "client": Pair("client")}
    for name, pair in pairs.items():
        (tmp_path / f"{name}.crt").write_bytes(pair.certificate)
        (tmp_path / f"{name}.key").write_bytes(pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    context.load_verify_locations(tmp_path / "client.crt")
    context.verify_mode = ssl.CERT_REQUIRED
    (tmp_path / "auth.json").write_text('{"admin_token": "admin"}')
    server = Scripted(lambda asked: asked.say(200, b"{}", Content_Type="application/json"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    user, cluster = (
        ({"client-certificate": "client.crt", "client-key": "client.key"}, "server.crt")
        if not inline
        else (
            {
                "client-certificate-data": _base64(pairs["client"].certificate),
                "client-key-data": _base64(pairs["client"].key),
            },
            _base64(pairs["server"].certificate),
        )
    )
    authority = {"certificate-authority" + ("-data" if inline else ""): cluster}
    url = server.url.replace("http://127.0.0.1", "https://localhost")
    path = kubeconfig(tmp_path / "config", url, user, **authority)
    with server, RunningFront(read_target(path), tmp_path / "auth.json") as front:
        api = Api(front.url, token="admin")
        assert api.get("/api").status == 200
        api.close()


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
