from typing import Any

import pytest

from shared.manifests.volumes.claims import decode_claim, ephemeral_claims
from shared.manifests.volumes.storage_objects import (
    decode_attachment,
    decode_csi_node,
    decode_storage_class,
    decode_volume,
)
from shared.model import labels as keys
from shared.model.kubernetes.volumes import (
    EBS_DRIVER,
    Claim,
    CsiNodeLimits,
    StorageClass,
    Volume,
    VolumeAttachment,
    attachable,
)
from tests import builders as make
from tests.unit.manifests.volumes.storage_documents import (
    OTHER_ZONE,
    ZONE,
    claim,
    in_zones,
    storage_class,
    volume,
)

IN_ZONE = make.needs(keys.ZONE, "In", ZONE)


def test_attachments_are_a_resource_named_after_their_driver() -> None:
    assert attachable(EBS_DRIVER) == "attachable-volumes-ebs.csi.aws.com"


def test_a_claim_says_what_it_is_bound_to() -> None:
    raw = claim(spec={"volumeName": "pv", "storageClassName": "gp3"}, status={"phase": "Bound"})
    bound = Claim(namespace="shop", name="data", volume="pv", storage_class="gp3")
    assert decode_claim(raw) == bound
    assert bound.key == "shop/data"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (claim(spec={"accessModes": ["ReadWriteMany"]}), {"many_nodes": True}),
        (claim(spec={"accessModes": ["ReadWriteOnce", "ReadOnlyMany"]}), {"many_nodes": True}),
        (claim(spec={"storageClassName": ""}), {"storage_class": ""}),
        (claim(spec={"storageClassName": None}), {"storage_class": None}),
        (claim(status={"phase": "Lost"}), {"lost": True}),
        (claim(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), {"deleting": True}),
        (
            claim(
                spec={"storageClassName": "new"},
                metadata={"annotations": {"volume.beta.kubernetes.io/storage-class": "old"}},
            ),
            {"storage_class": "old"},
        ),
    ],
)
def test_a_claim_says_what_matters(raw: dict[str, Any], expected: dict[str, Any]) -> None:
    assert decode_claim(raw) == Claim(namespace="shop", name="data", **expected)


@pytest.mark.parametrize(("kind", "owner"), [("Pod", "u1"), ("StatefulSet", "")])
def test_only_a_pod_owns_an_ephemeral_claim(kind: str, owner: str) -> None:
    reference = {"kind": kind, "name": "a", "uid": "u1", "controller": True}
    found = decode_claim(claim(metadata={"ownerReferences": [reference]}))
    assert found.owner == owner


def test_ephemeral_volumes_are_claims_to_be() -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"storageClassName": "gp3"}}
    volumes = [
        {"name": "b", "ephemeral": {"volumeClaimTemplate": template}},
        {"name": "a", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        {"name": "c", "emptyDir": {}},
    ]
    assert ephemeral_claims("shop", "web", {"volumes": volumes}) == (
        Claim(namespace="shop", name="web-a"),
        Claim(namespace="shop", name="web-b", storage_class="gp3"),
    )
    assert ephemeral_claims("shop", "web", {}) == ()


def test_a_volume_is_where_its_affinity_says() -> None:
    found = decode_volume(
        volume("pv", in_zones(ZONE), in_zones(OTHER_ZONE), claimRef={"name": "x"})
    )
    assert found == Volume(
        name="pv",
        driver=EBS_DRIVER,
        terms=(IN_ZONE, make.needs(keys.ZONE, "In", OTHER_ZONE)),
    )


def test_the_labels_of_old_count_beside_the_affinity() -> None:
    old = {
        "failure-domain.beta.kubernetes.io/zone": f"{ZONE}__{OTHER_ZONE}",
        "failure-domain.beta.kubernetes.io/region": "us-east-1",
        "app": "x",
    }
    region = make.needs(keys.REGION, "In", "us-east-1")
    both = make.needs(keys.ZONE, "In", ZONE, OTHER_ZONE)
    assert decode_volume(volume(labels=old)).terms == (region.merge(both),)
    narrowed = decode_volume(volume("pv", in_zones(ZONE), labels=old))
    assert narrowed.terms == (region.merge(IN_ZONE),)


def test_a_volume_of_ebs_from_before_csi_is_one_of_its_driver() -> None:
    raw = volume(csi=None, awsElasticBlockStore={"volumeID": f"aws://{ZONE}/vol-1"})
    assert decode_volume(raw).driver == EBS_DRIVER


def test_a_mounted_volume_takes_no_attachment() -> None:
    assert decode_volume(volume(csi=None, nfs={"server": "s", "path": "/"})).driver == ""


def test_a_volume_without_a_claim_is_free_unless_it_failed() -> None:
    free = volume(storageClassName="local")
    assert decode_volume(free).is_free
    assert decode_volume(free).storage_class == "local"
    assert not decode_volume({**free, "status": {"phase": "Failed"}}).is_free


def test_a_volume_that_names_a_node_by_field_has_a_problem() -> None:
    by_field = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    (problem,) = decode_volume(volume("pv", by_field)).problems
    assert "matchFields" in problem


def test_a_class_says_where_and_when_volumes_are_made() -> None:
    found = decode_storage_class(storage_class("gp3", ZONE))
    assert found == StorageClass(
        name="gp3", driver=EBS_DRIVER, waits_for_first_consumer=True, terms=(IN_ZONE,)
    )
    default = {"storageclass.beta.kubernetes.io/is-default-class": "true"}
    raw = storage_class(
        metadata={"annotations": default, "creationTimestamp": "2026-01-01T00:00:00Z"},
        provisioner="kubernetes.io/aws-ebs",
        volumeBindingMode="Immediate",
    )
    assert decode_storage_class(raw) == StorageClass(
        name="gp3", driver=EBS_DRIVER, is_default=True, created_at=make.NOW
    )
    by_hand = decode_storage_class(storage_class(provisioner="kubernetes.io/no-provisioner"))
    assert (by_hand.is_static, by_hand.driver) == (True, "")


def test_a_node_says_how_many_volumes_of_which_driver() -> None:
    drivers = [
        {"name": EBS_DRIVER, "allocatable": {"count": 25}},
        {"name": "none.example.com", "allocatable": None},
        {"name": "full.example.com", "allocatable": {"count": -1}},
    ]
    raw = {"metadata": {"name": "n1"}, "spec": {"drivers": drivers}}
    counts = {EBS_DRIVER: 25, "full.example.com": 0}
    found = decode_csi_node(raw)
    assert found == CsiNodeLimits(node_name="n1", counts=counts)
    assert found.counts == counts
    assert decode_csi_node({}) == CsiNodeLimits(node_name="")


def test_an_attachment_says_which_volume_is_on_which_node() -> None:
    spec = {
        "attacher": "kubernetes.io/aws-ebs",
        "nodeName": "n1",
        "source": {"persistentVolumeName": "pv"},
    }
    assert decode_attachment({"spec": spec}) == VolumeAttachment(
        node_name="n1", driver=EBS_DRIVER, volume="pv"
    )
    assert decode_attachment({"spec": {**spec, "source": {"inlineVolumeSpec": {}}}}).volume == ""
