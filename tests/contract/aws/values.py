"""Values that the contract suites write down, and the AWS they run against."""

from datetime import timedelta
from typing import Any

from shared.aws.session import Session
from shared.model.dialect import OwnerKind
from shared.model.ec2.instance_types import CapacityType, OfferingKey
from shared.model.ec2.launches import LaunchIntent, PodRef, Slot, SlotOwner
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.resources import Resources
from tests.fakes.clock import START, FakeClock

REGION = "us-east-1"
TABLE = "ledger"
BUCKET = "dovetail-decisions"
CLUSTER = "test"


def session(clock: FakeClock, **options: Any) -> Session:
    return Session(region=REGION, api_timeout=timedelta(seconds=5), now=clock.now, **options)


def offering(
    instance_type: str = "m5.large",
    zone: str = "us-east-1a",
    capacity_type: CapacityType = CapacityType.SPOT,
) -> OfferingKey:
    return OfferingKey(instance_type=instance_type, zone=zone, capacity_type=capacity_type)


def intent(**changes: Any) -> LaunchIntent:
    given: dict[str, Any] = {
        "cluster": CLUSTER,
        "plan_id": "p1",
        "group": 0,
        "attempt": 0,
        "provisioner": "default",
        "count": 2,
        "body_key": "launches/test/p1/0-0.json",
        "body_hash": "ab" * 32,
        "reserved": Resources.of(cpu=4000, memory=2**34, pods=58),
        "token_at": START + timedelta(seconds=2, milliseconds=250),
        "created_at": START,
    }
    return LaunchIntent(**{**given, **changes})


def slot(**changes: Any) -> Slot:
    given: dict[str, Any] = {
        "cluster": CLUSTER,
        "plan_id": "p1",
        "group": 0,
        "number": 0,
        "provisioner": "default",
        "instance_id": "i-1",
        "offering": offering(),
        "price_micros_per_hour": 40_000,
        "capacity": Resources.of(cpu=2000, memory=2**33, pods=29),
        "allocatable": Resources.of(cpu=1930, memory=7 * 2**30, pods=29),
        "daemon_requests": Resources.of(cpu=100),
        "labels": {"team": "a", "topology.kubernetes.io/zone": "us-east-1a"},
        "pods": (
            PodRef(namespace="default", name="a", uid="uid-a"),
            PodRef(namespace="default", name="b", uid="uid-b"),
        ),
        "stamp": {"karpenter.sh/provisioner-hash": "ab12"},
        "owner": SlotOwner(
            kind=OwnerKind.NODE_POOL,
            uid="uid-pool",
            taints=(Taint(key="gpu", value="yes", effect=Effect.NO_SCHEDULE),),
            startup_taints=(Taint(key="agent", effect=Effect.NO_EXECUTE),),
        ),
        "launched_at": START + timedelta(seconds=1, milliseconds=250),
    }
    return Slot(**{**given, **changes})
