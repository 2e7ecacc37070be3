"""What the services need of the world. Adapters implement it; tests have a fake for each.

Every method may raise RetryableError (throttled, unavailable, conflict) or PermanentError
(unauthorized); further errors are named where a caller acts on them.
"""

from dataclasses import dataclass

from shared.ports.clock import Clock
from shared.ports.cloud import Catalog, CloudProvider, ClusterEndpoint, Site, Subnet
from shared.ports.cluster import Cluster, Happening, NodeChange, NodeManifest, Severity
from shared.ports.records import Decisions, Ledger, Outbox, TimerKind

__all__ = [
    "Catalog",
    "Clock",
    "CloudProvider",
    "Cluster",
    "ClusterEndpoint",
    "ClusterPorts",
    "Decisions",
    "Happening",
    "Ledger",
    "NodeChange",
    "NodeManifest",
    "Outbox",
    "Severity",
    "Site",
    "Subnet",
    "TimerKind",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPorts:
    """All that a service needs to act for one cluster.

    Attributes:
        instance_profile: Default instance profile of the cluster's nodes.
    """

    cluster: Cluster
    cloud: CloudProvider
    catalog: Catalog
    ledger: Ledger
    decisions: Decisions
    outbox: Outbox
    clock: Clock
    instance_profile: str = ""
