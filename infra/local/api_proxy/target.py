"""The API server a kubeconfig names, and whether the local world may use it.

Source: https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/ (2026-08).
"""

import base64
import ipaddress
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

_ELSEWHERE = ("exec", "auth-provider", "username")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A server and how to be let in.

    Attributes:
        url: Without a slash at the end.
        trust: TLS settings with authority and client certificate; None for plain HTTP.
    """

    url: str
    trust: ssl.SSLContext | None = None
    token: str = field(default="", repr=False)


def read_target(path: Path) -> Target:
    """Return the current context's server and credentials: a token or a client certificate.

    Raises:
        ValueError: The file cannot be read, or says what is not understood here.
    """
    cluster, user = _current(path)
    server = _text(path, cluster, "server").rstrip("/")
    if unknown := next((key for key in _ELSEWHERE if user.get(key)), None):
        raise ValueError(
            f"kubeconfig {path}: user.{unknown} is not supported; give a token or a client "
            "certificate, of a service account for instance"
        )
    token = str(user.get("token") or "")
    if not token and (place := user.get("tokenFile")):
        token = _bytes_of(path, place).decode("ascii").strip()
    trust = _trust(path, cluster, user) if urlsplit(server).scheme == "https" else None
    return Target(url=server, trust=trust, token=token)


def server_of(path: Path) -> str:
    """Return the address of the current context's server, reading no credentials."""
    return _text(path, _current(path)[0], "server").rstrip("/")


def require_allowed(server: str, allowed: str) -> None:
    """Refuse a server on which pods and nodes may not be made up.

    Args:
        allowed: The address that was named as harmless (`TEST_CLUSTER_OK`), or an empty text.

    Raises:
        ValueError: It is neither on loopback nor the one that was named.
    """
    host = urlsplit(server).hostname or ""
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = host == "localhost"
    if not loopback and server != allowed.rstrip("/"):
        raise ValueError(
            f"server {server} is not on this machine: simulated nodes would be put into it; "
            f"set TEST_CLUSTER_OK={server} if that is meant"
        )


def _current(path: Path) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
        named = {kind: _by_name(config, kind) for kind in ("contexts", "clusters", "users")}
        context = named["contexts"][config["current-context"]]["context"]
        cluster = named["clusters"][context["cluster"]]["cluster"]
        user = named["users"][context["user"]].get("user") or {}
    except OSError as error:
        why = f"cannot be read: {error.strerror}"
        raise ValueError(f"kubeconfig {path}: {why}; name a kubeconfig") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"kubeconfig {path}: is not YAML; name a kubeconfig") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"kubeconfig {path}: no usable current-context ({error}); set it with "
            "`kubectl config use-context`"
        ) from error
    return cluster, user


def _by_name(config: Any, kind: str) -> Mapping[str, Any]:
    return {entry["name"]: entry for entry in config.get(kind) or ()}


def _text(path: Path, part: Mapping[str, Any], key: str) -> str:
    value = part.get(key)
    if not isinstance(value, str) or not value.startswith(("http://", "https://")):
        raise ValueError(f"kubeconfig {path}: cluster.{key} is {value!r}; give an http(s) address")
    return value


def _trust(path: Path, cluster: Mapping[str, Any], user: Mapping[str, Any]) -> ssl.SSLContext:
    authority = _content(path, cluster, "certificate-authority")
    context = ssl.create_default_context(cadata=authority.decode("ascii") if authority else None)
    # Newer Pythons refuse the certificates that older installers of clusters made.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    certificate = _content(path, user, "client-certificate")
    key = _content(path, user, "client-key")
    if certificate and key:
        # The ssl module reads certificates from files only; this one is gone at once.
        with tempfile.NamedTemporaryFile() as both:
            both.write(certificate + b"\n" + key)
            both.flush()
            context.load_cert_chain(both.name)
    return context


def _content(path: Path, part: Mapping[str, Any], key: str) -> bytes:
    if encoded := part.get(f"{key}-data"):
        try:
            return base64.b64decode(encoded)
        except (ValueError, TypeError) as error:
            raise ValueError(f"kubeconfig {path}: {key}-data is no base64; mend it") from error
    place = part.get(key)
    return _bytes_of(path, place) if place else b""


def _bytes_of(path: Path, place: str) -> bytes:
    """Read a file named by the kubeconfig, relative to where that is."""
    try:
        return (path.parent / place).read_bytes()
    except OSError as error:
        raise ValueError(f"kubeconfig {path}: {place} cannot be read; mend the path") from error
