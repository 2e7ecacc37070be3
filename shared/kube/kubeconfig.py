"""Connections by a pod's service account or a kubeconfig file.

The official client reads both, and refreshes their credentials.
"""

import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

import yaml
from kubernetes.client.api_client import ApiClient
from kubernetes.client.configuration import Configuration
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.incluster_config import load_incluster_config
from kubernetes.config.kube_config import KubeConfigMerger, load_kube_config

from shared.kube.api import KubeApi
from shared.kube.bounds import POOLS
from shared.kube.connection import SOCKET_OPTIONS, TIMEOUT, tls_context
from shared.model.errors import PermanentError
from shared.model.nearest import nearest_first

# The client does not check the structure of a kubeconfig; these errors mean that it is wrong.
_NO_FORM: Final = (TypeError, AttributeError, ValueError, LookupError, RecursionError)
_UNUSABLE: Final = (ConfigException, OSError, yaml.YAMLError, *_NO_FORM)
_SHOWN: Final = 300


def connect_in_cluster(*, timeout: timedelta = TIMEOUT) -> KubeApi:
    """Return a client for the API server of the cluster this process runs in.

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
    """Return a client for the API server of a context of a kubeconfig file.

    Args:
        path: Path of the file, or several paths as in KUBECONFIG: the first that names the context
            counts.
        context: Name of the context, None for the current context.
        timeout: Longest wait for an answer.
        kind: Class of the client.

    Raises:
        PermanentError: If the file is missing or unusable, its credential plugin returns no
            credentials, or its certificate authority is not a certificate.
    """
    configuration = Configuration()
    try:
        with _errors_kept() as errors:
            load_kube_config(  # type: ignore[no-untyped-call]
                config_file=path, context=context, client_configuration=configuration
            )
    except _UNUSABLE as error:
        if missing := _missing_context(path, context):
            raise PermanentError(f"kubeconfig {path}: {missing}") from error
        reason = _line(error)
        if isinstance(error, _NO_FORM):
            reason = f"is no kubeconfig ({reason})"
        raise PermanentError(
            f"kubeconfig {path}: {reason}; name a readable file, or set KUBECONFIG to one"
        ) from error
    if errors and not (configuration.api_key or configuration.cert_file or configuration.username):
        # In a terminal the plugin writes to the terminal, and the client fails without its text.
        said = "failed, as it says above"
        if not isinstance(errors[-1], AttributeError):
            said = _line(errors[-1]).removeprefix("exec: ")
        raise PermanentError(
            f"kubeconfig {path}: exec {_plugin(path, context)}: {said}; "
            "log in, as with aws sso login, or install it"
        )
    return _api(configuration, timeout, kind)


def _missing_context(path: str, context: str | None) -> str:
    """Return that no context has that name, and which there are; empty if one has, or none is."""
    try:
        config: Any = KubeConfigMerger(path).config  # type: ignore[no-untyped-call]
        wanted = str(context or config["current-context"])
        known = [str(entry["name"]) for entry in config["contexts"].value]
    except _UNUSABLE:
        return ""
    if wanted in known or not known:
        return ""
    return f"no context {wanted}; there are: {', '.join(nearest_first(wanted, known))}"


def _line(error: object) -> str:
    """Return an error as part of one line: errors of the YAML parser have several lines."""
    line = "".join(letter if letter.isprintable() else " " for letter in str(error)).rstrip(". ")
    return " ".join(line.split())[:_SHOWN] or type(error).__name__


@contextmanager
def _errors_kept() -> Iterator[list[object]]:
    """Yield a list of the errors, or their texts, that the client logs; they are not printed.

    The client logs the error of a credential plugin and continues without credentials.
    Source: https://github.com/kubernetes-client/python/blob/v37.0.1/kubernetes/base/config/kube_config.py
    (_load_from_exec_plugin, 2026-11).
    """
    found: list[object] = []

    def keep(record: logging.LogRecord) -> bool:
        found.append(sys.exc_info()[1] or record.getMessage())
        return False

    # Without any handler the client's `logging.error` would add a permanent handler.
    silent = logging.NullHandler()
    logging.root.addHandler(silent)
    logging.root.addFilter(keep)
    try:
        yield found
    finally:
        logging.root.removeFilter(keep)
        logging.root.removeHandler(silent)


def _plugin(path: str, context: str | None) -> str:
    """Return the command of the credential plugin of a context's user."""
    config: Any = KubeConfigMerger(path).config  # type: ignore[no-untyped-call]
    try:
        chosen = config["contexts"].get_with_name(context or config["current-context"])
        user = config["users"].get_with_name(chosen["context"]["user"])["user"]
        return str(user["exec"].safe_get("command"))
    except _UNUSABLE:
        return "without a command"


def _api(
    configuration: Configuration, timeout: timedelta, kind: type[KubeApi] = KubeApi
) -> KubeApi:
    pools = ApiClient(configuration).rest_client.pool_manager
    pools.pool_classes_by_scheme = POOLS
    pools.connection_pool_kw["socket_options"] = SOCKET_OPTIONS
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
