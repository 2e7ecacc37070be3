"""Three ways to reach a cluster: as a Lambda function, as a pod, by a kubeconfig file."""

import base64
import ssl
from collections.abc import Callable
from datetime import timedelta

from kubernetes.client.api_client import ApiClient
from kubernetes.client.configuration import Configuration
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.incluster_config import load_incluster_config
from kubernetes.config.kube_config import load_kube_config
from urllib3.util import create_urllib3_context

from shared.kube.api import KubeApi
from shared.kube.bounds import POOLS
from shared.model.errors import PermanentError

USER_AGENT = "dovetail"
_TIMEOUT = timedelta(seconds=20)


def connect_endpoint(
    url: str,
    certificate_authority: str,
    token: Callable[[], str],
    *,
    timeout: timedelta = _TIMEOUT,
) -> KubeApi:
    """Return the API server at a URL, as a function outside the cluster reaches it.

    Args:
        url: Its endpoint, `https://...` (`http://` only in the local world).
        certificate_authority: PEM certificates in base64, as DescribeCluster gives them; empty
            for those of the system.
        token: Called for each request; returns a token that is still valid, from its own cache.
        timeout: Longest wait for an answer.

    Raises:
        PermanentError: If the certificate authority is not a certificate.
    """
    configuration = Configuration(host=url)
    if certificate_authority:
        # Not as a file, which another process could replace. Certificates are ASCII; other text
        # can only be a comment beside them.
        pem = base64.b64decode(certificate_authority).decode("ascii", "ignore")
        configuration.ca_cert_data = pem

    def refresh(current: Configuration) -> None:
        current.api_key["authorization"] = f"Bearer {token()}"

    # The hook runs only for a key that is there.
    configuration.api_key["authorization"] = ""
    # Set by name: the client declares the attribute as None only.
    setattr(configuration, "refresh_api_key_hook", refresh)  # noqa: B010
    return _api(configuration, timeout, compress=True)


def connect_in_cluster(*, timeout: timedelta = _TIMEOUT) -> KubeApi:
    """Return the API server of the cluster this process runs in, by its service account.

    Raises:
        PermanentError: If this is no pod, or its certificate authority is not a certificate.
    """
    configuration = Configuration()
    try:
        load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    except ConfigException as error:
        raise PermanentError(
            f"no service account found ({error}); run inside a cluster or name a kubeconfig file"
        ) from error
    return _api(configuration, timeout, compress=False)


def connect_kubeconfig(path: str, *, timeout: timedelta = _TIMEOUT) -> KubeApi:
    """Return the API server of a kubeconfig file's current context.

    Raises:
        PermanentError: If the file is missing or says nothing usable, or its certificate authority
            is not a certificate.
    """
    configuration = Configuration()
    try:
        load_kube_config(config_file=path, client_configuration=configuration)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError) as error:
        raise PermanentError(f"kubeconfig {path}: {error}; name a readable file") from error
    return _api(configuration, timeout, compress=False)


def _api(configuration: Configuration, timeout: timedelta, *, compress: bool) -> KubeApi:
    client = ApiClient(configuration)
    client.user_agent = USER_AGENT
    pools = client.rest_client.pool_manager
    pools.pool_classes_by_scheme = POOLS
    pools.connection_pool_kw["ssl_context"] = _tls_context(configuration)
    return KubeApi(client, timeout=timeout, compress=compress)


def _tls_context(configuration: Configuration) -> ssl.SSLContext:
    """Return a context that checks chain, dates and host name, but no form of the certificates.

    Python 3.13 and later set VERIFY_X509_STRICT, which refuses certificates without key
    identifiers: those of every cluster created with Kubernetes 1.16 or older.
    Source: https://docs.python.org/3.13/library/ssl.html#ssl.create_default_context and
    https://github.com/kubernetes-client/python/issues/2394 (2026-11).

    Raises:
        PermanentError: If the certificate authority is not a certificate.
    """
    wanted = ssl.CERT_REQUIRED if configuration.verify_ssl else ssl.CERT_NONE
    context = create_urllib3_context(cert_reqs=wanted)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    file, text = configuration.ssl_ca_cert, configuration.ca_cert_data
    if not file and not text:
        context.load_default_certs()
        return context
    try:
        context.load_verify_locations(cafile=file, cadata=text)
    except OSError as error:
        raise PermanentError(
            f"the certificate authority of {configuration.host} cannot be read: {error}"
        ) from error
    return context
