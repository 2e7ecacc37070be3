"""The rows of the ledger: their keys, and intents and slots as plain maps.

Times are whole milliseconds since the epoch; `expires_at` alone is in seconds, as DynamoDB's
time to live requires. DynamoDB deletes late, so every read tests `expires_at` too.
`version` counts the writes of a row; `schema` is the version of its format.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from shared.model.ec2.instance_types import CapacityType, OfferingKey
from shared.model.ec2.launches import LaunchIntent, PodRef, Slot, slot_owner_of
from shared.model.ec2.quotas import Quota
from shared.model.resources import Resources

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)

# Increased when the format changes so that older code would misread rows.
SCHEMA: Final = 1

LEASE: Final = "lease"
INSTANCE: Final = "instance"
INTENT: Final = "intent#"
SLOT: Final = "slot#"
OFFERING: Final = "offering#"
QUOTA: Final = "quota#"
BUCKET: Final = "bucket#"
NOTE: Final = "memo#"

# How long rows are kept unless deleted. The lease's row has the fencing token, which must not start
# again while an old holder may live; an instance's row lives as long as the instance.
KEEP_LEASE: Final = timedelta(days=400)
KEEP_INTENT: Final = timedelta(days=30)
KEEP_SLOT: Final = timedelta(days=400)
KEEP_INSTANCE: Final = timedelta(days=5 * 365)
KEEP_BUCKET: Final = timedelta(days=1)


class Key(NamedTuple):
    """Key of a row."""

    pk: str
    sk: str


def cluster_key(cluster: str, sk: str) -> Key:
    """Return the key of a cluster's row."""
    return Key(f"cluster#{cluster}", sk)


def account_key(region: str, sk: str) -> Key:
    """Return the key of a row that all clusters of account and Region share."""
    return Key(f"account#{region}", sk)


def instance_key(instance_id: str) -> Key:
    """Return the key of an instance's row."""
    return Key(f"instance#{instance_id}", INSTANCE)


def intent_key(intent: LaunchIntent) -> Key:
    """Return the key of an intent."""
    return cluster_key(intent.cluster, f"{INTENT}{intent.plan_id}#{intent.group}")


def slot_key(slot: Slot) -> Key:
    """Return the key of a slot."""
    return named_slot_key(slot.cluster, slot.name)


def named_slot_key(cluster: str, name: str) -> Key:
    """Return the key of the slot of a name, `<plan>/<group>/<number>`."""
    return cluster_key(cluster, SLOT + "#".join(name.rsplit("/", 2)))


def shared_key(region: str, cluster: str, sk: str) -> Key:
    """Return the key of a row of one cluster, or of account and Region if `cluster` is empty."""
    return cluster_key(cluster, sk) if cluster else account_key(region, sk)


def offering_key(region: str, offering: OfferingKey, cluster: str = "") -> Key:
    """Return the key of a refused offering."""
    name = f"{offering.instance_type}#{offering.zone}#{offering.capacity_type.value}"
    return shared_key(region, cluster, f"{OFFERING}{name}")


def quota_key(region: str, quota: Quota) -> Key:
    """Return the key of a quota that is reached."""
    return account_key(region, f"{QUOTA}{quota.capacity_type.value}#{quota.family}")


def millis(moment: datetime) -> int:
    """Return a time in whole milliseconds since the epoch."""
    return (moment - _EPOCH) // _MILLISECOND


def seconds(moment: datetime) -> int:
    """Return a time in seconds since the epoch, rounded up."""
    return -(-millis(moment) // 1000)


def moment(in_millis: int) -> datetime:
    """Return a time in milliseconds since the epoch as an aware datetime in UTC."""
    return _EPOCH + in_millis * _MILLISECOND


def intent_row(intent: LaunchIntent) -> dict[str, Any]:
    """Return an intent as a plain map."""
    return {
        "cluster": intent.cluster,
        "plan_id": intent.plan_id,
        "group": intent.group,
        "attempt": intent.attempt,
        "provisioner": intent.provisioner,
        "count": intent.count,
        "body_key": intent.body_key,
        "body_hash": intent.body_hash,
        "reserved": dict(intent.reserved.items),
        "reserved_price_micros_per_hour": intent.reserved_price_micros_per_hour,
        "not_before": _millis_or_none(intent.not_before),
        "token_at": _millis_or_none(intent.token_at),
        "asked_at": _millis_or_none(intent.asked_at),
        "created_at": millis(intent.created_at),
    }


def intent_of(row: Mapping[str, Any]) -> LaunchIntent:
    """Return the intent that `intent_row` wrote."""
    return LaunchIntent(
        cluster=row["cluster"],
        plan_id=row["plan_id"],
        group=row["group"],
        attempt=row["attempt"],
        provisioner=row["provisioner"],
        count=row["count"],
        body_key=row["body_key"],
        body_hash=row["body_hash"],
        reserved=Resources.from_mapping(row["reserved"]),
        reserved_price_micros_per_hour=row["reserved_price_micros_per_hour"],
        not_before=_moment_or_none(row["not_before"]),
        token_at=_moment_or_none(row["token_at"]),
        asked_at=_moment_or_none(row["asked_at"]),
        created_at=moment(row["created_at"]),
    )


def offering_row(offering: OfferingKey) -> dict[str, Any]:
    """Return an offering as a plain map."""
    return {
        "instance_type": offering.instance_type,
        "zone": offering.zone,
        "capacity_type": offering.capacity_type.value,
    }


def offering_of(row: Mapping[str, Any]) -> OfferingKey:
    """Return the offering that `offering_row` wrote."""
    return OfferingKey(
        instance_type=row["instance_type"],
        zone=row["zone"],
        capacity_type=CapacityType(row["capacity_type"]),
    )


def slot_row(slot: Slot) -> dict[str, Any]:
    """Return a slot as a plain map."""
    return {
        "cluster": slot.cluster,
        "plan_id": slot.plan_id,
        "group": slot.group,
        "number": slot.number,
        "provisioner": slot.provisioner,
        "instance_id": slot.instance_id,
        "offering": offering_row(slot.offering),
        "price_micros_per_hour": slot.price_micros_per_hour,
        "capacity": dict(slot.capacity.items),
        "allocatable": dict(slot.allocatable.items),
        "daemon_requests": dict(slot.daemon_requests.items),
        "labels": dict(slot.labels),
        "node_name": slot.node_name,
        "pods": [[pod.namespace, pod.name, pod.uid] for pod in slot.pods],
        "bound": slot.bound,
        "opened": slot.opened,
        "replaces": slot.replaces,
        "interrupted_at": _millis_or_none(slot.interrupted_at),
        "stamp": dict(slot.stamp),
        "owner": None if slot.owner is None else slot.owner.encode(),
        "launched_at": millis(slot.launched_at),
    }


def slot_of(row: Mapping[str, Any]) -> Slot:
    """Return the slot that `slot_row` wrote."""
    return Slot(
        cluster=row["cluster"],
        plan_id=row["plan_id"],
        group=row["group"],
        number=row["number"],
        provisioner=row["provisioner"],
        instance_id=row["instance_id"],
        offering=offering_of(row["offering"]),
        price_micros_per_hour=row["price_micros_per_hour"],
        capacity=Resources.from_mapping(row["capacity"]),
        allocatable=Resources.from_mapping(row["allocatable"]),
        daemon_requests=Resources.from_mapping(row["daemon_requests"]),
        labels=row["labels"],
        node_name=row["node_name"],
        pods=tuple(PodRef(namespace=p[0], name=p[1], uid=p[2]) for p in row["pods"]),
        bound=row["bound"],
        opened=row["opened"],
        replaces=row["replaces"],
        interrupted_at=_moment_or_none(row["interrupted_at"]),
        stamp=row["stamp"],
        owner=None if row["owner"] is None else slot_owner_of(row["owner"]),
        launched_at=moment(row["launched_at"]),
        version=row["version"],
    )


def _millis_or_none(at: datetime | None) -> int | None:
    return None if at is None else millis(at)


def _moment_or_none(in_millis: int | None) -> datetime | None:
    return None if in_millis is None else moment(in_millis)
