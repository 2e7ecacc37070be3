"""The Cluster port: NodePools, read with the EC2NodeClasses that they name, and their status."""

from typing import Any

import pytest

from infra.local.kube.server import EmbeddedKube
from shared.kube.cluster import KubeCluster
from shared.kube.connection import connect_endpoint
from shared.model import labels as keys
from shared.model.dialect import OwnerKind
from shared.model.errors import NotInstalledError
from shared.model.resources import Resources
from shared.model.values import replace
from shared.ports import ConditionType, FoundImage, PoolStatus, Subnet, TemplateStatus
from tests.contract.kube.worlds import (
    NOW,
    PLACES,
    OverHttp,
    World,
    node_class,
    node_pool,
    provisioner,
)

POOL = OwnerKind.NODE_POOL
FOUND = TemplateStatus(
    subnets=(
        Subnet(subnet_id="subnet-1", zone="us-east-1a", free_addresses=0, zone_id="use1-az1"),
    ),
    security_groups=("sg-1",),
    instance_profile="nodes",
)


def test_pools_are_read_beside_provisioners(world: World) -> None:
    world.apply(node_class(tags={"team": "red"}))
    world.apply(node_pool("b"))
    world.apply(provisioner("a"))
    world.apply(provisioner("c"))
    usable, unusable = world.cluster.provisioners()
    assert unusable == ()
    assert [(owner.kind, owner.name) for owner in usable] == [
        ("Provisioner", "a"),
        ("NodePool", "b"),
        ("Provisioner", "c"),
    ]
    assert (usable[1].template.name, usable[1].template.tags) == ("nodes", {"team": "red"})
    assert usable[1].uid


def test_a_pool_of_another_provider_is_left_alone_without_a_word(world: World) -> None:
    foreign = {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"}
    world.apply(node_pool("auto", nodeClassRef=foreign))
    assert world.cluster.provisioners() == ((), ())


def test_a_wrong_pool_stops_no_other(world: World) -> None:
    world.apply(node_class())
    world.apply(node_class("wrong", userData="[oh"))
    world.apply(node_pool("good"))
    world.apply(node_pool("lost", "none"))
    world.apply(node_pool("bad", "wrong"))
    world.apply(node_pool("taken"))
    world.apply(provisioner("taken"))
    usable, unusable = world.cluster.provisioners()
    assert [owner.name for owner in usable] == ["good", "taken"]
    assert usable[1].kind == OwnerKind.PROVISIONER
    assert {(found.kind, found.name): found.reasons[0].partition(":")[0] for found in unusable} == {
        (POOL, "bad"): "EC2NodeClass wrong.spec.userData, line 1",
        (POOL, "lost"): "spec.template.spec.nodeClassRef.name",
        (POOL, "taken"): "metadata.name",
    }


def test_conditions_of_a_pool_are_its_own(world: World) -> None:
    world.apply(node_class())
    world.apply(node_pool("pool"))
    world.apply(provisioner("other"))
    world.cluster.set_provisioner_condition(
        "pool", active=True, reason="Ready", message="yes", owner=POOL
    )
    assert world.pool_condition("pool") == (True, "Ready", "yes")
    assert world.condition("other") is None
    world.cluster.set_provisioner_condition(
        "other", active=True, reason="Ready", message="", owner=POOL
    )
    assert world.condition("other") is None


def test_the_status_of_a_class_is_written_and_replaced(world: World) -> None:
    world.apply(node_class())
    for status in (FOUND, FOUND, TemplateStatus(problems=("no subnet", "no group"))):
        world.cluster.set_template_status("nodes", status, POOL)
        assert world.template_status("nodes", of_pool=True) == status
    world.cluster.set_template_status("gone", FOUND, POOL)


@pytest.fixture
def real() -> Any:
    with EmbeddedKube() as kube:
        yield OverHttp(kube.url)


def conditions(real: OverHttp, kind: str, name: str) -> dict[str, tuple[str, str]]:
    raw = real.api.get(f"{PLACES[kind]}/{name}")
    found = raw["status"]["conditions"]
    assert {entry["observedGeneration"] for entry in found} == {raw["metadata"]["generation"]}
    return {entry["type"]: (entry["status"], entry["reason"]) for entry in found}


def test_ready_of_a_pool_has_the_parts_that_users_of_karpenter_know(real: OverHttp) -> None:
    real.apply(node_class())
    real.apply(node_pool("pool"))

    def said(reason: str) -> dict[str, tuple[str, str]]:
        real.cluster.set_provisioner_condition(
            "pool", active=reason == "Ready", reason=reason, message="why", owner=POOL
        )
        return conditions(real, "NodePool", "pool")

    assert said("Ready") == {
        "Ready": ("True", "Ready"),
        "ValidationSucceeded": ("True", "ValidationSucceeded"),
        "NodeClassReady": ("True", "NodeClassReady"),
    }
    assert said("NodePoolValidationFailed") == {
        "Ready": ("False", "NodePoolValidationFailed"),
        "ValidationSucceeded": ("False", "NodePoolValidationFailed"),
        "NodeClassReady": ("Unknown", "NodeClassReadinessUnknown"),
    }
    assert said("NodeClassNotReady")["NodeClassReady"] == ("False", "NodeClassNotReady")
    assert said("Paused")["ValidationSucceeded"] == ("True", "ValidationSucceeded")
    before = real.api.get(f"{PLACES['NodePool']}/pool")
    said("Paused")
    assert real.api.get(f"{PLACES['NodePool']}/pool") == before
    real.cluster.set_provisioner_condition(
        "pool", active=True, reason="x", message="", kind=ConditionType.WITHIN_CEILING, owner=POOL
    )
    assert conditions(real, "NodePool", "pool")["WithinCeiling"] == ("True", "x")


def test_status_of_a_pool_says_what_its_nodes_have_together(real: OverHttp) -> None:
    real.apply(node_class())
    real.apply(node_pool("pool"))

    def said(status: PoolStatus) -> tuple[dict[str, Any], tuple[str, str]]:
        real.cluster.set_pool_status("pool", status)
        raw = real.api.get(f"{PLACES['NodePool']}/pool")
        told = conditions(real, "NodePool", "pool")["NodeRegistrationHealthy"]
        return {key: raw["status"][key] for key in ("nodes", "resources")}, told

    nothing = {"cpu": "0", "ephemeral-storage": "0", "memory": "0", "pods": "0", "nodes": "0"}
    assert said(PoolStatus(nodes=0, resources=Resources())) == (
        {"nodes": 0, "resources": nothing},
        ("Unknown", "AwaitingRegistration"),
    )
    some = Resources.of(cpu=4000, memory=2**33) + Resources((("nvidia.com/gpu", 1),))
    found, told = said(PoolStatus(nodes=2, resources=some, registers=True))
    assert found["nodes"] == 2
    assert found["resources"] == {
        **nothing,
        "cpu": "4",
        "memory": "8Gi",
        "nodes": "2",
        "nvidia.com/gpu": "1",
    }
    assert told == ("True", "NodeRegistrationHealthy")
    found, told = said(PoolStatus(nodes=0, resources=Resources(), registers=False))
    assert (found["resources"], told) == (nothing, ("False", "RegistrationFailed"))
    before = real.api.get(f"{PLACES['NodePool']}/pool")
    said(PoolStatus(nodes=0, resources=Resources(), registers=False))
    assert real.api.get(f"{PLACES['NodePool']}/pool") == before
    real.cluster.set_pool_status("gone", PoolStatus(nodes=0, resources=Resources()))


def test_status_of_a_provisioner_says_what_its_nodes_cost(real: OverHttp) -> None:
    real.apply(provisioner("default"))
    some = PoolStatus(nodes=2, resources=Resources.of(cpu=4000), price_micros_per_hour=192_000)

    def said(status: PoolStatus) -> Any:
        real.cluster.set_pool_status("default", status, OwnerKind.PROVISIONER)
        return real.api.get(f"{PLACES['Provisioner']}/default")

    told = said(some)
    assert (told["status"]["nodes"], told["status"]["dollarsPerHour"]) == (2, "0.1920")
    assert told["status"]["resources"]["cpu"] == "4"
    assert "conditions" not in told["status"]
    assert said(some) == told


@pytest.mark.parametrize(
    ("owner", "kind"), [("pool", OwnerKind.NODE_POOL), ("default", OwnerKind.PROVISIONER)]
)
def test_status_says_which_nodes_are_not_ready_for_long_and_that_they_are_again(
    owner: str, kind: OwnerKind, real: OverHttp
) -> None:
    real.apply(node_class())
    real.apply(node_pool("pool"))
    real.apply(provisioner("default"))

    def said(unhealthy: str) -> list[tuple[str, str, str]]:
        status = PoolStatus(nodes=2, resources=Resources(), unhealthy=unhealthy)
        real.cluster.set_pool_status(owner, status, kind)
        found = real.api.get(f"{PLACES[kind.value]}/{owner}")["status"].get("conditions", [])
        return [
            (entry["status"], entry["reason"], entry["message"])
            for entry in found
            if entry["type"] == "NodesHealthy"
        ]

    text = "NotReady for more than 5 min: n1; see their Events"
    assert said("") == []
    assert said("n1") == [("False", "NodesNotReady", text)]
    before = real.api.get(f"{PLACES[kind.value]}/{owner}")
    assert said("n1") == [("False", "NodesNotReady", text)]
    assert real.api.get(f"{PLACES[kind.value]}/{owner}") == before
    assert said("") == [("True", "NodesHealthy", "")]


def test_classes_are_read_whether_or_not_a_pool_names_them(world: World) -> None:
    world.apply(node_class("b", tags={"team": "red"}))
    world.apply(node_class("a", userData="[oh"))
    wrong, right = world.cluster.node_classes()
    assert (right.name, right.template.tags, right.problems) == ("b", {"team": "red"}, ())
    assert wrong.name == "a"
    assert wrong.problems[0].startswith("EC2NodeClass a.spec.userData")


def test_ready_of_a_class_has_the_parts_that_users_of_karpenter_know(real: OverHttp) -> None:
    real.apply(node_class())

    def said(status: TemplateStatus) -> dict[str, tuple[str, str]]:
        real.cluster.set_template_status("nodes", status, POOL)
        return conditions(real, "EC2NodeClass", "nodes")

    assert said(FOUND) == {
        "Ready": ("True", "Resolved"),
        "ValidationSucceeded": ("True", "ValidationSucceeded"),
        "SubnetsReady": ("True", "SubnetsReady"),
        "SecurityGroupsReady": ("True", "SecurityGroupsReady"),
        "AMIsReady": ("True", "AMIsReady"),
        "InstanceProfileReady": ("True", "InstanceProfileReady"),
    }
    none = TemplateStatus(security_groups=("sg-1",), problems=("subnetSelectorTerms finds none",))
    assert said(none) == {
        "Ready": ("False", "NotResolved"),
        "ValidationSucceeded": ("False", "DependenciesNotReady"),
        "SubnetsReady": ("False", "SubnetsNotFound"),
        "SecurityGroupsReady": ("True", "SecurityGroupsReady"),
        "AMIsReady": ("False", "AMINotFound"),
        "InstanceProfileReady": ("False", "InstanceProfileNotFound"),
    }
    ended = replace(none, unsupported_alias=True)
    assert said(ended)["AMIsReady"] == ("False", "UnsupportedAlias")
    wrong = TemplateStatus(problems=("spec.role: wrong",), invalid=True)
    assert said(wrong)["ValidationSucceeded"] == ("False", "ValidationFailed")


def test_images_are_shown_with_their_accelerators_and_those_deprecated_so(real: OverHttp) -> None:
    real.apply(node_class())
    plain = FoundImage(image_id="ami-1", name="one", labels={keys.ARCH: "amd64"})
    image = replace(plain, lacks=(keys.INSTANCE_GPU_COUNT, keys.INSTANCE_ACCELERATOR_COUNT))
    old = replace(plain, image_id="ami-2", deprecated=True, has=(keys.INSTANCE_GPU_COUNT,))
    status = replace(FOUND, images=(image, old))
    real.cluster.set_template_status("nodes", status, POOL)
    shown = real.template_status("nodes", of_pool=True)
    assert shown is not None
    assert shown.images == (image, old)


def test_a_cluster_may_define_one_of_the_kinds_or_none() -> None:
    with EmbeddedKube() as kube:
        api = connect_endpoint(kube.url, "", lambda: "token")
        with pytest.raises(NotInstalledError, match="Provisioners and NodePools are not defined"):
            KubeCluster("c1", api, now=lambda: NOW).provisioners()
    with EmbeddedKube() as kube:
        only = OverHttp(kube.url)
        for plural in ("provisioners.karpenter.sh", "awsnodetemplates.karpenter.k8s.aws"):
            assert only.api.send("DELETE", f"{PLACES['CustomResourceDefinition']}/{plural}").ok
        only.apply(node_class())
        only.apply(node_pool("pool"))
        assert [owner.name for owner in only.cluster.provisioners()[0]] == ["pool"]
