"""What is learned of EC2's stock, and which clusters are told: one table.

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

A launch template of the user's may name a placement group, a tenancy or a capacity reservation, and
EC2 then answers `InsufficientInstanceCapacity` for want of room there.
Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/placement-strategies.html (2026-11).

Refusals of a request and full subnets are kept by Provisioner and cluster
(`shared.brakes.refusals`). Nothing here is taken from labels: a kubelet may write those of its
Node that name type and zone.
Source: https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction
(2026-11).
"""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import Final

from shared.model.ec2.instance_types import InstanceType, OfferingKey
from shared.model.ec2.quotas import QuotaReached, quota_of, reached
from shared.ports import ClusterPorts, NodePorts


class Fact(StrEnum):
    """What was learned about offerings."""

    NO_CAPACITY = "no capacity"
    NO_CAPACITY_AS_ASKED = "no capacity as asked"
    NOTHING_LAUNCHED = "nothing launched"
    INTERRUPTED = "interrupted"
    ABOUT_TO_BE_INTERRUPTED = "about to be interrupted"
    DIED_PENDING = "died pending"
    NEVER_JOINED = "never joined"


class ToldTo(StrEnum):
    """Which clusters a fact is true for."""

    ACCOUNT = "account"
    CLUSTER = "cluster"


TOLD_TO: Final[Mapping[Fact, ToldTo]] = {
    Fact.NO_CAPACITY: ToldTo.ACCOUNT,
    Fact.NO_CAPACITY_AS_ASKED: ToldTo.CLUSTER,
    Fact.NOTHING_LAUNCHED: ToldTo.CLUSTER,
    Fact.INTERRUPTED: ToldTo.ACCOUNT,
    Fact.ABOUT_TO_BE_INTERRUPTED: ToldTo.ACCOUNT,
    Fact.DIED_PENDING: ToldTo.CLUSTER,
    Fact.NEVER_JOINED: ToldTo.CLUSTER,
}
_SUSPICIONS: Final = frozenset({Fact.NOTHING_LAUNCHED, Fact.ABOUT_TO_BE_INTERRUPTED})


def note(ports: NodePorts, fact: Fact, offerings: Collection[OfferingKey]) -> None:
    """Leave offerings out for a while, for those clusters that the fact is true for.

    The cluster itself remembers all of its facts together: what was suspected and is then named is
    left out for longer.
    """
    if not offerings:
        return
    whose = ["", ports.cluster.name] if TOLD_TO[fact] == ToldTo.ACCOUNT else [ports.cluster.name]
    for cluster in whose:
        ports.ledger.mark_unavailable(
            sorted(offerings),
            ports.clock.now(),
            certain=fact not in _SUSPICIONS,
            cluster=cluster,
        )


def note_quotas(ports: ClusterPorts, marks: Sequence[QuotaReached]) -> None:
    """Leave out, for all clusters, what quotas of the account have no room for."""
    ports.ledger.mark_quotas(marks, ports.clock.now())


def quotas_for_all(
    over: frozenset[OfferingKey],
    named: frozenset[OfferingKey],
    instance_types: Sequence[InstanceType],
) -> tuple[QuotaReached, ...]:
    """Return the quotas that are reached for certain, sorted.

    Args:
        over: Offerings of errors about quotas; all that was asked for where EC2 names none.
        named: Those of them that EC2 names.
    """
    quotas = {quota_of(offering) for offering in over}
    return reached(over if len(quotas) == 1 else named, instance_types)
