"""What few decisions read of a cluster: volumes, what attaches them, and namespaces."""

from typing import Any

from shared.model import labels as keys
from shared.model.kubernetes.volumes import EBS_DRIVER, Claim, CsiNodeLimits, VolumeAttachment
from shared.model.requirements import Requirement, Requirements
from shared.model.resources import Resources
from tests.contract.kube.worlds import World, pod

ZONE = "us-west-2a"
IN_ZONE = Requirements.of([Requirement.of(keys.ZONE, ZONE)])


def namespace(name: str, **labels: str) -> dict[str, Any]:
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def claim(name: str, namespace: str = "shop", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            **spec,
        },
    }


def volume(name: str, **spec: Any) -> dict[str, Any]:
    expression = {"key": "topology.ebs.csi.aws.com/zone", "operator": "In", "values": [ZONE]}
    terms = [{"matchExpressions": [expression]}]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "csi": {"driver": EBS_DRIVER, "volumeHandle": f"vol-{name}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
            **spec,
        },
    }


def storage_class(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": EBS_DRIVER,
        **fields,
    }


def test_claims_are_read_of_the_namespaces_asked_for(world: World) -> None:
    world.apply(namespace("other"))
    world.apply(claim("b", storageClassName="fast"))
    world.apply(claim("a", volumeName="pv-1", accessModes=["ReadWriteMany"]))
    world.apply(claim("c", "other"))
    assert world.cluster.claims({"shop"}) == (
        Claim(namespace="shop", name="a", volume="pv-1", many_nodes=True, pending=True),
        Claim(namespace="shop", name="b", storage_class="fast", pending=True),
    )
    many = {f"n{number}" for number in range(20)} | {"other"}
    assert [other_claim.key for other_claim in world.cluster.claims(many)] == ["other/c"]
    assert world.cluster.claims(()) == ()


def test_volumes_are_read_by_name_or_when_they_are_free(world: World) -> None:
    taken = {"namespace": "shop", "name": "a"}
    for number in range(12):
        world.apply(volume(f"pv-{number}", claimRef=taken, storageClassName="disks"))
    world.apply(volume("free", storageClassName="disks"))
    (one,) = world.cluster.volumes({"pv-3", "gone"})
    assert (one.name, one.driver, one.terms, one.is_free) == ("pv-3", EBS_DRIVER, (IN_ZONE,), False)
    names = {f"pv-{number}" for number in range(11)}
    assert {other_volume.name for other_volume in world.cluster.volumes(names)} == names
    assert [other_volume.name for other_volume in world.cluster.volumes({"pv-3"}, {"disks"})] == [
        "free",
        "pv-3",
    ]
    assert world.cluster.volumes(()) == ()


def test_storage_classes_are_listed(world: World) -> None:
    topology = {"matchLabelExpressions": [{"key": keys.ZONE, "values": [ZONE]}]}
    waiting = {"volumeBindingMode": "WaitForFirstConsumer", "allowedTopologies": [topology]}
    world.apply(storage_class("slow", **waiting))
    world.apply(storage_class("fast", volumeBindingMode="Immediate"))
    fast, slow = world.cluster.storage_classes()
    assert (fast.name, fast.driver, fast.waits_for_first_consumer, fast.terms) == (
        "fast",
        EBS_DRIVER,
        False,
        (),
    )
    assert (slow.name, slow.waits_for_first_consumer, slow.terms) == ("slow", True, (IN_ZONE,))


def test_what_nodes_attach_and_can_attach_is_listed(world: World) -> None:
    for name, allocatable in (("n2", {"allocatable": {"count": 25}}), ("n1", {})):
        drivers = [{"name": EBS_DRIVER, "nodeID": f"i-{name}", "topologyKeys": [], **allocatable}]
        world.apply(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSINode",
                "metadata": {"name": name},
                "spec": {"drivers": drivers},
            }
        )
    assert world.cluster.attach_limits() == (
        CsiNodeLimits(node_name="n1"),
        CsiNodeLimits(node_name="n2", counts={EBS_DRIVER: 25}),
    )
    for name, node in (("va-2", "n2"), ("va-1", "n1")):
        world.apply(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "VolumeAttachment",
                "metadata": {"name": name},
                "spec": {
                    "attacher": EBS_DRIVER,
                    "nodeName": node,
                    "source": {"persistentVolumeName": f"pv-{node}"},
                },
            }
        )
    assert world.cluster.attached_volumes() == (
        VolumeAttachment(node_name="n1", driver=EBS_DRIVER, volume="pv-n1"),
        VolumeAttachment(node_name="n2", driver=EBS_DRIVER, volume="pv-n2"),
    )


def test_namespaces_have_their_labels(world: World) -> None:
    world.apply(namespace("team-a", tier="gold"))
    found = world.cluster.namespaces()
    assert found["team-a"] == {"tier": "gold", "kubernetes.io/metadata.name": "team-a"}
    assert list(found) == sorted(found)


def test_daemons_of_a_runtime_class_take_its_overhead(world: World) -> None:
    world.apply(
        {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": "kata"},
            "handler": "kata",
            "overhead": {"podFixed": {"cpu": "100m", "memory": "64Mi"}},
        }
    )
    template = {
        "metadata": {"labels": {"app": "d"}},
        "spec": {"runtimeClassName": "kata", "containers": pod("x")["spec"]["containers"]},
    }
    world.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"namespace": "shop", "name": "d"},
            "spec": {"selector": {"matchLabels": {"app": "d"}}, "template": template},
        }
    )
    (found,) = world.cluster.daemonsets()
    assert found.scheduling.requests == Resources.of(cpu=350, memory=64 * 2**20, pods=1)
    assert found.problem == ""
