"""What volumes say against a node, rule by rule."""

from typing import Any

import pytest

from infra.local.cluster_simulator.rules.claims import claim_names
from infra.local.cluster_simulator.rules.matching import ClusterView
from tests.local.cluster_simulator.placing import ZONE, Json, check, make_node, make_pod

EBS = "ebs.csi.aws.com"
NO_VOLUME = "node(s) did not find available persistent volumes to bind"
NO_ROOM = "node(s) did not have enough free storage"
WRONG_ZONE = "node(s) had no available volume zone"
ELSEWHERE = "node(s) had volume node affinity conflict"
FULL = "node(s) exceed max volume count"
ALONE = "node has pod using PersistentVolumeClaim with ReadWriteOncePod"


def storage_class(**more: Any) -> Json:
    return {"provisioner": EBS, "volumeBindingMode": "WaitForFirstConsumer", **more}


def claim(storage: str = "10Gi", mode: str = "ReadWriteOnce", **more: Any) -> Json:
    metadata = {key: more.pop(key) for key in ("annotations", "deletionTimestamp") if key in more}
    spec = {
        "accessModes": [mode],
        "resources": {"requests": {"storage": storage}},
        "storageClassName": "late",
        **more,
    }
    return {"metadata": metadata, "spec": spec}


def volume(zone: str | None = None, labels: Json | None = None, **more: Any) -> Json:
    spec: Json = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "10Gi"},
        "storageClassName": "late",
        **more,
    }
    if zone is not None:
        expression = {"key": ZONE, "operator": "In", "values": [zone]}
        terms = [{"matchExpressions": [expression]}]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    return {"metadata": {"labels": labels or {}}, "spec": spec}


def using(*names: str, name: str = "p", on: str | None = None) -> Json:
    volumes = [{"name": n, "persistentVolumeClaim": {"claimName": n}} for n in names]
    return make_pod(name, on=on, volumes=volumes)


def view(claims: dict[str, Json], **more: Any) -> ClusterView:
    fields: dict[str, Any] = {
        "nodes": [make_node()],
        "storage_classes": {"late": storage_class()},
        **more,
    }
    return ClusterView(claims={("default", n): entry for n, entry in claims.items()}, **fields)


def test_a_volume_of_the_pod_alone_has_a_claim_named_after_both() -> None:
    pod = make_pod(
        "web-0",
        volumes=[
            {"name": "data", "persistentVolumeClaim": {"claimName": "shared"}},
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
            {"name": "config", "configMap": {"name": "c"}},
        ],
    )
    assert claim_names(pod) == ["shared", "web-0-scratch"]


def test_a_claim_on_its_way_out_or_chosen_for_another_node_holds_the_pod_back() -> None:
    leaving = view({"v": claim(deletionTimestamp="2026-01-01T00:00:00Z")})
    assert check(using("v"), make_node(), leaving) == ['persistentvolumeclaim "v" is being deleted']
    chosen = view({"v": claim(annotations={"volume.kubernetes.io/selected-node": "n1"})})
    assert check(using("v"), make_node("n0"), chosen) == [NO_VOLUME]
    assert check(using("v"), make_node("n1"), chosen) == []


def test_a_class_without_a_maker_needs_a_free_volume_that_fits() -> None:
    by_hand = {"late": storage_class(provisioner="kubernetes.io/no-provisioner")}

    def reasons(json: Json | None, **of_claim: Any) -> list[str]:
        volumes = {} if json is None else {"pv": json}
        cluster = view({"v": claim(**of_claim)}, storage_classes=by_hand, volumes=volumes)
        return check(using("v"), make_node(zone="a"), cluster)

    assert reasons(None) == [NO_VOLUME]
    assert reasons(volume("a")) == []
    assert reasons(volume("b")) == [NO_VOLUME]
    assert reasons(volume("a"), storage="11Gi") == [NO_VOLUME]
    assert reasons(volume("a"), mode="ReadWriteMany") == [NO_VOLUME]
    assert reasons(volume("a", claimRef={"name": "other"})) == [NO_VOLUME]
    assert reasons(volume("a", storageClassName="other")) == [NO_VOLUME]


def test_a_topology_without_expressions_allows_no_node() -> None:
    classes = {"late": storage_class(allowedTopologies=[{"matchLabelExpressions": []}])}
    assert check(using("v"), make_node(), view({"v": claim()}, storage_classes=classes)) == [
        NO_ROOM
    ]


@pytest.mark.parametrize(
    ("labels", "zone", "reasons"),
    [
        ({ZONE: "a"}, "a", []),
        ({ZONE: "b"}, "a", [WRONG_ZONE]),
        ({ZONE: "b__a"}, "a", []),
        ({"failure-domain.beta.kubernetes.io/zone": "a"}, "a", []),
        ({"failure-domain.beta.kubernetes.io/zone": "b"}, "a", [WRONG_ZONE]),
        ({"topology.kubernetes.io/region": "r"}, "a", [WRONG_ZONE]),
        ({ZONE: "b"}, None, []),
        ({}, "a", []),
    ],
)
def test_place_labels_of_a_volume_are_kept(
    labels: Json, zone: str | None, reasons: list[str]
) -> None:
    cluster = view({"v": claim(volumeName="pv")}, volumes={"pv": volume(labels=labels)})
    assert check(using("v"), make_node(zone=zone), cluster) == reasons


def test_a_bound_volume_stays_in_its_zone_and_must_exist() -> None:
    cluster = view({"v": claim(volumeName="pv")}, volumes={"pv": volume("b")})
    assert check(using("v"), make_node(zone="a"), cluster) == [ELSEWHERE]
    assert check(using("v"), make_node(zone="b"), cluster) == []
    lost = view({"v": claim(volumeName="gone")})
    assert check(using("v"), make_node(), lost) == ['persistentvolume "gone" not found']


def test_a_claim_for_one_pod_is_not_shared() -> None:
    claims = {"v": claim(mode="ReadWriteOncePod")}
    taken = view(claims, pods=[using("v", name="other", on="n9")])
    assert check(using("v"), make_node(), taken) == [ALONE]
    assert check(using("v"), make_node(), view(claims)) == []
    assert check(using("v"), make_node(), view({"v": claim()}, pods=taken.pods)) == []


def test_a_driver_attaches_only_so_many_volumes_to_a_node() -> None:
    limit = {"n0": {"spec": {"drivers": [{"name": EBS, "allocatable": {"count": 2}}]}}}
    claims = {n: claim() for n in ("new", "newer", "there", "shared")}
    claims["disk"] = claim(volumeName="pv")
    disk = volume(csi={"driver": EBS, "volumeHandle": "vol-1"})
    standing = [using("there", "shared", name="x", on="n0")]

    def reasons(pod: Json, pods: list[Json], csi_nodes: Json) -> list[str]:
        cluster = view(claims, pods=pods, csi_nodes=csi_nodes, volumes={"pv": disk})
        return check(pod, make_node(), cluster)

    assert reasons(using("new", "newer"), [], limit) == []
    assert reasons(using("new", "newer", "disk"), [], limit) == [FULL]
    assert reasons(using("new"), standing, limit) == [FULL]
    assert reasons(using("shared"), standing, limit) == []
    assert reasons(using("new"), standing, {}) == []
    unlimited = {"n0": {"spec": {"drivers": [{"name": EBS}]}}}
    assert reasons(using("new"), standing, unlimited) == []
