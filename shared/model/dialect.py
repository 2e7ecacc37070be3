"""The dialects of manifests, and where they differ.

A dialect is one version of Karpenter's API. The documents of both become the same values; all
differences between dialects are here, and none in the planner.

Source: https://karpenter.sh/v0.31/concepts/provisioners/ (2023-09),
https://karpenter.sh/docs/concepts/nodepools/ and .../nodeclasses/ (2026-11).
"""

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct

from shared.model import labels as keys
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.node_budgets import DEFAULT_PERCENT, NodeBudget
from shared.model.policy import PreferencePolicy, Trigger
from shared.model.requirements import Requirement

# The consolidationPolicy of v1 that removes empty nodes alone.
WHEN_EMPTY: Final = "WhenEmpty"


class OwnerKind(StrEnum):
    """The kinds of objects that nodes are launched for."""

    PROVISIONER = "Provisioner"
    NODE_POOL = "NodePool"


def owner_kind_of(labels: Mapping[str, str]) -> OwnerKind:
    """Return the kind of the object that a node was launched for, by the labels of the node."""
    of_pool = keys.NODE_POOL in labels and not labels.get(keys.PROVISIONER_NAME)
    return OwnerKind.NODE_POOL if of_pool else OwnerKind.PROVISIONER


class ConditionReasons(Struct, frozen=True, kw_only=True):
    """The reasons of the condition that says whether nodes are launched for an owner.

    Attributes:
        template: The template that the owner names is invalid.
    """

    valid: str
    invalid: str
    template: str


class SelectorFields(Struct, frozen=True, kw_only=True):
    """The names of the selector fields."""

    subnets: str
    security_groups: str
    images: str


class Dialect(Struct, frozen=True, kw_only=True):
    """One version of Karpenter's API: the names of its kinds and fields, and its defaults.

    Attributes:
        owner_version: apiVersion of the kind that nodes are launched for.
        owner_kind: That kind.
        template_version: apiVersion of the kind that says how instances are launched.
        template_kind: That kind.
        owner_label: Label of each node that names its owner.
        owner_tags: Tags, on all resources of a launch, that name the owner.
        closing_taint: The taint of a Node that Dovetail creates for an instance; it keeps
            kube-scheduler away until pods are bound.
        registering_taint: The taint in user data, with which the kubelet registers its Node if
            Dovetail has not created that Node before.
        ready_condition: Type of the condition that says whether nodes are launched for an owner.
        reasons: Reasons of that condition.
        selectors: Names of the selector fields in the template.
        default_requirements: Requirements of an owner that mentions none of their keys.
        default_type_requirements: Requirements of an owner that mentions no key of instance types.
        expiry_field: The field with the age at which nodes expire.
        expires_by_force: Whether a node is removed at that age though nothing can replace it yet,
            or though its pods or budgets block it.
        expires_after: That age by default; None for never.
        consolidates: Whether nodes are consolidated by default.
        acts_on: The triggers that start the replacement of its nodes by default.
        budgets: How many nodes may be disrupted at once by default; None for Dovetail's settings.
        hop_limit: The most network hops of the instance metadata service by default.
        daemon_pods_block: Whether DaemonSet and static pods that may not be evicted also keep their
            node from being disrupted.
        counts_soft_eviction: Whether `evictionSoft` of a kubelet reduces allocatable as
            `evictionHard` does. A kubelet itself does not count it.
        preference_policy: How preferences of pods are handled on its nodes by default; None for
            the setting of the cluster's attachment.
        image_tags_are_labels: Whether tags of an image that are well-known labels say which
            instances it is for.
        reserved_domains: Domains of labels that an owner may not set, apart from single keys.
    """

    owner_version: str
    owner_kind: OwnerKind
    template_version: str
    template_kind: str
    owner_label: str
    owner_tags: tuple[str, ...]
    closing_taint: Taint
    registering_taint: Taint
    ready_condition: str
    reasons: ConditionReasons
    selectors: SelectorFields
    default_requirements: tuple[Requirement, ...] = ()
    default_type_requirements: tuple[Requirement, ...] = ()
    expiry_field: str
    expires_by_force: bool
    expires_after: timedelta | None
    consolidates: bool
    acts_on: frozenset[Trigger]
    budgets: tuple[NodeBudget, ...] | None
    hop_limit: int
    daemon_pods_block: bool
    counts_soft_eviction: bool
    preference_policy: PreferencePolicy | None
    image_tags_are_labels: bool
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
    ready_condition="Active",
    reasons=ConditionReasons(valid="Valid", invalid="Invalid", template="Invalid"),
    selectors=SelectorFields(
        subnets="subnetSelector", security_groups="securityGroupSelector", images="amiSelector"
    ),
    default_requirements=(
        Requirement.of(keys.CAPACITY_TYPE, "on-demand"),
        Requirement.of(keys.ARCH, "amd64"),
        Requirement.of(keys.OS, "linux"),
    ),
    default_type_requirements=(
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
    daemon_pods_block=False,
    counts_soft_eviction=True,
    preference_policy=None,
    image_tags_are_labels=True,
    reserved_domains=keys.RESTRICTED_DOMAINS,
)
V1: Final = Dialect(
    owner_version="karpenter.sh/v1",
    owner_kind=OwnerKind.NODE_POOL,
    template_version="karpenter.k8s.aws/v1",
    template_kind="EC2NodeClass",
    owner_label=keys.NODE_POOL,
    # Karpenter terminates each instance of its cluster that has the tag karpenter.sh/nodepool and
    # no NodeClaim: no instance of Dovetail has that tag. The IAM policies require the first tag.
    owner_tags=(keys.PROVISIONER_NAME, keys.TAG_NODE_POOL),
    # Pods are bound before the kubelet joins: NoExecute would have them evicted.
    closing_taint=Taint(key=keys.UNREGISTERED_TAINT, effect=Effect.NO_SCHEDULE),
    registering_taint=Taint(key=keys.UNREGISTERED_TAINT, effect=Effect.NO_EXECUTE),
    ready_condition="Ready",
    reasons=ConditionReasons(
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
    daemon_pods_block=True,
    counts_soft_eviction=False,
    preference_policy=PreferencePolicy.RESPECT,
    image_tags_are_labels=False,
    reserved_domains=keys.CONTROL_DOMAINS,
)
BY_KIND: Final[Mapping[OwnerKind, Dialect]] = {
    dialect.owner_kind: dialect for dialect in (V1ALPHA5, V1)
}
