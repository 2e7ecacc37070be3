"""Three ways to reach a cluster: as a Lambda function, as a pod, by a kubeconfig file."""

import base64
from collections.abc import Callable
from datetime import timedelta

from kubernetes.client.api_client import ApiClient
from kubernetes.client.configuration import Configuration
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.incluster_config import load_incluster_config
from kubernetes.config.kube_config import load_kube_config

from shared.kube.calls import KubeApi
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
    """
    configuration = Configuration(host=url)
    if certificate_authority:
        # Not as a file: nobody can put another in its place. Certificates are ASCII; what is not
        # can only be a remark beside them.
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
        PermanentError: If this is no pod.
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
        PermanentError: If the file is missing or says nothing usable.
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
    return KubeApi(client, timeout=timeout, compress=compress)
