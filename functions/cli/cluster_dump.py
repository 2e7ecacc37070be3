"""Reads a whole cluster with its user's kubeconfig; nothing is written in it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from functions.cli.kubeconfig import kubeconfig_of
from shared.kube.api import KubeApi
from shared.kube.cluster import DAEMONSETS_PATH, RUNTIMES_PATH, KubeCluster
from shared.kube.kubeconfig import connect_kubeconfig
from shared.kube.lists import list_all
from shared.kube.nodes import BUDGETS_PATH, NODES_PATH, PODS_PATH
from shared.kube.paths_and_documents import NAMESPACES_PATH
from shared.kube.provisioners import (
    NODE_CLASSES_PATH,
    NODE_POOLS_PATH,
    NODE_TEMPLATES_PATH,
    PROVISIONERS_PATH,
)
from shared.kube.storage import CLAIMS_PATH, CLASSES_PATH, CSI_NODES_PATH, VOLUMES_PATH
from shared.manifests.raw_json import Raw
from shared.model.dialect import V1, V1ALPHA5
from shared.model.errors import NotFoundError, UnauthorizedError
from shared.ports import PastEvent

_PRIORITIES_PATH: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
_KINDS: Final = {
    NODES_PATH: "Node",
    PODS_PATH: "Pod",
    NAMESPACES_PATH: "Namespace",
    DAEMONSETS_PATH: "DaemonSet",
    RUNTIMES_PATH: "RuntimeClass",
    _PRIORITIES_PATH: "PriorityClass",
    BUDGETS_PATH: "PodDisruptionBudget",
    CLAIMS_PATH: "PersistentVolumeClaim",
    VOLUMES_PATH: "PersistentVolume",
    CLASSES_PATH: "StorageClass",
    CSI_NODES_PATH: "CSINode",
    PROVISIONERS_PATH: V1ALPHA5.owner_kind.value,
    NODE_TEMPLATES_PATH: V1ALPHA5.template_kind,
    NODE_POOLS_PATH: V1.owner_kind.value,
    NODE_CLASSES_PATH: V1.template_kind,
}
# Without them there is nothing to report.
_REQUIRED: Final = frozenset({NODES_PATH, PODS_PATH})


def _objects(api: KubeApi, unread: dict[str, str]) -> Iterator[Raw]:
    for path, kind in _KINDS.items():
        version = path.removeprefix("/apis/").removeprefix("/api/").rpartition("/")[0]
        try:
            listed = list_all(api, path, lambda raw: raw)
        except NotFoundError:
            continue
        except UnauthorizedError as error:
            # The API server may also respond so for a kind that it does not define.
            if path in _REQUIRED:
                raise
            unread[kind] = str(error)
            continue
        for raw in listed:
            yield {"apiVersion": version, "kind": kind, **raw}


def dump_cluster(
    kubeconfig: str | None, unread: dict[str, str], context: str | None = None
) -> Iterator[Raw]:
    """Yield the objects that show what runs and what may be launched; nothing is written.

    Each has its kind and apiVersion. Kinds that the cluster does not define are left out.

    Args:
        kubeconfig: File name; None for what KUBECONFIG names, or kubectl's default.
        context: Of the file, None for its current one.
        unread: Gets each kind, other than nodes and pods, that may not be read, with why.

    Raises:
        AutoscalerError: If the file or the cluster cannot be read.
    """
    return _objects(connect_kubeconfig(kubeconfig_of(kubeconfig), context=context), unread)


def unread_notes(unread: Mapping[str, str]) -> list[str]:
    """Return a line for each kind that may not be read."""
    return [f"{kind}: may not be read, so none is known: {why}" for kind, why in unread.items()]


def past_events(
    kubeconfig: str | None, context: str | None = None
) -> Callable[[str, str, str], tuple[PastEvent, ...]]:
    """Return what lists the Events about an object of a kind, namespace and name, oldest first.

    Args:
        kubeconfig, context: As for `dump_cluster`.
    """
    return KubeCluster("", connect_kubeconfig(kubeconfig_of(kubeconfig), context=context)).events
