"""Connections to API servers from outside their cluster; options of all connections."""

import base64
import socket
import ssl
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3
from urllib3.connection import HTTPConnection
from urllib3.util import create_urllib3_context

from shared.kube.api import KubeApi
from shared.kube.bounds import POOLS
from shared.model.errors import PermanentError
from shared.ports.executor import MAX_CONCURRENT_CALLS

TIMEOUT: Final = timedelta(seconds=20)
_CONNECTIONS: Final = (
    MAX_CONCURRENT_CALLS + 2
)  # one for each thread, and two for the main thread with a watch
# Seconds of silence before the first probe, seconds between probes, and unanswered probes.
_PROBES: Final = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
# They distinguish a quiet watch from a dead connection within a minute. Not every platform has each
# option.
# Source: https://man7.org/linux/man-pages/man7/tcp.7.html (2026-11).
SOCKET_OPTIONS: Final = (
    *HTTPConnection.default_socket_options,
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in _PROBES
        if hasattr(socket, name)
    ),
)


def connect_endpoint(
    url: str,
    certificate_authority: str,
    token: Callable[[], str],
    *,
    timeout: timedelta = TIMEOUT,
) -> KubeApi:
    """Return a client for the API server at a URL, from outside the cluster.

    Args:
        url: Its endpoint, `https://...` (`http://` only in local tests).
        certificate_authority: PEM certificates in base64, as DescribeCluster returns them; empty
            for those of the system.
        token: Called for each request; returns a token that is still valid, from its own cache.
        timeout: Longest wait for an answer.

    Raises:
        PermanentError: If the certificate authority is not a certificate.
    """
    # Not as a file, which another process could replace. Certificates are ASCII; other text
    # can only be a comment.
    pem = base64.b64decode(certificate_authority).decode("ascii", "ignore")
    options: dict[str, Any] = {
        "maxsize": _CONNECTIONS,
        "socket_options": SOCKET_OPTIONS,
        "ssl_context": tls_context(url, text=pem),
    }
    parts = urlsplit(url)
    proxy = getproxies().get(parts.scheme)
    if proxy and not proxy_bypass(parts.hostname or ""):
        pool: urllib3.PoolManager = urllib3.ProxyManager(proxy, **options)
    else:
        pool = urllib3.PoolManager(**options)
    pool.pool_classes_by_scheme = POOLS
    return KubeApi(
        url, pool, lambda: {"authorization": f"Bearer {token()}"}, timeout=timeout, compress=True
    )


def tls_context(
    url: str, *, file: str | None = None, text: str | bytes | None = None, verify: bool = True
) -> ssl.SSLContext:
    """Return a context that checks chain, dates and host name, but not VERIFY_X509_STRICT.

    Python 3.13 and later set VERIFY_X509_STRICT, which refuses certificates without key
    identifiers: those of every cluster created with Kubernetes 1.16 or older.
    Source: https://docs.python.org/3.13/library/ssl.html#ssl.create_default_context and
    https://github.com/kubernetes-client/python/issues/2394 (2026-11).

    Args:
        file: Path of trusted certificates.
        text: Trusted certificates; without file and text, those of the system.
        verify: Whether anything is checked.

    Raises:
        PermanentError: If the certificate authority is not a certificate.
    """
    context = create_urllib3_context(cert_reqs=ssl.CERT_REQUIRED if verify else ssl.CERT_NONE)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not file and not text:
        if urlsplit(url).scheme != "http":
            context.load_default_certs()
        return context
    try:
        context.load_verify_locations(cafile=file, cadata=text)
    except OSError as error:
        raise PermanentError(
            f"the certificate authority of {url} cannot be read: {error}"
        ) from error
    return context
