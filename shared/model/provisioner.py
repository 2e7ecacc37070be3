"""The user's declaration of which nodes may be launched and how long they live.

A NodePool of Karpenter's v1 becomes the same value: Dovetail keeps the v1alpha5 name throughout.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Annotated, Final

from msgspec import Struct, field

from shared.model.brakes import NO_CEILING, Ceiling
from shared.model.dialect import BY_KIND, V1ALPHA5, Dialect, OwnerKind
from shared.model.ec2.selectors import Selector
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.taints import Taint
from shared.model.node_budgets import NodeBudget
from shared.model.policy import KarpenterBehavior, PreferencePolicy, Trigger
from shared.model.requirements import Requirements
from shared.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, WITH_ZEROS, Resources
from shared.model.values import HashableValue, replace

API_VERSION: Final = V1ALPHA5.owner_version
KIND: Final = V1ALPHA5.owner_kind.value
# The replacement of a node that expires by force starts this long before: nodes join in minutes.
# It is never more than a quarter of the node's lifetime.
_AHEAD: Final = timedelta(minutes=10)
_SHARE: Final = 4


class BlockDevice(Struct, frozen=True, kw_only=True):
    """One disk of an instance.

    Attributes:
        volume_size_gib: Size in GiB; None for that of its snapshot.
    """

    device_name: str
    volume_size_gib: int | None = 20
    volume_type: str = "gp3"
    iops: int | None = None
    throughput: int | None = None
    encrypted: bool = True
    kms_key_id: str = ""
    snapshot_id: str = ""
    delete_on_termination: bool = True


class MetadataOptions(Struct, frozen=True, kw_only=True):
    """Access to the instance metadata service."""

    http_endpoint: str = "enabled"
    http_protocol_ipv6: str = "disabled"
    http_put_response_hop_limit: int = V1ALPHA5.hop_limit
    http_tokens: str = "required"


class MetadataBound(Struct, frozen=True, kw_only=True):
    """Bounds that the attachment of a cluster sets on access to the instance metadata service.

    Attributes:
        hop_limit: The most network hops of a response; 1 keeps it from pods without host network.
        tokens_required: Whether requests must carry a token (IMDSv2).
    """

    hop_limit: int = 64
    tokens_required: bool = False

    def applied(self, requested: MetadataOptions) -> MetadataOptions:
        """Return the options of an instance: the stricter of `requested` and the bound."""
        return replace(
            requested,
            http_put_response_hop_limit=min(requested.http_put_response_hop_limit, self.hop_limit),
            http_tokens="required" if self.tokens_required else requested.http_tokens,
        )


UNBOUND: Final = MetadataBound()
# The values of `amiFamily`; the first is the default.
AMI_FAMILIES: Final = ("AL2023", "Bottlerocket", "AL2", "Ubuntu", "Custom")
AMI_FAMILY_WITHOUT_IMAGE: Final = "Custom"
# The resources that may be reserved on the kubelet of a family, where they are restricted.
RESERVABLE: Final[Mapping[str, frozenset[str]]] = {
    "Bottlerocket": frozenset({CPU, MEMORY, EPHEMERAL_STORAGE})
}


class NodeTemplate(HashableValue, frozen=True, kw_only=True):
    """The AWS half of a Provisioner (`provider`, an AWSNodeTemplate or EC2NodeClass).

    Attributes:
        name: Of the AWSNodeTemplate or EC2NodeClass; empty when the Provisioner has it inline.
        subnet_selector: Selects subnets; empty for those that carry the cluster's own tag.
        security_group_selector: The same for security groups.
        instance_profile: Name; empty for that of `role`, or the cluster's default.
        role: Name of the role whose instance profile the attachment has; empty for none.
        launch_template: Name of the user's own template; empty where Dovetail creates one.
        ami_selector: Selects images; empty for those that the AMI family recommends.
        user_data: What instances do at boot besides joining, in the format of their AMI family.
            Users write secrets into it: decision records hold its hash.
        context: Passed to EC2 with each fleet.
        image_family: The family whose recommended image is booted, where it is not `ami_family`.
        image_version: Of that image, as its family names versions; empty for the newest.
        instance_store: Whether pods write to the instance's own NVMe disks, where it has some.
        public_ip: Whether instances get a public address; None leaves it to the subnet.
    """

    name: str = ""
    subnet_selector: Selector = ()
    security_group_selector: Selector = ()
    instance_profile: str = ""
    role: str = ""
    ami_family: str = AMI_FAMILIES[0]
    ami_selector: Selector = ()
    user_data: str = ""
    launch_template: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    metadata_options: MetadataOptions = MetadataOptions()
    block_devices: tuple[BlockDevice, ...] = ()
    detailed_monitoring: bool = False
    context: str = ""
    image_family: str = ""
    image_version: str = ""
    instance_store: bool = False
    public_ip: bool | None = None

    @property
    def is_plain(self) -> bool:
        """Whether launches have neither a launch template nor a context of the user."""
        return not self.launch_template and not self.context


class KubeletConfiguration(HashableValue, frozen=True, kw_only=True):
    """What the user sets on the kubelet of each node; None or empty means its own default.

    Attributes:
        reserved_cpus: Number of cores in the kubelet's `reservedSystemCPUs`: it replaces cpu in
            both reservations. Only user data can set it.
        kube_reserved: None for the formula of the AMI.
        eviction_soft_grace_period: By signal, as Go durations (`1m30s`).
        eviction_max_pod_grace_period: In seconds.
    """

    cluster_dns: tuple[str, ...] = ()
    max_pods: int | None = None
    reserved_cpus: int | None = None
    pods_per_core: int | None = None
    system_reserved: Resources = Resources()
    kube_reserved: Resources | None = None
    eviction_hard: Mapping[str, str] = field(default_factory=dict)
    eviction_soft: Mapping[str, str] = field(default_factory=dict)
    eviction_soft_grace_period: Mapping[str, str] = field(default_factory=dict)
    eviction_max_pod_grace_period: int | None = None
    image_gc_high_percent: int | None = None
    image_gc_low_percent: int | None = None
    cpu_cfs_quota: bool | None = None

    def left_out(self, family: str) -> tuple[str, ...]:
        """Return a line for each reservation that kubelets of an AMI family have no setting for."""
        reserved = {
            "kubeReserved": self.kube_reserved or Resources(),
            "systemReserved": self.system_reserved,
        }
        return tuple(
            f"{field}.{resource}: left out: {family} has no setting for it"
            for field, amounts in reserved.items()
            for resource in amounts
            if resource not in RESERVABLE.get(family, (resource,))
        )


class ManifestSettings(HashableValue, frozen=True, kw_only=True):
    """The settings of nodes in the manifests alone, without those that user data adds."""

    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    kubelet: KubeletConfiguration = KubeletConfiguration()
    instance_store: bool = False


class Provisioner(HashableValue, frozen=True, kw_only=True):
    """One Provisioner or NodePool, validated.

    Attributes:
        kind: `Provisioner` or `NodePool`; it decides which label of a node names its owner.
        requirements: Labels, requirements and defaults merged; without the provisioner's name.
        taints: On every node; pods must tolerate them.
        startup_taints: On every new node, removed by another component, ignored when planning.
        limits: Limit on the total capacity of its nodes; None for no limit.
        weight: 0-100, higher is tried first.
        least_values: How many values of a label the options of each launch must have, by key
            (`minValues`).
        warnings: Which of its fields have no effect, for people; the others do.
        paused: Whether its annotation forbids any action.
        shadow: Whether decisions for it are only recorded and reported.
        ceiling: The most nodes, and the highest total price, of its nodes.
        termination_grace_period: How long a drain of its nodes may last; None for no limit.
        consolidate_after: How long a node's pods must not have changed before it is consolidated.
        budgets: How many of its nodes may be disrupted at once; None for Dovetail's settings.
        preference_policy: How pods' preferences are handled on its nodes; None for the setting of
            the cluster's attachment.
        as_karpenter: The behaviors of Karpenter that it chooses: values of KarpenterBehavior.
        triggers: Whether each of these starts the replacement of its nodes, where its annotations
            set it.
        written: The settings of its nodes in its manifests, where its user data adds labels, taints
            or kubelet settings; None where it adds none.
    """

    name: str
    kind: OwnerKind = OwnerKind.PROVISIONER
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    requirements: Requirements = Requirements()
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    kubelet: KubeletConfiguration = KubeletConfiguration()
    template: NodeTemplate = NodeTemplate()
    ttl_after_empty: timedelta | None = None
    ttl_until_expired: timedelta | None = None
    limits: Annotated[Resources | None, WITH_ZEROS] = None
    weight: int = 0
    least_values: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    consolidation: bool = False
    deleting: bool = False
    paused: bool = False
    shadow: bool = False
    ceiling: Ceiling = NO_CEILING
    termination_grace_period: timedelta | None = None
    consolidate_after: timedelta = timedelta(0)
    budgets: tuple[NodeBudget, ...] | None = None
    preference_policy: PreferencePolicy | None = None
    as_karpenter: frozenset[str] = frozenset()
    triggers: Mapping[Trigger, bool] = field(default_factory=dict)
    written: ManifestSettings | None = None

    @property
    def dialect(self) -> Dialect:
        """The version of Karpenter's API that it is written in."""
        return BY_KIND[self.kind]

    @property
    def owner_label(self) -> str:
        """The label of its nodes whose value is its name."""
        return self.dialect.owner_label

    @property
    def replacement_lead_time(self) -> timedelta:
        """How long before a node's forced expiration its replacement starts; zero without one."""
        ahead = (
            self.dialect.expires_by_force and KarpenterBehavior.EXPIRATION not in self.as_karpenter
        )
        return min(_AHEAD, (self.ttl_until_expired or _AHEAD) / _SHARE) if ahead else timedelta(0)

    @property
    def without_user_data(self) -> "Provisioner":
        """The Provisioner as its manifests define it, without the settings of its user data."""
        if self.written is None:
            return self
        return replace(
            self,
            labels=self.written.labels,
            taints=self.written.taints,
            startup_taints=self.written.startup_taints,
            kubelet=self.written.kubelet,
            template=replace(self.template, instance_store=self.written.instance_store),
            written=None,
        )

    def acts_on(self, trigger: Trigger, *, otherwise: bool = False) -> bool:
        """Return whether this trigger starts the replacement of its nodes.

        Args:
            otherwise: The default where neither its annotations nor its dialect turn it on.
        """
        return self.triggers.get(trigger, trigger in self.dialect.acts_on or otherwise)

    def owns(self, node: Node) -> bool:
        """Return whether Dovetail launched a node for it, not for an owner of the other kind."""
        return node.provisioner == self.name == node.labels.get(self.owner_label)


class InvalidProvisioner(Struct, frozen=True, kw_only=True):
    """A Provisioner or NodePool that cannot be used; it never stops the others.

    Attributes:
        template: The AWSNodeTemplate or EC2NodeClass it names, if something is wrong there.
    """

    name: str
    uid: str
    resource_version: str
    reasons: tuple[str, ...]
    template: str = ""
    kind: OwnerKind = OwnerKind.PROVISIONER

    @property
    def only_its_template(self) -> bool:
        """Whether nothing is wrong in its own fields."""
        place = f"{BY_KIND[self.kind].template_kind} {self.template}."
        return all(reason.startswith(place) for reason in self.reasons)


def owner_word(owners: Iterable[Provisioner]) -> str:
    """Return what owners of nodes are called, by the kinds that there are of them."""
    kinds = {owner.kind for owner in owners}
    return next(iter(kinds)).value if len(kinds) == 1 else "NodePool or Provisioner"


def owner_among(node: Node, owners: Mapping[str, Provisioner]) -> Provisioner | None:
    """Return the owner of a node, None when it is not among `owners`.

    Args:
        owners: Owners by name.
    """
    found = owners.get(node.provisioner)
    return found if found is not None and found.owns(node) else None
