"""The user's declaration of what nodes may look like and how long they live.

A NodePool of Karpenter's v1 becomes the same value: Dovetail keeps the v1alpha5 name throughout.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from shared.model.brakes import NO_CEILING, Ceiling
from shared.model.dialect import BY_KIND, V1ALPHA5, Dialect, OwnerKind
from shared.model.ec2.selectors import Selector
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.taints import Taint
from shared.model.node_budgets import NodeBudget
from shared.model.policy import KarpenterWay, PreferencePolicy, Trigger
from shared.model.requirements import Requirements
from shared.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, Resources

API_VERSION: Final = V1ALPHA5.owner_version
KIND: Final = V1ALPHA5.owner_kind.value
# A replacement of a node that expires by force is asked for so long before: nodes join in minutes.
# Where nodes live for less than an hour, it is a quarter of that.
_AHEAD: Final = timedelta(minutes=10)
_SHARE: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockDevice:
    """One disk of a machine.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataOptions:
    """Access to the instance metadata service."""

    http_endpoint: str = "enabled"
    http_protocol_ipv6: str = "disabled"
    http_put_response_hop_limit: int = V1ALPHA5.hop_limit
    http_tokens: str = "required"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataBound:
    """What the attachment of a cluster allows of the instance metadata service.

    Attributes:
        hop_limit: Most network hops an answer may take; 1 keeps it from pods without host network.
        tokens_required: Whether requests must carry a token (IMDSv2).
    """

    hop_limit: int = 64
    tokens_required: bool = False

    def applied(self, asked: MetadataOptions) -> MetadataOptions:
        """Return the options of a machine: the stricter of what was asked and of the bound."""
        return replace(
            asked,
            http_put_response_hop_limit=min(asked.http_put_response_hop_limit, self.hop_limit),
            http_tokens="required" if self.tokens_required else asked.http_tokens,
        )


UNBOUND: Final = MetadataBound()
# What `amiFamily` may say; the first is what a manifest means that names none.
AMI_FAMILIES: Final = ("AL2023", "Bottlerocket", "AL2", "Ubuntu", "Custom")
AMI_FAMILY_WITHOUT_IMAGE: Final = "Custom"
# What may be reserved on the kubelet of a family, where it is not anything.
RESERVABLE: Final[Mapping[str, frozenset[str]]] = {
    "Bottlerocket": frozenset({CPU, MEMORY, EPHEMERAL_STORAGE})
}
# Marks a field whose text decisions hold as a hash only.
HASHED: Final = {"hashed": True}
# Marks resources of which a zero means that there may be none, where absence means no limit.
WITH_ZEROS: Final = {"with_zeros": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTemplate:
    """The AWS half of a Provisioner (`provider`, an AWSNodeTemplate or EC2NodeClass).

    Attributes:
        name: Of the AWSNodeTemplate or EC2NodeClass; empty when the Provisioner says it all itself.
        subnet_selector: What finds the subnets; empty for what carries the cluster's own tag.
        security_group_selector: The same of security groups.
        instance_profile: Name; empty means that of `role`, or the cluster's default.
        role: Name of the role whose instance profile the attachment has; empty for none.
        launch_template: Name of the user's own template; empty means we make one.
        ami_selector: What finds the images; empty for what the family recommends.
        user_data: What machines do at boot besides joining, in the form their family reads. Users
            write secrets into it: decisions hold its hash.
        context: Passed on to EC2 with each fleet.
        image_family: Whose recommended image is booted, where it is not the family that joins.
        image_version: Of that image, as its family names versions; empty for the newest.
        instance_store: Whether the instance's own NVMe disks, where it has some, are what pods
            write to.
        public_ip: Whether instances get a public address; None leaves it to the subnet.
    """

    name: str = ""
    subnet_selector: Selector = ()
    security_group_selector: Selector = ()
    instance_profile: str = ""
    role: str = ""
    ami_family: str = AMI_FAMILIES[0]
    ami_selector: Selector = ()
    user_data: str = field(default="", metadata=HASHED)
    launch_template: str = ""
    tags: Mapping[str, str] = field(default_factory=dict, hash=False)
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
        """Whether launches ask for offerings alone: no template or context of the user's."""
        return not self.launch_template and not self.context


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletConfiguration:
    """What the user sets on the kubelet of each node; None or empty means its own default.

    Attributes:
        reserved_cpus: Of a list of cores that pods get nothing of: their number takes the place of
            cpu in both reservations. Only user data can name them.
        kube_reserved: None for the formula of the AMI.
        eviction_soft_grace_period: By signal, as Go writes spans (`1m30s`).
        eviction_max_pod_grace_period: In seconds.
    """

    cluster_dns: tuple[str, ...] = ()
    max_pods: int | None = None
    reserved_cpus: int | None = None
    pods_per_core: int | None = None
    system_reserved: Resources = Resources()
    kube_reserved: Resources | None = None
    eviction_hard: Mapping[str, str] = field(default_factory=dict, hash=False)
    eviction_soft: Mapping[str, str] = field(default_factory=dict, hash=False)
    eviction_soft_grace_period: Mapping[str, str] = field(default_factory=dict, hash=False)
    eviction_max_pod_grace_period: int | None = None
    image_gc_high_percent: int | None = None
    image_gc_low_percent: int | None = None
    cpu_cfs_quota: bool | None = None

    def left_out(self, family: str) -> tuple[str, ...]:
        """Return what is reserved that kubelets of an AMI family are not told, a line for each."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenShape:
    """What documents say of the nodes of a Provisioner whose user data says more."""

    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    kubelet: KubeletConfiguration = KubeletConfiguration()
    instance_store: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Provisioner:
    """One Provisioner or NodePool, validated.

    Attributes:
        kind: `Provisioner` or `NodePool`; it decides which label of a node names its owner.
        requirements: Labels, requirements and defaults merged; without the provisioner's name.
        taints: On every node, to be tolerated by pods.
        startup_taints: On every new node, removed by another component, ignored when planning.
        limits: Ceiling on the total capacity of its nodes; None for no ceiling.
        weight: 0-100, higher is tried first.
        least_values: How many values of a label the options of each launch must offer, by key.
        warnings: What in it will never act, for people; the rest does.
        paused: Whether its annotation forbids any action.
        shadow: Whether what is decided for it is only recorded and told.
        ceiling: The most nodes and dollars an hour it may come to.
        termination_grace_period: How long a drain of its nodes may last; None for ever.
        consolidate_after: How long a node's pods must not have changed before it is consolidated.
        budgets: How many of its nodes may be disrupted at once; None for what the settings say.
        preference_policy: What becomes of pods' preferences on its nodes; None for what the
            cluster's attachment says.
        as_karpenter: What is done for its nodes as Karpenter does it: values of KarpenterWay.
        triggers: Whether each of these begins the replacement of its nodes, where its annotations
            say so.
        written: What its documents say of its nodes, where labels, taints or kubelet settings of
            its user data were added; None where none were.
    """

    name: str
    kind: OwnerKind = OwnerKind.PROVISIONER
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False)
    requirements: Requirements = Requirements()
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    kubelet: KubeletConfiguration = KubeletConfiguration()
    template: NodeTemplate = NodeTemplate()
    ttl_after_empty: timedelta | None = None
    ttl_until_expired: timedelta | None = None
    limits: Resources | None = field(default=None, metadata=WITH_ZEROS)
    weight: int = 0
    least_values: Mapping[str, int] = field(default_factory=dict, hash=False)
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
    triggers: Mapping[Trigger, bool] = field(default_factory=dict, hash=False)
    written: WrittenShape | None = None

    @property
    def dialect(self) -> Dialect:
        """What the version of its API means where it says nothing."""
        return BY_KIND[self.kind]

    @property
    def owner_label(self) -> str:
        """The label of each of its nodes that has its name."""
        return self.dialect.owner_label

    @property
    def replaced_ahead(self) -> timedelta:
        """How long before a node's expiration by force its replacement is begun; else zero."""
        ahead = self.dialect.expires_by_force and KarpenterWay.EXPIRATION not in self.as_karpenter
        return min(_AHEAD, (self.ttl_until_expired or _AHEAD) / _SHARE) if ahead else timedelta(0)

    @property
    def as_written(self) -> "Provisioner":
        """It without what its user data says of its nodes."""
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
        """Return whether its nodes are replaced for this.

        Args:
            otherwise: What counts where neither it nor its dialect says so.
        """
        return self.triggers.get(trigger, trigger in self.dialect.acts_on or otherwise)

    def owns(self, node: Node) -> bool:
        """Return whether Dovetail launched a node for it, not for one of the other kind."""
        return node.provisioner == self.name == node.labels.get(self.owner_label)


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidProvisioner:
    """A Provisioner or NodePool that cannot be used; it never stops the others.

    Attributes:
        template: The AWSNodeTemplate or EC2NodeClass it names, if something is wrong in there.
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


def owner_among(node: Node, owners: Mapping[str, Provisioner]) -> Provisioner | None:
    """Return the owner of a node, None when it is not among these.

    Args:
        owners: By name.
    """
    found = owners.get(node.provisioner)
    return found if found is not None and found.owns(node) else None
