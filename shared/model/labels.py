"""Label, annotation, taint and tag keys, and the rules about them.

Source: https://kubernetes.io/docs/reference/labels-annotations-taints/ (2026-08) and the
v1alpha5 API of Karpenter, whose manifests Dovetail accepts unchanged.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

PROVISIONER_NAME: Final = "karpenter.sh/provisioner-name"
NODE_POOL: Final = "karpenter.sh/nodepool"
NODE_CLASS: Final = "karpenter.k8s.aws/ec2nodeclass"
CAPACITY_TYPE: Final = "karpenter.sh/capacity-type"
INITIALIZED: Final = "karpenter.sh/initialized"
REGISTERED: Final = "karpenter.sh/registered"
DO_NOT_EVICT: Final = "karpenter.sh/do-not-evict"
DO_NOT_CONSOLIDATE: Final = "karpenter.sh/do-not-consolidate"
DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
# On a Node that keeps the taints its kubelet registered it with.
DO_NOT_SYNC_TAINTS: Final = "karpenter.sh/do-not-sync-taints"
# On a node that is being deleted: when its drain ends, whatever blocks it. Karpenter writes it too.
TERMINATION_TIMESTAMP: Final = "karpenter.sh/nodeclaim-termination-timestamp"
EMPTINESS_TIMESTAMP: Final = "karpenter.sh/emptiness-timestamp"
PROVISIONER_HASH: Final = "karpenter.sh/provisioner-hash"
HASH_VERSION: Final = "dovetail.dev/hash-version"
# On a node that expires by force: its age limit at launch, in seconds, or Never.
EXPIRE_AFTER: Final = "dovetail.dev/expire-after"
# On a node: how long its drain may last, in seconds, as at its launch; used if its owner is gone.
TERMINATION_GRACE_PERIOD: Final = "dovetail.dev/termination-grace-period"
TERMINATION_FINALIZER: Final = "karpenter.sh/termination"
NOT_READY_TAINT: Final = "karpenter.sh/not-ready"
UNREGISTERED_TAINT: Final = "karpenter.sh/unregistered"
# Each keeps kube-scheduler away from a new node until its pods are bound, in one of the dialects.
CLOSING_TAINTS: Final = frozenset({NOT_READY_TAINT, UNREGISTERED_TAINT})
# Each keeps a pod from being evicted, or a node from being disrupted to save cost, if it is `true`.
POD_BLOCKING_ANNOTATIONS: Final = (DO_NOT_EVICT, DO_NOT_DISRUPT)
POD_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
MIRROR_POD: Final = "kubernetes.io/config.mirror"
# All that are read of a pod: others may repeat its whole manifest with its environment variables.
POD_ANNOTATIONS: Final = frozenset({*POD_BLOCKING_ANNOTATIONS, POD_DELETION_COST, MIRROR_POD})
NODE_BLOCKING_ANNOTATIONS: Final = (DO_NOT_CONSOLIDATE, DO_NOT_DISRUPT)

ZONE: Final = "topology.kubernetes.io/zone"
# The id of the zone, the same in all accounts. The cloud controller adds it; no catalog has it.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html (2026-11)
ZONE_ID: Final = "topology.k8s.aws/zone-id"
INSTANCE_TENANCY: Final = "karpenter.k8s.aws/instance-tenancy"
REGION: Final = "topology.kubernetes.io/region"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
ARCH: Final = "kubernetes.io/arch"
OS: Final = "kubernetes.io/os"
HOSTNAME: Final = "kubernetes.io/hostname"

INSTANCE_FAMILY: Final = "karpenter.k8s.aws/instance-family"
INSTANCE_CATEGORY: Final = "karpenter.k8s.aws/instance-category"
INSTANCE_GENERATION: Final = "karpenter.k8s.aws/instance-generation"
INSTANCE_SIZE: Final = "karpenter.k8s.aws/instance-size"
INSTANCE_CPU: Final = "karpenter.k8s.aws/instance-cpu"
INSTANCE_MEMORY: Final = "karpenter.k8s.aws/instance-memory"
INSTANCE_PODS: Final = "karpenter.k8s.aws/instance-pods"
INSTANCE_HYPERVISOR: Final = "karpenter.k8s.aws/instance-hypervisor"
INSTANCE_LOCAL_NVME: Final = "karpenter.k8s.aws/instance-local-nvme"
INSTANCE_NETWORK_BANDWIDTH: Final = "karpenter.k8s.aws/instance-network-bandwidth"
INSTANCE_ENCRYPTION: Final = "karpenter.k8s.aws/instance-encryption-in-transit-supported"
INSTANCE_EBS_BANDWIDTH: Final = "karpenter.k8s.aws/instance-ebs-bandwidth"
INSTANCE_CPU_MANUFACTURER: Final = "karpenter.k8s.aws/instance-cpu-manufacturer"
INSTANCE_CLOCK_SPEED: Final = "karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz"
INSTANCE_FLEX: Final = "karpenter.k8s.aws/instance-capability-flex"
INSTANCE_GPU_NAME: Final = "karpenter.k8s.aws/instance-gpu-name"
INSTANCE_GPU_MANUFACTURER: Final = "karpenter.k8s.aws/instance-gpu-manufacturer"
INSTANCE_GPU_COUNT: Final = "karpenter.k8s.aws/instance-gpu-count"
INSTANCE_GPU_MEMORY: Final = "karpenter.k8s.aws/instance-gpu-memory"
INSTANCE_ACCELERATOR_NAME: Final = "karpenter.k8s.aws/instance-accelerator-name"
INSTANCE_ACCELERATOR_MANUFACTURER: Final = "karpenter.k8s.aws/instance-accelerator-manufacturer"
INSTANCE_ACCELERATOR_COUNT: Final = "karpenter.k8s.aws/instance-accelerator-count"

# Dovetail's keys, on nodes (annotations), provisioners (annotations) and EC2 resources (tags).
PAUSED: Final = "dovetail.dev/paused"
SHADOW: Final = "dovetail.dev/shadow"
MAX_NODES: Final = "dovetail.dev/max-nodes"
MAX_PRICE_PER_HOUR: Final = "dovetail.dev/max-price-per-hour"
SLOT: Final = "dovetail.dev/slot"
DRAIN_BLOCKED: Final = "dovetail.dev/drain-blocked"
DISRUPTION_BUDGETS: Final = "dovetail.dev/disruption-budgets"
PREFERENCE_POLICY: Final = "dovetail.dev/preference-policy"
AS_KARPENTER: Final = "dovetail.dev/as-karpenter"
DELETION_REFUSED: Final = "dovetail.dev/deletion-refused"
# On a node whose drain another execution continues: the name of that execution; all others end.
DRAIN_RUN: Final = "dovetail.dev/drain-run"
IMAGE_ID: Final = "dovetail.dev/image-id"
# On a node: the price of its instance, so that it is known when the node is removed.
PRICE: Final = "dovetail.dev/price-micros-per-hour"
DRAIN_DEADLINE: Final = "dovetail.dev/drain-deadline"
DISRUPTION_BLOCKED: Final = "dovetail.dev/disruption-blocked"
REMOVAL_REASON: Final = "dovetail.dev/removal-reason"
# On a node launched to replace others, until those are gone: their pods have yet to move to it.
REPLACES: Final = "dovetail.dev/replaces"
# On a node whose spot instance EC2 expects to interrupt: since when.
REBALANCE_RECOMMENDED: Final = "dovetail.dev/rebalance-recommended"
# On a node whose instance AWS will reboot, stop or retire: when, and the type of the event.
CHANGE_SCHEDULED: Final = "dovetail.dev/change-scheduled"
TAG_CLUSTER: Final = "dovetail.dev/cluster"
TAG_NODE_POOL: Final = "dovetail.dev/nodepool"
TAG_PLAN: Final = "dovetail.dev/plan"
# Prefix of the plan id of an instance that was taken over from Karpenter.
TAKE_OVER_PLAN: Final = "take-over-"
TAG_GROUP: Final = "dovetail.dev/group"
TAG_ATTEMPT: Final = "dovetail.dev/attempt"
# On a node that was taken over from Karpenter: its NodeClaim, so that it can be handed back.
NODE_CLAIM: Final = "dovetail.dev/node-claim"

CLOUD_UNINITIALIZED_TAINT: Final = "node.cloudprovider.kubernetes.io/uninitialized"
NODE_NOT_READY_TAINT: Final = "node.kubernetes.io/not-ready"
NODE_UNREACHABLE_TAINT: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE_TAINT: Final = "node.kubernetes.io/unschedulable"
# On a node that Karpenter is about to remove.
DISRUPTED_TAINT: Final = "karpenter.sh/disrupted"
OUT_OF_SERVICE_TAINT: Final = "node.kubernetes.io/out-of-service"
EXCLUDE_FROM_LOAD_BALANCERS: Final = "node.kubernetes.io/exclude-from-external-load-balancers"

# Taints that are expected to be removed while a node starts; ignored until it is initialized.
EPHEMERAL_TAINTS: Final = frozenset(
    {
        *CLOSING_TAINTS,
        CLOUD_UNINITIALIZED_TAINT,
        NODE_NOT_READY_TAINT,
        NODE_UNREACHABLE_TAINT,
    }
)

# Of the node readiness controller: each is removed once a condition of its rules holds.
# Source: https://github.com/kubernetes-sigs/node-readiness-controller (2026-11).
READINESS_TAINTS: Final = "readiness.k8s.io/"

ALIASES: Final[Mapping[str, str]] = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "topology.ebs.csi.aws.com/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": REGION,
    "beta.kubernetes.io/arch": ARCH,
    "beta.kubernetes.io/os": OS,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
}

# Keys that every instance type or offering defines (absent properties mean DoesNotExist).
WELL_KNOWN: Final = frozenset(
    {
        PROVISIONER_NAME,
        NODE_POOL,
        CAPACITY_TYPE,
        ZONE,
        REGION,
        INSTANCE_TYPE,
        ARCH,
        OS,
        INSTANCE_FAMILY,
        INSTANCE_CATEGORY,
        INSTANCE_GENERATION,
        INSTANCE_SIZE,
        INSTANCE_CPU,
        INSTANCE_MEMORY,
        INSTANCE_PODS,
        INSTANCE_HYPERVISOR,
        INSTANCE_LOCAL_NVME,
        INSTANCE_NETWORK_BANDWIDTH,
        INSTANCE_ENCRYPTION,
        INSTANCE_EBS_BANDWIDTH,
        INSTANCE_CPU_MANUFACTURER,
        INSTANCE_CLOCK_SPEED,
        INSTANCE_FLEX,
        INSTANCE_GPU_NAME,
        INSTANCE_GPU_MANUFACTURER,
        INSTANCE_GPU_COUNT,
        INSTANCE_GPU_MEMORY,
        INSTANCE_ACCELERATOR_NAME,
        INSTANCE_ACCELERATOR_MANUFACTURER,
        INSTANCE_ACCELERATOR_COUNT,
    }
)

# Each names the owner of a node, in one of the dialects.
OWNER_LABELS: Final = frozenset({PROVISIONER_NAME, NODE_POOL})
_RESTRICTED_KEYS: Final = OWNER_LABELS | {EMPTINESS_TIMESTAMP, HOSTNAME}
CONTROL_DOMAINS: Final = ("dovetail.dev", "karpenter.sh", "karpenter.k8s.aws")
RESTRICTED_DOMAINS: Final = ("kubernetes.io", "k8s.io", *CONTROL_DOMAINS)
EXCEPTED_DOMAINS: Final = ("kops.k8s.io", "node.kubernetes.io", "node-restriction.kubernetes.io")
_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z")
_DOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_LONGEST_DOMAIN: Final = 253
_KNOWN_DOMAINS: Final = ("kubernetes.io", "k8s.io", "k8s.aws", "karpenter.sh", "amazonaws.com")
_OPEN_DOMAINS: Final = ("kops.k8s.io", "node-restriction.kubernetes.io")


def is_ephemeral(taint: str) -> bool:
    """Return whether a taint of this key is expected to be removed while a node starts."""
    return taint in EPHEMERAL_TAINTS or taint.startswith(READINESS_TAINTS)


def is_key(key: str) -> bool:
    """Return whether Kubernetes accepts this as the key of a label, annotation or taint.

    Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/ (2026-11).
    """
    domain, slash, name = key.rpartition("/")
    return bool(_NAME.match(name)) and (
        not slash or (len(domain) <= _LONGEST_DOMAIN and bool(_DOMAIN.match(domain)))
    )


def is_value(value: str) -> bool:
    """Return whether Kubernetes accepts this as the value of a label or taint."""
    return not value or bool(_NAME.match(value))


def normalize(key: str) -> str:
    """Return the stable name of a label key that Kubernetes also knows by an older name."""
    return ALIASES.get(key, key)


def is_restricted(key: str, reserved_domains: tuple[str, ...] = RESTRICTED_DOMAINS) -> bool:
    """Return whether a Provisioner or NodePool may not set or require this label key.

    Well-known keys are allowed (they choose among instance types); other keys of the domains of
    Kubernetes, Karpenter and Dovetail belong to those projects.

    Args:
        reserved_domains: Those that the dialect of the document reserves.
    """
    key = normalize(key)
    if key in _RESTRICTED_KEYS:
        return True
    if key in WELL_KNOWN or "/" not in key:
        return False
    domain = key.split("/", 1)[0]
    if _within(domain, EXCEPTED_DOMAINS):
        return False
    return _within(domain, reserved_domains)


def is_control_annotation(key: str, allowed: str = DO_NOT_CONSOLIDATE) -> bool:
    """Return whether a Provisioner or NodePool may not give its nodes this annotation.

    Such annotations control drains, replacements and removals. The annotation that people may set
    on a node to keep it, they may set on all nodes of a Provisioner.

    Args:
        allowed: The annotation that keeps a node, in the dialect of the document.
    """
    return key.rpartition("/")[0] in CONTROL_DOMAINS and key != allowed


def first_true_annotation(annotations: Mapping[str, str], known: Iterable[str]) -> str:
    """Return the first of these annotations that is `true`, empty when none is."""
    return next((key for key in known if annotations.get(key) == "true"), "")


def is_in_known_domain(key: str) -> bool:
    """Return whether Kubernetes, Karpenter or AWS define the label keys of this key's domain.

    Their domains that are reserved for users' own labels do not count.
    """
    domain, slash, _ = key.rpartition("/")
    return bool(slash) and _within(domain, _KNOWN_DOMAINS) and not _within(domain, _OPEN_DOMAINS)


def _within(domain: str, parents: tuple[str, ...]) -> bool:
    return any(domain == parent or domain.endswith(f".{parent}") for parent in parents)
