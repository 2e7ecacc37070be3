"""Volumes: where they are, where they may be made, and how many a node can have."""

from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.values import replace
from tests.karpenter_cases.scheduling.market import LARGE, SMALL, ZONES, A, B, C
from tests.karpenter_cases.scheduling.outcome import Outcome, solve
from tests.karpenter_cases.scheduling.writing import TEAM, Raw, pod

ZONE = keys.ZONE
EBS = "ebs.csi.aws.com"
FAST = "fast"
# At most ten volumes on each machine.
TEN = (replace(LARGE, volume_limit=10),)


def storage_class(
    name: str = FAST,
    zones: tuple[str, ...] = (),
    *,
    driver: str = EBS,
    default: bool = False,
    created: str = "2026-01-01T00:00:00Z",
) -> Raw:
    """Return a class that makes volumes where pods are, in some zones only when any are given."""
    topologies = [{"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]}]
    mark = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    return {
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": mark, "creationTimestamp": created},
        "provisioner": driver,
        "volumeBindingMode": "WaitForFirstConsumer",
        **({"allowedTopologies": topologies} if zones else {}),
    }


def claim(name: str = "data", volume: str = "", *, owner: str = "", **spec: Any) -> Raw:
    """Return a claim of the fast class, bound when a volume is named."""
    spec = {"storageClassName": FAST, "accessModes": ["ReadWriteOnce"], **spec}
    reference = {"kind": "Pod", "name": "a", "uid": owner, "apiVersion": "v1", "controller": True}
    return {
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "namespace": "default",
            "ownerReferences": [reference] if owner else [],
        },
        "spec": {**spec, **({"volumeName": volume} if volume else {})},
        "status": {"phase": "Bound" if volume else "Pending"},
    }


def volume(name: str = "v1", zone: str = "", **source: Any) -> Raw:
    """Return a volume of the EBS driver unless another source is given."""
    expressions = [{"key": ZONE, "operator": "In", "values": [zone]}]
    terms = [{"matchExpressions": expressions}]
    return {
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "claimRef": {"name": "data"},
            "storageClassName": FAST,
            **(source or {"csi": {"driver": EBS, "volumeHandle": name}}),
            **({"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}} if zone else {}),
        },
        "status": {"phase": "Bound"},
    }


def mounts(*claims: str) -> list[Raw]:
    return [{"name": value, "persistentVolumeClaim": {"claimName": value}} for value in claims]


def ephemeral(name: str = "tmp", storage: str | None = FAST) -> Raw:
    spec: Raw = {"accessModes": ["ReadWriteOnce"]}
    if storage is not None:
        spec["storageClassName"] = storage
    return {"name": name, "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}


def placed(kind: str, zones: tuple[str, ...], *stored: Raw, **words: Any) -> Outcome:
    """Decide about a pod of these zones with a claim of its own or one made for it."""
    volumes = mounts("data") if kind == "claim" else [ephemeral("data")]
    required = [[(ZONE, "In", *zones)]]
    return solve(pod(volumes=volumes, required=required, **words), stored=stored)


def named(kind: str) -> Raw:
    """Return the claim such a pod has when it is bound to volume v1."""
    if kind == "claim":
        return claim("data", "v1")
    return claim("a-data", "v1", owner="uid-default-a")


KINDS = pytest.mark.parametrize("kind", ["claim", "ephemeral"])


@KINDS
def test_a_volume_to_be_made_draws_its_pod_into_a_zone_of_its_class(kind: str) -> None:
    stored = (storage_class(zones=(B, C)), claim())
    assert placed(kind, (A, C), *stored).values(ZONE) == {C}


@KINDS
def test_a_volume_that_can_be_made_nowhere_the_pod_may_be_keeps_it_pending(kind: str) -> None:
    outcome = placed(kind, (A,), storage_class(zones=(B, C)), claim())
    assert outcome.new == ()
    assert "volume" in outcome.pending["a"]


@KINDS
def test_a_volume_that_is_there_draws_its_pod_into_its_zone(kind: str) -> None:
    outcome = placed(kind, (A, C), storage_class(), named(kind), volume("v1", C))
    assert outcome.values(ZONE) == {C}


@KINDS
def test_a_volume_in_a_zone_the_pod_may_not_be_in_keeps_it_pending(kind: str) -> None:
    outcome = placed(kind, (A,), storage_class(), named(kind), volume("v1", C))
    assert outcome.new == ()
    assert "volume" in outcome.pending["a"]


def test_a_missing_claim_keeps_its_pod_pending() -> None:
    outcome = solve(pod(volumes=mounts("missing")))
    assert outcome.new == ()
    assert "missing" in outcome.pending["a"]


def test_a_claim_without_a_class_that_has_its_volume_is_fine() -> None:
    stored = (
        claim("data", "v1", storageClassName=""),
        volume("v1", B, storageClassName="", nfs={}),
    )
    outcome = solve(pod(volumes=mounts("data")), stored=stored)
    assert outcome.values(ZONE) == {B}


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param((), id="no-claim"),
        pytest.param((claim("bad", storageClassName="missing"),), id="no-class"),
        pytest.param((claim("bad", "missing"),), id="no-volume"),
    ],
)
def test_a_broken_claim_keeps_only_its_own_pod_pending(broken: tuple[Raw, ...]) -> None:
    outcome = solve(
        pod("bad", volumes=mounts("bad")),
        pod("good", volumes=mounts("data")),
        pod("plain"),
        stored=(storage_class(), claim(), *broken),
    )
    assert outcome.is_placed("good", "plain")
    assert list(outcome.pending) == ["bad"]


def test_no_preference_or_alternative_of_its_pod_moves_a_volume() -> None:
    stored = (storage_class(), claim("data", "v1"), volume("v1", C))
    wishes: Raw = {"preferred": [(100, [(ZONE, "In", A)]), (1, [(TEAM, "In", "x")])]}
    assert solve(pod(volumes=mounts("data"), **wishes), stored=stored).values(ZONE) == {C}
    either: Raw = {"required": [[(ZONE, "In", A)], [(ZONE, "In", B)]]}
    assert not solve(pod(volumes=mounts("data"), **either), stored=stored).is_placed("a")


def many(count: int, each: int, **source: Any) -> tuple[list[Any], list[Raw]]:
    """Return pods that have so many volumes each, all there, and what stores them."""
    members, stored = [], [storage_class()]
    for number in range(count):
        names = [f"c{number}-{n}" for n in range(each)]
        members.append(pod(f"p{number}", cpu="100m", volumes=mounts(*names)))
        for name in names:
            stored += [claim(name, f"v-{name}"), volume(f"v-{name}", B, **source)]
    return members, stored


def test_pods_with_more_volumes_than_one_node_can_have_get_several() -> None:
    members, stored = many(6, 2)
    outcome = solve(*members, stored=stored, market=TEN)
    assert len(outcome.new) == 2
    assert len(outcome.homes) == 6


def test_pods_that_share_a_volume_count_it_once() -> None:
    members = [pod(f"p{n}", cpu="100m", volumes=mounts("data", "more")) for n in range(20)]
    stored = [storage_class()]
    for name in ("data", "more"):
        stored += [claim(name, f"v-{name}"), volume(f"v-{name}", B)]
    outcome = solve(*members, stored=stored, market=TEN)
    assert len(outcome.new) == 1
    assert len(outcome.homes) == 20


def test_volumes_that_are_only_mounted_are_not_counted() -> None:
    members, stored = many(6, 2, nfs={"server": "fs.example.com", "path": "/"})
    outcome = solve(*members, stored=stored, market=TEN)
    assert len(outcome.new) == 1
    assert len(outcome.homes) == 6


def test_volumes_of_the_driver_built_in_once_are_counted_with_its_successors() -> None:
    members, stored = many(6, 2, awsElasticBlockStore={"volumeID": "vol-1"})
    outcome = solve(*members, stored=stored, market=TEN)
    assert len(outcome.new) == 2
    assert len(outcome.homes) == 6


def made_for_pods(storage: str | None, *classes: Raw) -> Outcome:
    """Decide about six pods for each of which two volumes will be made."""
    volumes = [ephemeral("one", storage), ephemeral("two", storage)]
    members = [pod(f"p{number}", cpu="100m", volumes=volumes) for number in range(6)]
    return solve(*members, stored=classes, market=TEN)


def test_volumes_made_for_pods_of_a_class_they_name_are_counted() -> None:
    outcome = made_for_pods(FAST, storage_class(zones=(B,)))
    assert len(outcome.new) == 2
    assert outcome.counts(ZONE) == {B: 6}


def test_volumes_made_for_pods_of_the_default_class_are_counted() -> None:
    outcome = made_for_pods(None, storage_class("usual", (C,), default=True), storage_class())
    assert len(outcome.new) == 2
    assert outcome.counts(ZONE) == {C: 6}


def test_of_several_default_classes_the_newest_is_meant() -> None:
    classes = [
        storage_class("old", (A,), default=True, created="2026-01-01T00:00:00Z"),
        storage_class("new", (B,), default=True, created="2026-01-03T00:00:00Z"),
        storage_class("mid", (C,), default=True, created="2026-01-02T00:00:00Z"),
    ]
    assert made_for_pods(None, *classes).counts(ZONE) == {B: 6}


def test_volumes_of_a_missing_class_are_not_provisioned() -> None:
    outcome = made_for_pods("missing", storage_class())
    assert outcome.new == ()
    assert len(outcome.pending) == 6
    assert all("missing" in value for value in outcome.pending.values())


def test_volumes_of_a_class_of_the_driver_built_in_once_are_counted_too() -> None:
    outcome = made_for_pods(FAST, storage_class(driver="kubernetes.io/aws-ebs"))
    assert len(outcome.new) == 2
    assert len(outcome.homes) == 6


def test_pods_without_volumes_are_not_held_to_any() -> None:
    outcome = solve(pod(), stored=[storage_class(zones=(B,)), claim()], market=(SMALL,))
    assert outcome.values(ZONE) == set(ZONES)
