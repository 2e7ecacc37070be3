"""Spot pools that EC2 was offered and took nothing from, though they were cheaper.

For spot EC2 takes the cheapest of its deepest pools, so each answer shows which cheaper ones are
shallow now. Consolidation that counted on their prices would launch more expensive machines.

Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-fleet-allocation-strategy.html
(2026-11).
"""

from datetime import datetime, timedelta
from typing import Final

from shared.model.ec2.instance_types import CapacityType, OfferingKey
from shared.model.ec2.launches import FleetAnswer
from shared.model.memo import Memo
from shared.ports import ClusterPorts
from shared.snapshot.launch_body import LaunchAttempt

PASSED_OVER: Final = "passed-over"
# Pools fill and empty within the hour; what was seen half of this ago is worth writing down anew.
_KEEP: Final = timedelta(minutes=30)


def note_passed_over(ports: ClusterPorts, attempt: LaunchAttempt, answer: FleetAnswer) -> None:
    """Remember which spot pools of an attempt EC2 took nothing from, though they were cheaper.

    A pool that it took a machine from is remembered no longer. Pools it has none of are
    remembered by others.
    """
    prices = {
        option.offering: option.price_micros_per_hour
        for option in attempt.options
        if option.offering.capacity_type == CapacityType.SPOT
    }
    taken = {instance.offering for instance in answer.instances}
    dearest = max((prices.get(offering_key, 0) for offering_key in taken), default=0)
    if not dearest:
        return
    if any(error.offering is None for error in answer.errors):
        # EC2 names nothing: whatever it took nothing from may be out.
        dearest = 0
    passed = {offering_key for offering_key, price in prices.items() if price < dearest}
    passed -= taken | {error.offering for error in answer.errors if error.offering is not None}
    now = ports.clock.now()
    memo = ports.ledger.memo(ports.cluster.name, PASSED_OVER)
    known = _known(memo, now)
    fresh = {
        offering_key for offering_key in passed if known.get(offering_key, now) < now + _KEEP / 2
    }
    if not fresh and not taken & known.keys():
        return
    until = known | dict.fromkeys(fresh, now + _KEEP)
    value = {
        f"{offering_key.instance_type}/{offering_key.zone}": until[offering_key].isoformat()
        for offering_key in sorted(until.keys() - taken)
    }
    # Only the holder of the lease writes it; if the lease was lost, the other has newer answers.
    ports.ledger.change_memo(
        ports.cluster.name, Memo(name=memo.name, value=value, version=memo.version), now + _KEEP
    )


def passed_over(ports: ClusterPorts, now: datetime) -> frozenset[OfferingKey]:
    """Return the spot pools that EC2 skipped within the last half hour."""
    return frozenset(_known(ports.ledger.memo(ports.cluster.name, PASSED_OVER), now))


def _known(memo: Memo, now: datetime) -> dict[OfferingKey, datetime]:
    found = {}
    for name, text in memo.value.items():
        instance_type, _, zone = name.partition("/")
        until = datetime.fromisoformat(text)
        if until > now:
            key = OfferingKey(
                instance_type=instance_type, zone=zone, capacity_type=CapacityType.SPOT
            )
            found[key] = until
    return found
