"""What launches teach about EC2's capacity, and which clusters learn of it: one table.

| fact | source | true for |
|---|---|---|
| no capacity | EC2, of an offering that a launch asked for with nothing of its own | the account |
| no capacity as asked | EC2, to a launch template or context of the user's | the cluster |
| nothing launched | inferred: EC2 names no reason, or not this offering | the cluster |
| interrupted | EC2, of an instance whose offering it shows | the account |
| about to be interrupted | the same, half as long | the account |
| died pending | EC2, for another reason than capacity | the cluster |
| never joined | inferred: the machine runs, or never came to | the cluster |
| quota reached | EC2, if it is clear of which quota | the account |

A launch template of the user's may name a placement group, a tenancy or a capacity reservation. EC2
then answers `InsufficientInstanceCapacity` if there is no capacity there.
Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/placement-strategies.html (2026-11).

Refusals of a request are stored by Provisioner, full subnets by cluster
(`shared.snapshot.refusal_store`). Nothing here is read from labels: a kubelet may write the labels
of its Node that name instance type and zone.
Source: https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction
(2026-11).
"""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import Final

from shared.model.ec2.instance_types import InstanceType, OfferingKey
from shared.model.ec2.quotas import QuotaReached, quota_of, reached_quotas
from shared.ports import ClusterPorts, NodePorts


class OfferingFact(StrEnum):
    """What was learned about offerings."""

    NO_CAPACITY = "no capacity"
    NO_CAPACITY_AS_ASKED = "no capacity as asked"
    NOTHING_LAUNCHED = "nothing launched"
    INTERRUPTED = "interrupted"
    ABOUT_TO_BE_INTERRUPTED = "about to be interrupted"
    DIED_PENDING = "died pending"
    NEVER_JOINED = "never joined"


class FactScope(StrEnum):
    """The clusters that a fact is true for."""

    ACCOUNT = "account"
    CLUSTER = "cluster"


FACT_SCOPES: Final[Mapping[OfferingFact, FactScope]] = {
    OfferingFact.NO_CAPACITY: FactScope.ACCOUNT,
    OfferingFact.NO_CAPACITY_AS_ASKED: FactScope.CLUSTER,
    OfferingFact.NOTHING_LAUNCHED: FactScope.CLUSTER,
    OfferingFact.INTERRUPTED: FactScope.ACCOUNT,
    OfferingFact.ABOUT_TO_BE_INTERRUPTED: FactScope.ACCOUNT,
    OfferingFact.DIED_PENDING: FactScope.CLUSTER,
    OfferingFact.NEVER_JOINED: FactScope.CLUSTER,
}
_SUSPICIONS: Final = frozenset(
    {OfferingFact.NOTHING_LAUNCHED, OfferingFact.ABOUT_TO_BE_INTERRUPTED}
)


def mark_unavailable(
    ports: NodePorts, fact: OfferingFact, offerings: Collection[OfferingKey]
) -> None:
    """Mark offerings as unavailable for a while, for the clusters that the fact is true for.

    The cluster itself records all of its facts together: an offering that was suspected and is then
    named stays unavailable for longer.
    """
    if not offerings:
        return
    clusters = (
        ["", ports.cluster.name] if FACT_SCOPES[fact] == FactScope.ACCOUNT else [ports.cluster.name]
    )
    for cluster in clusters:
        ports.ledger.mark_unavailable(
            sorted(offerings),
            ports.clock.now(),
            certain=fact not in _SUSPICIONS,
            cluster=cluster,
        )


def mark_quotas(ports: ClusterPorts, marks: Sequence[QuotaReached]) -> None:
    """Mark the offerings beyond reached quotas of the account as unavailable, for all clusters."""
    ports.ledger.mark_quotas(marks, ports.clock.now())


def certain_quotas(
    over: frozenset[OfferingKey],
    named: frozenset[OfferingKey],
    instance_types: Sequence[InstanceType],
) -> tuple[QuotaReached, ...]:
    """Return the quotas that are reached for certain, sorted.

    Args:
        over: Offerings of errors about quotas; all that were requested if EC2 names none.
        named: The ones among them that EC2 names.
    """
    quotas = {quota_of(offering) for offering in over}
    return reached_quotas(over if len(quotas) == 1 else named, instance_types)
