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
from shared.model.policy import PreferencePolicy
from shared.model.requirements import Requirement


class OwnerKind(StrEnum):
    """The kinds of objects that declare nodes."""

    PROVISIONER = "Provisioner"
    NODE_POOL = "NodePool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What a version of the API calls its objects, and what it means where they say nothing.

    Attributes:
        owner_version: apiVersion of the kind that declares nodes.
        owner_kind: That kind.
        template_version: apiVersion of the kind that says how instances are launched.
        template_kind: That kind.
        owner_label: Label of each node that names its owner.
        implied: Requirements of an owner that mentions none of their keys.
        implied_types: Requirements of an owner that mentions no key of instance types.
        expires_after: Age at which nodes expire where the owner says nothing; None for never.
        consolidates: Whether nodes are consolidated where the owner says nothing.
        hop_limit: Most network hops of the instance metadata service where nothing is said.
        preference_policy: What becomes of what pods prefer on its nodes where nothing is said; None
            for what the attachment of the cluster says.
        reserved_domains: Domains of labels that an owner may not choose, apart from single keys.
    """

    owner_version: str
    owner_kind: OwnerKind
    template_version: str
    template_kind: str
    owner_label: str
    implied: tuple[Requirement, ...] = ()
    implied_types: tuple[Requirement, ...] = ()
    expires_after: timedelta | None
    consolidates: bool
    hop_limit: int
    preference_policy: PreferencePolicy | None
    reserved_domains: tuple[str, ...]


V1ALPHA5: Final = Dialect(
    owner_version="karpenter.sh/v1alpha5",
    owner_kind=OwnerKind.PROVISIONER,
    template_version="karpenter.k8s.aws/v1alpha1",
    template_kind="AWSNodeTemplate",
    owner_label=keys.PROVISIONER_NAME,
    implied=(
        Requirement.of(keys.CAPACITY_TYPE, "on-demand"),
        Requirement.of(keys.ARCH, "amd64"),
        Requirement.of(keys.OS, "linux"),
    ),
    implied_types=(
        Requirement.of(keys.INSTANCE_CATEGORY, "c", "m", "r"),
        Requirement.parse(keys.INSTANCE_GENERATION, "Gt", ["2"]),
    ),
    expires_after=None,
    consolidates=False,
    hop_limit=2,
    preference_policy=None,
    reserved_domains=keys.RESTRICTED_DOMAINS,
)
V1: Final = Dialect(
    owner_version="karpenter.sh/v1",
    owner_kind=OwnerKind.NODE_POOL,
    template_version="karpenter.k8s.aws/v1",
    template_kind="EC2NodeClass",
    owner_label=keys.NODE_POOL,
    expires_after=timedelta(hours=720),
    consolidates=True,
    hop_limit=1,
    preference_policy=PreferencePolicy.RESPECT,
    reserved_domains=keys.CONTROL_DOMAINS,
)
BY_KIND: Final[Mapping[OwnerKind, Dialect]] = {
    dialect.owner_kind: dialect for dialect in (V1ALPHA5, V1)
}
