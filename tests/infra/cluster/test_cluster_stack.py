import json
from collections.abc import Mapping

import pytest
from aws_cdk import App, Stack

from infra.aws import names
from infra.aws.functions import ClusterRoleKind
from shared.model.codec import from_json
from shared.settings import ClusterAttachment, ClusterBrakes
from tests.infra.policies import asked
from tests.infra.templates import CEILINGS, Template


def test_the_attachment_can_be_read_by_the_functions(clusters: Mapping[str, Template]) -> None:
    for name, template in clusters.items():
        (parameter,) = template.of("AWS::SSM::Parameter")
        attachment = from_json(ClusterAttachment, parameter.properties["Value"])

        assert parameter.properties["Name"] == f"/dovetail/clusters/{name}"
        # A list of resources for launches can make it longer than a standard parameter may be.
        assert parameter.properties["Tier"] == "Intelligent-Tiering"
        written = set(json.loads(parameter.properties["Value"]))
        # The role of migrations is made for their time alone.
        assert written == set(ClusterAttachment.__struct_fields__) - {"migrate_role"}
        assert attachment.brakes == ClusterBrakes(max_price_per_hour=CEILINGS[name])
        assert (attachment.metadata_tokens, attachment.metadata_hop_limit) == ("required", 2)
        assert attachment.preference_policy == "Weigh"
        assert attachment.name == name
        assert attachment.launch_role.endswith(f"-{name}-eu-west-1-launch")
        assert attachment.inside_role.endswith(f"-{name}-eu-west-1-inside")
        assert attachment.terminate_role.endswith(f"-{name}-eu-west-1-terminate")
        (profile,) = template.of("AWS::IAM::InstanceProfile")
        assert attachment.instance_profile == profile.properties["InstanceProfileName"]
        own = profile.properties["InstanceProfileName"]
        assert attachment.node_profiles == {own: own}


def test_each_role_that_calls_the_cluster_has_an_entry_of_its_own(
    clusters: Mapping[str, Template],
) -> None:
    for name, template in clusters.items():
        entries = {
            resource.properties["PrincipalArn"].rsplit("/", 1)[1]: resource.properties
            for resource in template.of("AWS::EKS::AccessEntry")
        }
        launch = entries.pop(f"Dovetail-{name}-eu-west-1-launch")
        inside = entries.pop(f"Dovetail-{name}-eu-west-1-inside")
        terminate = entries.pop(f"Dovetail-{name}-eu-west-1-terminate")
        (node,) = entries.values()

        assert inside["KubernetesGroups"] == ["dovetail:inside"]
        assert launch["KubernetesGroups"] == ["dovetail:launch"]
        assert terminate["KubernetesGroups"] == ["dovetail:terminate"]
        assert node["Type"] == "EC2_LINUX"
        assert "KubernetesGroups" not in node
        assert {entry["ClusterName"] for entry in (launch, terminate, node)} == {name}


def test_the_forwarder_has_an_identity_for_its_service_account(
    clusters: Mapping[str, Template],
) -> None:
    (association,) = clusters["demo"].of("AWS::EKS::PodIdentityAssociation")

    assert association.properties["Namespace"] == "dovetail"
    assert association.properties["ServiceAccount"] == "dovetail-forwarder"
    assert association.properties["ClusterName"] == "demo"


def test_the_forwarder_s_role_trusts_the_cluster_of_this_region_alone(
    clusters: Mapping[str, Template],
) -> None:
    (role,) = [
        resource
        for resource in clusters["demo"].of("AWS::IAM::Role")
        if "pods.eks.amazonaws.com" in json.dumps(resource.properties["AssumeRolePolicyDocument"])
    ]
    for statement in role.properties["AssumeRolePolicyDocument"]["Statement"]:
        arn = statement["Condition"]["StringEquals"]["aws:RequestTag/eks-cluster-arn"]
        assert arn == f"arn:aws:eks:{asked.REGION}:{asked.ACCOUNT}:cluster/demo"


def test_a_cluster_is_attached_after_the_control_plane(
    assembly: object, clusters: Mapping[str, Template]
) -> None:
    manifest = json.loads((clusters["demo"].path.parent / "manifest.json").read_text())

    needed = manifest["artifacts"]["DovetailCluster-demo"]["dependencies"]
    assert "DovetailControlPlane" in needed
    assert not [text for text in map(str, clusters["demo"].raw.values()) if "ImportValue" in text]


@pytest.mark.parametrize("length", [1, 30, 31, 100])
def test_role_names_fit_iam_in_the_region_with_the_longest_name(length: int) -> None:
    cluster = "c" * length
    stack = Stack(App(), "S")
    for right in ClusterRoleKind:
        name = stack.resolve(names.cluster_role_name(cluster, right))
        parts = [
            "ap-northeast-1" if isinstance(entry, dict) else entry for entry in name["Fn::Join"][1]
        ]
        assert len("".join(parts)) <= 64


def test_long_names_that_begin_alike_stay_apart() -> None:
    one, other = "c" * 40 + "-a", "c" * 40 + "-b"

    assert names.node_role_name(one) != names.node_role_name(other)
