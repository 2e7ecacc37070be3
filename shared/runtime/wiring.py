"""The adapters of a process that acts on nodes: which adapter implements which port.

The ports of a cluster are cached until its attachment or its endpoint changes.
"""

import functools
import sys
from collections.abc import Callable
from datetime import timedelta
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from shared.aws.clusters import ClusterRegistry
from shared.aws.ec2.instances import Ec2Instances
from shared.aws.eks_token import EksToken
from shared.aws.ledger.node_ledger import DynamoNodeLedger
from shared.aws.outbox import SqsOutbox
from shared.aws.session import Session
from shared.kube.api import KubeApi
from shared.kube.connection import connect_endpoint
from shared.kube.nodes import KubeNodes
from shared.model.errors import AutoscalerError
from shared.model.messages.message import Message
from shared.model.messages.message_rate import MessageRate
from shared.model.values import replace
from shared.ports import ClusterEndpoint, NodePorts, TimerKind
from shared.runtime.logs_and_metrics import count, logger, print_metrics
from shared.runtime.system import SystemClock, function_name, region
from shared.runtime.threads import Threads
from shared.settings import (
    ClusterAttachment,
    FunctionSettings,
    SweepSettings,
    TimerSettings,
)

P = TypeVar("P")
ReadEndpoint = Callable[[], ClusterEndpoint]


class _Connection(NamedTuple, Generic[P]):
    attachment: ClusterAttachment
    endpoint: ClusterEndpoint
    read_endpoint: ReadEndpoint
    ports: P


class Connections(Generic[P]):
    """Ports by cluster, created again when its attachment or its endpoint has changed.

    Args:
        connect: Creates the ports of a cluster; also returns a function that asks EKS for its
            endpoint.
    """

    def __init__(self, connect: Callable[[ClusterAttachment], tuple[P, ReadEndpoint]]) -> None:
        self._connect = connect
        self._known: dict[str, _Connection[P]] = {}

    def to(self, attachment: ClusterAttachment) -> P:
        """Return the ports of an attached cluster.

        Raises:
            AutoscalerError: If the cluster cannot be connected to.
        """
        connection = self._known.get(attachment.name)
        if connection is None or connection.attachment != attachment or _has_moved(connection):
            ports, ask = self._connect(attachment)
            connection = self._known[attachment.name] = _Connection(attachment, ask(), ask, ports)
        return connection.ports


def _has_moved(connection: _Connection[P]) -> bool:
    """Return whether the cluster was recreated under its name; False when EKS does not answer."""
    try:
        return connection.read_endpoint() != connection.endpoint
    except AutoscalerError:
        return False


class ActingRole(StrEnum):
    """Which of a cluster's three roles a process acts under; no function has two.

    OWN is for users of the command line: their own permissions, since the roles trust functions
    only.
    """

    INSIDE = "inside"
    LAUNCH = "launch"
    TERMINATE = "terminate"
    OWN = "own"


class Wiring:
    """Adapters of one process, created on first use and kept for its lifetime."""

    def __init__(self, settings: FunctionSettings, role: ActingRole) -> None:
        self.settings = settings
        self.role = role
        self.clock = SystemClock()
        self.session = Session(
            region=region(),
            api_timeout=timedelta(seconds=settings.api_timeout_seconds),
            name=function_name(),
        )
        self._connections = Connections(self._connect)
        self._rate = MessageRate()

    @functools.cached_property
    def registry(self) -> ClusterRegistry:
        """The clusters that are attached."""
        return ClusterRegistry(
            self.session,
            path=self.settings.cluster_parameters,
            clock=self.clock,
            notice=print_note if self.role == ActingRole.OWN else logger.warning,
        )

    @functools.cached_property
    def ledger(self) -> DynamoNodeLedger:
        """The ledger."""
        return DynamoNodeLedger(
            self.session, table=self.settings.table, clock=self.clock, notice=report_foreign_row
        )

    @functools.cached_property
    def outbox(self) -> SqsOutbox:
        """Messages and timers."""
        settings = self.settings
        state_machines = {}
        functions = {}
        if isinstance(settings, TimerSettings):
            state_machines = {
                TimerKind.EMPTINESS: settings.emptiness_machine,
                TimerKind.EXPIRATION: settings.expiration_machine,
                TimerKind.REGISTRATION: settings.registration_machine,
                TimerKind.REPLACEMENT: settings.replacement_machine,
                TimerKind.TERMINATION: settings.termination_machine,
            }
            functions = {
                "bind": settings.bind_function,
                "provision": settings.provision_function,
            }
        if isinstance(settings, SweepSettings):
            functions["sweep"] = settings.sweep_function
        return SqsOutbox(
            self.session,
            queue_url=settings.queue_url,
            state_machines=state_machines,
            functions=functions,
            clock=self.clock,
        )

    def admits(self, message: Message) -> bool:
        """Return whether to serve a message of a forwarder, which may send too many.

        Raises:
            NotAttachedError: If no such cluster is attached.
        """
        dropped = self._rate.dropped_before(message.cluster, message.kind, self.clock.now())
        if dropped is None:
            return False
        self.registry.one(message.cluster)
        if dropped:
            # One metric for all functions that forwarders wake, and so one alarm.
            print_metrics(message.cluster, {"MessagesDropped": dropped}, service="heartbeat")
        return True

    def ports(self, cluster: str) -> NodePorts:
        """Return the ports of one cluster, connected under the process's acting role.

        Raises:
            NotFoundError: If no such cluster is attached.
            PermanentError: If its attachment cannot be read; the text says what is wrong.
        """
        ports = self._connections.to(self.registry.one(cluster))
        return replace(ports, brakes=self.registry.brakes(cluster))

    def role_arn(self, attachment: ClusterAttachment) -> str:
        """Return the ARN of the process's acting role in a cluster, empty for OWN."""
        return {
            ActingRole.INSIDE: attachment.inside_role,
            ActingRole.LAUNCH: attachment.launch_role,
            ActingRole.TERMINATE: attachment.terminate_role,
            ActingRole.OWN: "",
        }[self.role]

    def api(self, endpoint: ClusterEndpoint, role: str) -> KubeApi:
        """Return the API server of a cluster, to be called under one of the cluster's roles."""
        return connect_endpoint(
            endpoint.endpoint,
            endpoint.certificate_authority,
            EksToken(self.session, cluster=endpoint.name, role=role, clock=self.clock),
            timeout=timedelta(seconds=self.settings.api_timeout_seconds),
        )

    def _connect(self, attachment: ClusterAttachment) -> tuple[NodePorts, ReadEndpoint]:
        cluster, role = attachment.name, self.role_arn(attachment)
        cloud = Ec2Instances(self.session, cluster=cluster, role=role, clock=self.clock)
        api = self.api(cloud.endpoint(), role)
        ports = NodePorts(
            cluster=KubeNodes(cluster, api, now=self.clock.now),
            cloud=cloud,
            ledger=self.ledger,
            outbox=self.outbox,
            clock=self.clock,
            executor=Threads(),
        )
        return ports, cloud.endpoint


def report_foreign_row(text: str) -> None:
    """Log and count a row of the ledger that Dovetail did not write."""
    logger.warning(text)
    count("ForeignLedgerRows", 1)


def print_note(text: str) -> None:
    """Write a line for the user of a command."""
    sys.stderr.write(f"note: {text}\n")
