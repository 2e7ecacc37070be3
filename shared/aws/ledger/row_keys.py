"""The rows of the ledger: their keys and times.

Intents, slots, offerings and quotas are stored as `shared.model.codec` writes them. Times that
DynamoDB compares are numbers: whole milliseconds since the epoch; `expires_at` alone is in
seconds, as DynamoDB's time to live requires. DynamoDB deletes late, so every read tests
`expires_at` too. `version` counts the writes of a row; `schema` is the version of its format.
"""

from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from shared.model.codec import to_plain
from shared.model.ec2.instance_types import OfferingKey
from shared.model.ec2.launches import LaunchIntent, Slot
from shared.model.ec2.quotas import Quota

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)

# Increased when the format changes so that older code would misread rows.
SCHEMA: Final = 2

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


def fields_of(value: LaunchIntent | Slot) -> dict[str, Any]:
    """Return an intent or a slot as the fields of its row, but `version`, which writes count."""
    plain: dict[str, Any] = to_plain(value)
    return {name: field for name, field in plain.items() if name != "version"}
