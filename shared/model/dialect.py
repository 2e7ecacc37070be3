"""The dialects of manifests, and where they differ.

A dialect is one version of Karpenter's API. The documents of both become the same values; what a
dialect says differently is here, and nowhere in the planner.

Source: https://karpenter.sh/v0.31/concepts/provisioners/ (2023-09),
https://karpenter.sh/docs/concepts/nodepools/ and .../nodeclasses/ (2026-11).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from shared.model import labels as keys
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.node_budgets import DEFAULT_PERCENT, NodeBudget
from shared.model.policy import PreferencePolicy, Trigger
from shared.model.requirements import Requirement

# The consolidationPolicy of v1 that removes empty nodes alone.
WHEN_EMPTY: Final = "WhenEmpty"


class OwnerKind(StrEnum):
    """The kinds of objects that declare nodes."""

    PROVISIONER = "Provisioner"
    NODE_POOL = "NodePool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasons:
    """Why nodes are launched for an owner or not, as its condition says it in a word.

    Attributes:
        template: Something is wrong in what it names for its instances.
    """

    valid: str
    invalid: str
    template: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectorFields:
    """What selectors are called."""

    subnets: str
    security_groups: str
    images: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What a version of the API calls its objects, and what it means where they say nothing.

    Attributes:
        owner_version: apiVersion of the kind that declares nodes.
        owner_kind: That kind.
        template_version: apiVersion of the kind that says how instances are launched.
        template_kind: That kind.
        owner_label: Label of each node that names its owner.
        owner_tags: Tags of all that a launch makes that name the owner.
        closing_taint: Of a Node that is made for a machine: keeps kube-scheduler away until pods
            are bound.
        registering_taint: The same where a kubelet makes the Node: nothing was bound to it.
        ready: Type of the condition that says whether nodes are launched for an owner.
        reasons: Reasons of that condition.
        selectors: Fields of what an owner names for its instances.
        implied: Requirements of an owner that mentions none of their keys.
        implied_types: Requirements of an owner that mentions no key of instance types.
        expiry_field: The field with the age at which nodes expire.
        expires_by_force: Whether a node is removed at that age though nothing can replace it yet,
            or though its pods or budgets hold it.
        expires_after: That age where the owner says nothing; None for never.
        consolidates: Whether nodes are consolidated where the owner says nothing.
        acts_on: What begins the replacement of its nodes where the owner says nothing.
        budgets: How many nodes may be disrupted at once where the owner says nothing; None for what
            the settings of Dovetail say.
        hop_limit: Most network hops of the instance metadata service where nothing is said.
        each_pod_holds: Whether pods of DaemonSets and of the host that must stay keep their node
            from being chosen, too.
        soft_eviction_takes_room: Whether `evictionSoft` of a kubelet takes room from pods, as
            `evictionHard` does. To kubelets it does not.
        preference_policy: What becomes of what pods prefer on its nodes where nothing is said; None
            for what the attachment of the cluster says.
        image_tags_choose: Whether tags of an image that are well-known labels say which machines it
            is for.
        reserved_domains: Domains of labels that an owner may not choose, apart from single keys.
    """

    owner_version: str
    owner_kind: OwnerKind
    template_version: str
    template_kind: str
    owner_label: str
    owner_tags: tuple[str, ...]
    closing_taint: Taint
    registering_taint: Taint
    ready: str
    reasons: Reasons
    selectors: SelectorFields
    implied: tuple[Requirement, ...] = ()
    implied_types: tuple[Requirement, ...] = ()
    expiry_field: str
    expires_by_force: bool
    expires_after: timedelta | None
    consolidates: bool
    acts_on: frozenset[Trigger]
    budgets: tuple[NodeBudget, ...] | None
    hop_limit: int
    each_pod_holds: bool
    soft_eviction_takes_room: bool
    preference_policy: PreferencePolicy | None
    image_tags_choose: bool
    reserved_domains: tuple[str, ...]

    @property
    def template_group(self) -> str:
        """The API group of the kind that says how instances are launched."""
        return self.template_version.partition("/")[0]


V1ALPHA5: Final = Dialect(
    owner_version="karpenter.sh/v1alpha5",
    owner_kind=OwnerKind.PROVISIONER,
    template_version="karpenter.k8s.aws/v1alpha1",
    template_kind="AWSNodeTemplate",
    owner_label=keys.PROVISIONER_NAME,
    owner_tags=(keys.PROVISIONER_NAME,),
    closing_taint=Taint(key=keys.NOT_READY_TAINT, effect=Effect.NO_SCHEDULE),
    registering_taint=Taint(key=keys.NOT_READY_TAINT, effect=Effect.NO_SCHEDULE),
    ready="Active",
    reasons=Reasons(valid="Valid", invalid="Invalid", template="Invalid"),
    selectors=SelectorFields(
        subnets="subnetSelector", security_groups="securityGroupSelector", images="amiSelector"
    ),
    implied=(
        Requirement.of(keys.CAPACITY_TYPE, "on-demand"),
        Requirement.of(keys.ARCH, "amd64"),
        Requirement.of(keys.OS, "linux"),
    ),
    implied_types=(
        Requirement.of(keys.INSTANCE_CATEGORY, "c", "m", "r"),
        Requirement.parse(keys.INSTANCE_GENERATION, "Gt", ["2"]),
    ),
    expiry_field="ttlSecondsUntilExpired",
    expires_by_force=False,
    expires_after=None,
    consolidates=False,
    acts_on=frozenset({Trigger.REBALANCE, Trigger.SCHEDULED_CHANGE}),
    budgets=None,
    hop_limit=2,
    each_pod_holds=False,
    soft_eviction_takes_room=True,
    preference_policy=None,
    image_tags_choose=True,
    reserved_domains=keys.RESTRICTED_DOMAINS,
)
V1: Final = Dialect(
    owner_version="karpenter.sh/v1",
    owner_kind=OwnerKind.NODE_POOL,
    template_version="karpenter.k8s.aws/v1",
    template_kind="EC2NodeClass",
    owner_label=keys.NODE_POOL,
    # Karpenter terminates each machine of its cluster with the tag karpenter.sh/nodepool for which
    # it has no NodeClaim: no machine of Dovetail has it. The rights in EC2 ask for the first one.
    owner_tags=(keys.PROVISIONER_NAME, keys.TAG_NODE_POOL),
    # Pods are bound before the kubelet joins: NoExecute would have them evicted.
    closing_taint=Taint(key=keys.UNREGISTERED_TAINT, effect=Effect.NO_SCHEDULE),
    registering_taint=Taint(key=keys.UNREGISTERED_TAINT, effect=Effect.NO_EXECUTE),
    ready="Ready",
    reasons=Reasons(
        valid="Ready", invalid="NodePoolValidationFailed", template="NodeClassNotReady"
    ),
    selectors=SelectorFields(
        subnets="subnetSelectorTerms",
        security_groups="securityGroupSelectorTerms",
        images="amiSelectorTerms",
    ),
    expiry_field="expireAfter",
    expires_by_force=True,
    expires_after=timedelta(hours=720),
    consolidates=True,
    # Karpenter records a rebalance recommendation as an Event, and drains for a scheduled change.
    # Source: actionForMessage (2026-11) of
    # https://github.com/aws/karpenter-provider-aws/blob/1d927085/pkg/controllers/interruption/utils.go
    acts_on=frozenset({Trigger.DRIFT, Trigger.SCHEDULED_CHANGE}),
    budgets=(NodeBudget(percent=DEFAULT_PERCENT),),
    hop_limit=1,
    each_pod_holds=True,
    soft_eviction_takes_room=False,
    preference_policy=PreferencePolicy.RESPECT,
    image_tags_choose=False,
    reserved_domains=keys.CONTROL_DOMAINS,
)
BY_KIND: Final[Mapping[OwnerKind, Dialect]] = {
    dialect.owner_kind: dialect for dialect in (V1ALPHA5, V1)
}
