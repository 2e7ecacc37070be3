"""The Cluster port: AWSNodeTemplates, read with the Provisioners that name them, and told."""

from typing import Any

import pytest

from infra.local.kube.server import EmbeddedKube
from shared.kube.api import KubeApi
from shared.kube.cluster import KubeCluster
from shared.kube.connection import connect_endpoint
from shared.kube.nodes import KubeNodes
from shared.kube.provisioners import PROVISIONERS_PATH
from shared.model import labels as keys
from shared.ports import FoundImage, Subnet, TemplateStatus
from tests.contract.kube.worlds import NOW, World, provisioner

ROCKET = "[settings.kubernetes]\nmax-pods = 9\n"
STATUS = TemplateStatus(
    subnets=(Subnet(subnet_id="subnet-1", zone="us-east-1a", free_addresses=0),),
    security_groups=("sg-1",),
    images=(FoundImage(image_id="ami-1", name="one", labels={keys.ARCH: "amd64"}),),
)


def template(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.k8s.aws/v1alpha1",
        "kind": "AWSNodeTemplate",
        "metadata": {"name": name},
        "spec": spec,
    }


def test_a_provisioner_is_read_with_the_template_it_names(world: World) -> None:
    world.apply(template("rocket", amiFamily="Bottlerocket", userData=ROCKET))
    world.apply(template("other", tags={"team": "red"}))
    world.apply(provisioner("a", providerRef={"name": "rocket"}))
    world.apply(provisioner("b"))
    (a, b), unusable = world.cluster.provisioners()
    assert unusable == ()
    assert (a.template.name, a.template.ami_family) == ("rocket", "Bottlerocket")
    assert (a.template.user_data, a.kubelet.max_pods) == (ROCKET, 9)
    assert (b.template.name, b.template.ami_family) == ("", "AL2023")


def test_a_provisioner_whose_template_is_missing_or_wrong_stops_no_other(world: World) -> None:
    world.apply(provisioner("good"))
    world.apply(provisioner("lost", providerRef={"name": "none"}))
    world.apply(provisioner("bad", providerRef={"name": "wrong"}))
    world.apply(template("wrong", userData="echo"))
    (good,), unusable = world.cluster.provisioners()
    assert good.name == "good"
    assert {
        invalid_provisioner.name: invalid_provisioner.reasons[0].partition(": ")[0]
        for invalid_provisioner in unusable
    } == {
        "bad": "AWSNodeTemplate wrong.spec.userData, line 1",
        "lost": "spec.providerRef.name",
    }
    world.apply(template("none"))
    usable, _ = world.cluster.provisioners()
    assert [other_provisioner.name for other_provisioner in usable] == ["good", "lost"]


def test_the_status_of_a_template_is_written_and_replaced(world: World) -> None:
    world.apply(template("a"))
    world.cluster.set_template_status("a", STATUS)
    world.cluster.set_template_status("a", STATUS)
    assert world.template_status("a") == STATUS
    lost = TemplateStatus(problems=("no subnet", "no group"))
    world.cluster.set_template_status("a", lost)
    assert world.template_status("a") == lost
    world.cluster.set_template_status("gone", STATUS)


@pytest.fixture
def bare() -> Any:
    """An API server that knows Provisioners, of a release that had no templates."""
    with EmbeddedKube() as kube:
        yield connect_endpoint(kube.url, "", lambda: "token")


def test_where_the_kind_is_not_installed_there_are_no_templates(bare: KubeApi) -> None:
    define_provisioners(bare)
    made = provisioner("a", providerRef={"name": "x"})
    assert bare.send("POST", PROVISIONERS_PATH, body=made).ok
    usable, unusable = KubeCluster("c1", bare, now=lambda: NOW).provisioners()
    assert usable == ()
    assert "there is no AWSNodeTemplate" in unusable[0].reasons[0]


def test_user_data_is_checked_only_where_instances_are_launched(bare: KubeApi) -> None:
    define_provisioners(bare)
    made = provisioner("a", provider={"userData": "echo"})
    assert bare.send("POST", PROVISIONERS_PATH, body=made).ok
    _, (unusable,) = KubeCluster("c1", bare, now=lambda: NOW).provisioners()
    assert "userData, line 1" in unusable.reasons[0]
    (usable,), _ = KubeNodes("c1", bare, now=lambda: NOW).provisioners()
    assert usable.name == "a"


def define_provisioners(bare: KubeApi) -> None:
    """Define Provisioners without the schema that checks them."""
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "provisioners.karpenter.sh"},
        "spec": {
            "group": "karpenter.sh",
            "scope": "Cluster",
            "names": {"kind": "Provisioner", "plural": "provisioners"},
            "versions": [
                {
                    "name": "v1alpha5",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "x-kubernetes-preserve-unknown-fields": True,
                        }
                    },
                }
            ],
        },
    }
    place = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert bare.send("POST", place, body=crd).ok
