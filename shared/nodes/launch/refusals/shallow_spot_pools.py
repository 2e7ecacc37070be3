"""Spot pools that EC2 skipped although they were cheaper than the pools that it used.

For Spot, EC2 chooses the cheapest of its deepest pools, so each answer shows which cheaper pools
are shallow now. Consolidation that relied on their prices would launch more expensive instances.

Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-fleet-allocation-strategy.html
(2026-11).
"""

from datetime import datetime, timedelta
from typing import Final

from shared.model.ec2.instance_types import CapacityType, OfferingKey
from shared.model.ec2.launches import FleetAnswer
from shared.model.note import Note
from shared.ports import ClusterPorts
from shared.snapshot.launch_body import LaunchAttempt

SKIPPED_SPOT_POOLS: Final = "passed-over"
# Pools fill and empty within the hour; an observation is saved again after half of this time.
_KEEP: Final = timedelta(minutes=30)


def save_skipped_spot_pools(
    ports: ClusterPorts, attempt: LaunchAttempt, answer: FleetAnswer
) -> None:
    """Save which Spot pools of an attempt EC2 skipped although they were cheaper.

    A pool from which it launched an instance is dropped. Pools that EC2 names in an error are not
    saved here: they are marked unavailable.
    """
    prices = {
        option.offering: option.price_micros_per_hour
        for option in attempt.options
        if option.offering.capacity_type == CapacityType.SPOT
    }
    launched = {instance.offering for instance in answer.instances}
    dearest = max((prices.get(offering_key, 0) for offering_key in launched), default=0)
    if not dearest:
        return
    if any(error.offering is None for error in answer.errors):
        # EC2 names no offering: any pool that it did not use may lack capacity.
        dearest = 0
    skipped = {offering_key for offering_key, price in prices.items() if price < dearest}
    skipped -= launched | {error.offering for error in answer.errors if error.offering is not None}
    now = ports.clock.now()
    note = ports.ledger.note(ports.cluster.name, SKIPPED_SPOT_POOLS)
    known = _known(note, now)
    fresh = {
        offering_key for offering_key in skipped if known.get(offering_key, now) < now + _KEEP / 2
    }
    if not fresh and not launched & known.keys():
        return
    until = known | dict.fromkeys(fresh, now + _KEEP)
    value = {
        f"{offering_key.instance_type}/{offering_key.zone}": until[offering_key].isoformat()
        for offering_key in sorted(until.keys() - launched)
    }
    # Only the holder of the lease writes the note; if the lease was lost, the new holder has newer
    # answers.
    ports.ledger.change_note(
        ports.cluster.name, Note(name=note.name, value=value, version=note.version), now + _KEEP
    )


def skipped_spot_pools(ports: ClusterPorts, now: datetime) -> frozenset[OfferingKey]:
    """Return the Spot pools that EC2 skipped within the last half hour."""
    return frozenset(_known(ports.ledger.note(ports.cluster.name, SKIPPED_SPOT_POOLS), now))


def _known(note: Note, now: datetime) -> dict[OfferingKey, datetime]:
    found = {}
    for name, text in note.value.items():
        instance_type, _, zone = name.partition("/")
        until = datetime.fromisoformat(text)
        if until > now:
            key = OfferingKey(
                instance_type=instance_type, zone=zone, capacity_type=CapacityType.SPOT
            )
            found[key] = until
    return found
