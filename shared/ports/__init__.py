"""The ports: interfaces to the world outside. Adapters implement them; tests have a fake for each.

Every method may raise RetryableError (throttled, unavailable, conflict) or PermanentError
(unauthorized); further errors are named where a caller acts on them.
"""

from collections.abc import Mapping

from msgspec import Struct, field

from shared.model.brakes import NO_BRAKES, Brakes
from shared.model.policy import PreferencePolicy
from shared.model.provisioner import UNBOUND, MetadataBound, NodeTemplate
from shared.ports.clock import Clock
from shared.ports.cloud import (
    CloudProvider,
    ClusterEndpoint,
    Instances,
    InstanceTypeProvider,
    MachineImage,
    Site,
    Subnet,
)
from shared.ports.cluster import (
    Cluster,
    ConditionType,
    KubernetesEvent,
    NodeChange,
    NodeCluster,
    NodeManifest,
    PastEvent,
    Severity,
)
from shared.ports.executor import Executor
from shared.ports.ledger_and_outbox import Decisions, Ledger, NodeLedger, Outbox, TimerKind
from shared.ports.rivals import NoRivals, Rival, RivalKind, Rivals
from shared.ports.storage import Storage
from shared.ports.templates import (
    FoundImage,
    NodeClass,
    PoolStatus,
    Templates,
    TemplateStatus,
)

__all__ = [
    "Clock",
    "CloudProvider",
    "Cluster",
    "ClusterEndpoint",
    "ClusterPorts",
    "ConditionType",
    "Decisions",
    "FoundImage",
    "InstanceTypeProvider",
    "Instances",
    "KubernetesEvent",
    "Ledger",
    "MachineImage",
    "NoRivals",
    "NodeChange",
    "NodeClass",
    "NodeCluster",
    "NodeLedger",
    "NodeManifest",
    "NodePorts",
    "Outbox",
    "PastEvent",
    "PoolStatus",
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


class NodePorts(Struct, frozen=True, kw_only=True):
    """All that a service needs to act on the nodes of one cluster.

    Attributes:
        brakes: The current brakes of the whole cluster.
        executor: Works on several nodes or pods concurrently, where it has threads.
    """

    cluster: NodeCluster
    cloud: Instances
    ledger: NodeLedger
    outbox: Outbox
    clock: Clock
    brakes: Brakes = NO_BRAKES
    executor: Executor = field(default_factory=Executor)


class ClusterPorts(NodePorts, frozen=True, kw_only=True):
    """All that a service needs to plan and launch for one cluster.

    Attributes:
        instance_profile: Default instance profile of the cluster's nodes.
        node_profiles: Instance profile by the role it carries, of roles that nodes may have.
        metadata: Bounds that the attachment sets on access to the instance metadata service.
        preference_policy: How preferences of pods are handled where a Provisioner does not say.
        daemonset_namespaces: Namespaces whose DaemonSets nodes have capacity for, however much
            they request.
        rivals: Detects other autoscalers.
    """

    cluster: Cluster
    cloud: CloudProvider
    ledger: Ledger
    catalog: InstanceTypeProvider
    decisions: Decisions
    instance_profile: str = ""
    node_profiles: Mapping[str, str] = field(default_factory=dict)
    metadata: MetadataBound = UNBOUND
    preference_policy: PreferencePolicy = PreferencePolicy.WEIGH
    daemonset_namespaces: frozenset[str] = frozenset({"kube-system"})
    rivals: Rivals = field(default_factory=NoRivals)

    def profile_of(self, template: NodeTemplate) -> str:
        """Return the instance profile of a template's instances, empty if its role has none."""
        if template.role:
            return self.node_profiles.get(template.role, "")
        return template.instance_profile or self.instance_profile
