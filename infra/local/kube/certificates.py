"""A certificate authority and a server certificate for loopback, kept in a directory."""

import ipaddress
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = timedelta(days=365)
_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


def ca_file(directory: Path) -> Path:
    return directory / "ca.crt"


def server_context(
    directory: Path, *, addresses: Sequence[str] = ("127.0.0.1",), key_identifiers: bool = True
) -> ssl.SSLContext:
    """Return the TLS settings of the server; the files are made when absent or soon to expire.

    Args:
        key_identifiers: Whether the certificates carry Subject and Authority Key Identifier, as
            those made by Go 1.15 or newer do. The CA of a cluster that was created with
            Kubernetes 1.16 or older carries none, and EKS cannot rotate it.
            Source: https://go-review.googlesource.com/c/go/+/227098 and
            https://github.com/kubernetes-client/python/issues/2394 (2026-11).
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    certificate, key = directory / "server.crt", directory / "server.key"
    if not _is_usable(ca_file(directory)) or not _is_usable(certificate) or not key.exists():
        _make(directory, addresses, key_identifiers=key_identifiers)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


def _is_usable(path: Path) -> bool:
    if not path.exists():
        return False
    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    return certificate.not_valid_after_utc > datetime.now(UTC) + timedelta(days=1)


def _write(path: Path, content: bytes, mode: int) -> None:
    path.touch(mode=mode)
    path.write_bytes(content)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(subject: str, issuer: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + _LIFETIME)
    )


def _key_usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )


def _make(directory: Path, addresses: Sequence[str], *, key_identifiers: bool) -> None:
    authority = "embedded-kubernetes-ca"
    ca_key, server_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    ca_id = x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key())
    ca = (
        _builder(authority, authority, ca_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(is_authority=True), critical=True)
    )
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in _NAMES]
    names += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
    server = (
        _builder("kube-apiserver", authority, server_key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(is_authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
    )
    if key_identifiers:
        authority_id = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(ca_id)
        ca = ca.add_extension(ca_id, critical=False)
        server = server.add_extension(authority_id, critical=False)
    pem = serialization.Encoding.PEM
    private = server_key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    # The key of the authority is not kept: a new certificate comes with a new authority.
    authority_pem, server_pem = (
        certificate.sign(ca_key, hashes.SHA256()).public_bytes(pem) for certificate in (ca, server)
    )
    _write(ca_file(directory), authority_pem, 0o644)
    _write(directory / "server.crt", server_pem, 0o644)
    _write(directory / "server.key", private, 0o600)
