"""What launches teach about EC2's capacity, and which clusters learn of it: one table.

| fact | source | true for |
|---|---|---|
| no capacity | EC2, of an offering that a launch asked for with nothing of its own | the account |
| no capacity as asked | EC2, to a launch template or context of the user's | the cluster |
| nothing launched | inferred: EC2 names no reason, or not this offering | the cluster |
| interrupted | EC2, of an instance whose offering it shows | the account |
| about to be interrupted | the same, half as long | the account |
| died pending | EC2, for another reason than capacity | the cluster |
| never joined | inferred: the instance runs, or never did | the cluster |
| quota reached | EC2, if it is clear of which quota | the account |
| Spot pool skipped | inferred: EC2 launched in a pool with a higher price | the cluster |

A launch template of the user's may name a placement group, a tenancy or a capacity reservation. EC2
then answers `InsufficientInstanceCapacity` if there is no capacity there.
Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/placement-strategies.html (2026-11).

For Spot, EC2 chooses the cheapest of its deepest pools, so each answer shows which cheaper pools
are shallow now. Consolidation that relied on their prices would launch more expensive instances.
Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-fleet-allocation-strategy.html
(2026-11).

Refusals of a request are stored by Provisioner, full subnets by cluster
(`shared.snapshot.refusals`). Nothing here is read from labels: a kubelet may write the labels
of its Node that name instance type and zone.
Source: https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction
(2026-11).
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from shared.model.ec2.instance_types import CapacityType, InstanceType, OfferingKey
from shared.model.ec2.launches import FleetAnswer, LaunchOption
from shared.model.ec2.quotas import offerings_beyond_quotas, quota_of, reached_quotas
from shared.model.note import Note
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


# All other facts are true for the cluster alone.
_OF_ACCOUNT: Final = frozenset(
    {
        OfferingFact.NO_CAPACITY,
        OfferingFact.INTERRUPTED,
        OfferingFact.ABOUT_TO_BE_INTERRUPTED,
    }
)
_SUSPICIONS: Final = frozenset(
    {OfferingFact.NOTHING_LAUNCHED, OfferingFact.ABOUT_TO_BE_INTERRUPTED}
)
_SKIPPED: Final = "passed-over"
# Pools fill and empty within the hour; an observation is saved again after half of this time.
_SKIPPED_FOR: Final = timedelta(minutes=30)


def mark_unavailable(
    ports: NodePorts, fact: OfferingFact, offerings: Collection[OfferingKey]
) -> None:
    """Mark offerings as unavailable for a while, for the clusters that the fact is true for.

    The cluster itself records all of its facts together: an offering that was suspected and is then
    named stays unavailable for longer.
    """
    for cluster in ("", ports.cluster.name) if fact in _OF_ACCOUNT else (ports.cluster.name,):
        if offerings:
            ports.ledger.mark_unavailable(
                sorted(offerings),
                ports.clock.now(),
                certain=fact not in _SUSPICIONS,
                cluster=cluster,
            )


def mark_quotas(
    ports: ClusterPorts,
    over: set[OfferingKey],
    named: set[OfferingKey],
    types: Sequence[InstanceType],
) -> set[OfferingKey]:
    """Mark the quotas that are reached for certain; return the offerings of which that is unclear.

    Args:
        over: Offerings of errors about quotas; all that were requested if EC2 names none.
        named: The ones among them that EC2 names.
    """
    is_clear = len({quota_of(offering) for offering in over}) == 1
    marks = reached_quotas(over if is_clear else named, types)
    ports.ledger.mark_quotas(marks, ports.clock.now())
    return over - offerings_beyond_quotas(marks, types)


def save_skipped_spot_pools(
    ports: ClusterPorts, options: Iterable[LaunchOption], answer: FleetAnswer
) -> None:
    """Save which Spot pools that were requested EC2 skipped although they were cheaper.

    A pool from which it launched an instance is dropped. Pools that EC2 names in an error are not
    saved here: they are marked unavailable.
    """
    prices = {
        option.offering: option.price_micros_per_hour
        for option in options
        if option.offering.capacity_type == CapacityType.SPOT
    }
    launched = {instance.offering for instance in answer.instances}
    refused = {error.offering for error in answer.errors}
    dearest = max((prices.get(offering, 0) for offering in launched), default=0)
    if not dearest:
        return
    # If EC2 names no offering in an error, any pool that it did not use may lack capacity.
    cheaper = {pool for pool, price in prices.items() if price < dearest and None not in refused}
    now = ports.clock.now()
    note = ports.ledger.note(ports.cluster.name, _SKIPPED)
    known = _skipped(note, now)
    due = now + _SKIPPED_FOR / 2
    fresh = {pool for pool in cheaper - launched - refused if known.get(pool, now) < due}
    if not fresh and not launched & known.keys():
        return
    until = known | dict.fromkeys(fresh, now + _SKIPPED_FOR)
    value = {
        f"{pool.instance_type}/{pool.zone}": until[pool].isoformat()
        for pool in sorted(until.keys() - launched)
    }
    # Only the holder of the lease writes the note; if the lease was lost, the new holder has newer
    # answers.
    changed = Note(name=_SKIPPED, value=value, version=note.version)
    ports.ledger.change_note(ports.cluster.name, changed, now + _SKIPPED_FOR)


def skipped_spot_pools(ports: ClusterPorts, now: datetime) -> frozenset[OfferingKey]:
    """Return the Spot pools that EC2 skipped within the last half hour."""
    return frozenset(_skipped(ports.ledger.note(ports.cluster.name, _SKIPPED), now))


def _skipped(note: Note, now: datetime) -> dict[OfferingKey, datetime]:
    untils = ((pool, datetime.fromisoformat(text)) for pool, text in note.value.items())
    return {
        OfferingKey.from_text(f"{pool}/{CapacityType.SPOT.value}"): until
        for pool, until in untils
        if until > now
    }
