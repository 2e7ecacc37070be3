"""What the services need of the world. Adapters implement it; tests have a fake for each.

Every method may raise RetryableError (throttled, unavailable, conflict) or PermanentError
(unauthorized); further errors are named where a caller acts on them.
"""

from dataclasses import dataclass, field

from shared.model.brakes import NO_BRAKES, Brakes
from shared.model.provisioner import UNBOUND, MetadataBound
from shared.ports.clock import Clock
from shared.ports.cloud import (
    Catalog,
    CloudProvider,
    ClusterEndpoint,
    MachineImage,
    Site,
    Subnet,
)
from shared.ports.cluster import (
    Cluster,
    Condition,
    KubernetesEvent,
    NodeChange,
    NodeManifest,
    PastEvent,
    Severity,
)
from shared.ports.records import Decisions, Ledger, Outbox, TimerKind
from shared.ports.rivals import NoRivals, Rival, RivalKind, Rivals
from shared.ports.storage import Storage
from shared.ports.templates import FoundImage, Templates, TemplateStatus

__all__ = [
    "Catalog",
    "Clock",
    "CloudProvider",
    "Cluster",
    "ClusterEndpoint",
    "ClusterPorts",
    "Condition",
    "Decisions",
    "FoundImage",
    "KubernetesEvent",
    "Ledger",
    "MachineImage",
    "NoRivals",
    "NodeChange",
    "NodeManifest",
    "Outbox",
    "PastEvent",
    "Rival",
    "RivalKind",
    "Rivals",
    "Severity",
    "Site",
    "Storage",
    "Subnet",
    "TemplateStatus",
    "Templates",
    "TimerKind",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPorts:
    """All that a service needs to act for one cluster.

    Attributes:
        instance_profile: Default instance profile of the cluster's nodes.
        metadata: What the attachment allows of the instance metadata service.
        brakes: What people have set for the whole cluster, as it stands now.
        rivals: Sees other autoscalers.
    """

    cluster: Cluster
    cloud: CloudProvider
    catalog: Catalog
    ledger: Ledger
    decisions: Decisions
    outbox: Outbox
    clock: Clock
    instance_profile: str = ""
    metadata: MetadataBound = UNBOUND
    brakes: Brakes = NO_BRAKES
    rivals: Rivals = field(default_factory=NoRivals)
