"""Connections that a pod's service account or a kubeconfig file describes.

The official client reads both, and refreshes their credentials.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from kubernetes.client.api_client import ApiClient
from kubernetes.client.configuration import Configuration
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.incluster_config import load_incluster_config
from kubernetes.config.kube_config import load_kube_config

from shared.kube.api import KubeApi
from shared.kube.bounds import POOLS
from shared.kube.connection import TIMEOUT, tls_context
from shared.model.errors import PermanentError


def connect_in_cluster(*, timeout: timedelta = TIMEOUT) -> KubeApi:
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
    return _api(configuration, timeout)


def connect_kubeconfig(
    path: str,
    *,
    context: str | None = None,
    timeout: timedelta = TIMEOUT,
    kind: type[KubeApi] = KubeApi,
) -> KubeApi:
    """Return the API server of a context of a kubeconfig file.

    Args:
        path: Of the file; several as in KUBECONFIG, the first that names the context counts.
        context: Its name, None for the file's current one.
        timeout: Longest wait for an answer.
        kind: What the connection may do.

    Raises:
        PermanentError: If the file is missing or says nothing usable, or its certificate authority
            is not a certificate.
    """
    configuration = Configuration()
    try:
        load_kube_config(  # type: ignore[no-untyped-call]
            config_file=path, context=context, client_configuration=configuration
        )
    except (ConfigException, OSError) as error:
        reason = str(error).rstrip(".")
        raise PermanentError(
            f"kubeconfig {path}: {reason}; name a readable file, or set KUBECONFIG to one"
        ) from error
    return _api(configuration, timeout, kind)


def _api(
    configuration: Configuration, timeout: timedelta, kind: type[KubeApi] = KubeApi
) -> KubeApi:
    pools = ApiClient(configuration).rest_client.pool_manager
    pools.pool_classes_by_scheme = POOLS
    pools.connection_pool_kw["ssl_context"] = tls_context(
        configuration.host,
        file=configuration.ssl_ca_cert,
        text=configuration.ca_cert_data,
        verify=configuration.verify_ssl,
    )

    def authorization() -> Mapping[str, str]:
        settings: dict[str, Any] = dict(configuration.auth_settings())
        return {
            found["key"]: found["value"] for found in settings.values() if found["in"] == "header"
        }

    return kind(configuration.host, pools, authorization, timeout=timeout)
