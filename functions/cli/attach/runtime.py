"""What `dovetail attach` and `dovetail detach` work with: a kubeconfig, the ledger, EKS."""

import re
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from functions.cli.attach.kube_objects import KubeObjects
from functions.cli.deployed_settings import function_settings
from functions.cli.kubeconfig import kubeconfig_of
from functions.cli.plan.reading.documents import read_documents
from shared.aws.ec2.instances import Ec2Instances
from shared.aws.session import Session
from shared.kube.kubeconfig import connect_kubeconfig
from shared.manifests.raw_json import Raw
from shared.model.errors import NotAttachedError, NotFoundError, PermanentError
from shared.nodes.timers.heartbeats import last_forwarder_heartbeat
from shared.runtime.system import SystemClock, region
from shared.runtime.wiring import ActingRole, Wiring
from shared.settings import ClusterAttachment
from shared.snapshot.deployment import DOLLARS, deploy_command

_TIMEOUT: Final = timedelta(seconds=20)
_PORTS: Final = {"https": 443, "http": 80}
# Folders of infra/cluster that every cluster gets; the others are optional.
_FOLDERS: Final = (".", "node_pools")
CLUSTER_NAME: Final = re.compile(r"^[0-9A-Za-z][A-Za-z0-9_-]{0,99}$")


class ConnectionOptions(Struct, frozen=True, kw_only=True):
    """How a cluster is reached.

    Attributes:
        kubeconfig: Path of a file, None for the one that kubectl would read.
        context: Of the file, None for its current one.
        any_address: Whether its address may differ from that of EKS, as behind a proxy.
    """

    cluster: str
    kubeconfig: str | None = None
    context: str | None = None
    any_address: bool = False


class InstallationRuntime:
    """One cluster, reached with its user's permissions.

    Args:
        options: How it is reached.
        wiring: That of the control plane; None if there is none (any more).

    Raises:
        PermanentError: If the kubeconfig file cannot be used, or is for another cluster.
    """

    def __init__(self, options: ConnectionOptions, wiring: Wiring | None) -> None:
        self.cluster = options.cluster
        self.clock = SystemClock()
        self._wiring = wiring
        path = kubeconfig_of(options.kubeconfig)
        api = connect_kubeconfig(path, context=options.context, timeout=_TIMEOUT)
        self.address = api.url
        if not options.any_address:
            self._require_address(path)
        self.objects = KubeObjects(api)

    def attachment(self) -> ClusterAttachment:
        """Return the attachment that the cluster's stack wrote.

        Raises:
            NotAttachedError: If no stack attaches the cluster.
        """
        try:
            if self._wiring is not None:
                return self._wiring.registry.one(self.cluster)
        except NotAttachedError:
            pass
        raise NotAttachedError(
            f"CLUSTER: {self.cluster!r}: no stack attaches it: "
            f"{deploy_command(self.cluster, DOLLARS)}"
        )

    def last_heartbeat(self) -> datetime | None:
        """Return the time of the forwarder's last heartbeat, None when there was none."""
        return last_forwarder_heartbeat(self._wiring.ledger, self.cluster) if self._wiring else None

    def node_names(self) -> tuple[str, ...]:
        """Return the names of Dovetail's Nodes, sorted."""
        return self.objects.own_nodes()

    def open_launch_count(self) -> int:
        """Return the number of unfinished launches in the ledger."""
        return len(self._wiring.ledger.open_intents(self.cluster)) if self._wiring else 0

    def _require_address(self, path: str) -> None:
        session = Session(region=region(), api_timeout=_TIMEOUT)
        instances = Ec2Instances(session, cluster=self.cluster, role="", clock=self.clock)
        expected = instances.endpoint().endpoint
        if _host(expected) != _host(self.address):
            raise PermanentError(
                f"kubeconfig {path}: its context reaches {self.address}, but {self.cluster} is at "
                f"{expected}: aws eks update-kubeconfig --name {self.cluster}, or name another "
                "with --context; --any-address if that is a way to the same cluster"
            )


def installation_runtime(
    options: ConnectionOptions, *, needs_control_plane: bool
) -> InstallationRuntime:
    """Return the runtime that environment and kubeconfig file describe.

    Args:
        needs_control_plane: Whether a control plane is needed.

    Raises:
        PermanentError: If the name is not a cluster name, or the file is for another cluster.
        NotFoundError: If there is no such cluster, or no control plane and one is needed.
        SettingsError: If a variable of the environment is wrong.
    """
    if not CLUSTER_NAME.match(options.cluster):
        raise PermanentError(
            f"CLUSTER: {options.cluster!r}: give the name of an EKS cluster (letters, digits, - "
            "and _, at most 100)"
        )
    try:
        wiring = Wiring(function_settings(), ActingRole.OWN)
    except NotFoundError:
        if needs_control_plane:
            raise
        return InstallationRuntime(options, None)
    return InstallationRuntime(options, wiring)


@cache
def cluster_manifests() -> tuple[Raw, ...]:
    """Return the documents of infra/cluster that every cluster gets, file by file."""
    folders = [files("infra").joinpath("cluster", folder) for folder in _FOLDERS]
    paths = [
        path
        for folder in folders
        for path in sorted(folder.iterdir(), key=lambda path: path.name)
        if path.name.endswith(".yaml")
    ]
    return tuple(
        document.raw for path in paths for document in read_documents(path.name, path.read_bytes())
    )


def _host(url: str) -> tuple[str, int]:
    parts = urlsplit(url.lower())
    return parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
