"""What a launch may use is the cluster's own or listed; how a machine is made is bounded."""

from collections.abc import Mapping

import pytest

from tests.infra.policies import asked
from tests.infra.policies.evaluation import Ask
from tests.infra.policies.granted import Grants
from tests.infra.templates import Template, cluster_stack, synthesized

EC2 = f"arn:aws:ec2:{asked.REGION}:{asked.ACCOUNT}:"
LISTED = f"{EC2}subnet/subnet-0listed"
PARAMETER = f"arn:aws:ssm:{asked.REGION}:{asked.ACCOUNT}:parameter/golden/al2023"
INTERFACE = f"{EC2}network-interface/eni-0a"
ACTIONS = ("ec2:CreateFleet", "ec2:RunInstances")
IN_FLEET = (
    f"{EC2}subnet/subnet-0a",
    f"{EC2}placement-group/close",
    f"{EC2}capacity-reservation/cr-0a",
)
IN_MACHINE = (
    f"{EC2}security-group/sg-0a",
    f"arn:aws:ec2:{asked.REGION}::snapshot/snap-0a",
    f"{EC2}key-pair/operators",
)
USED = [
    *[("ec2:CreateFleet", resource) for resource in IN_FLEET],
    *[("ec2:RunInstances", resource) for resource in (*IN_FLEET, *IN_MACHINE)],
]
OWN = (
    {"aws:ResourceTag/kubernetes.io/cluster/prod": "shared"},
    {"aws:ResourceTag/kubernetes.io/cluster/prod": "owned"},
    {"aws:ResourceTag/karpenter.sh/discovery": "prod"},
)
FOREIGN: tuple[Mapping[str, str], ...] = (
    {},
    {"aws:ResourceTag/Name": "prod"},
    {"aws:ResourceTag/kubernetes.io/cluster/staging": "owned"},
    {"aws:ResourceTag/kubernetes.io/cluster/prod-2": "owned"},
    {"aws:ResourceTag/karpenter.sh/discovery": "staging"},
    {"aws:ResourceTag/karpenter.sh/discovery": "*"},
    {"aws:ResourceTag/karpenter.sh/discovery/prod": "prod"},
)


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> Grants:
    """Two clusters, one of which may use a subnet without tags; metadata is left open."""
    folder = synthesized(
        tmp_path_factory,
        "bounds",
        clusters="prod,staging",
        max_price_per_hour="prod:none,staging:none",
        launch_resources=f"prod:{LISTED},prod:{INTERFACE}",
        image_parameters=f"prod:{PARAMETER}",
        image_owners="999999999999",
        own_images="all",
        metadata_tokens="optional",
        metadata_hop_limit="1",
    )
    return Grants(
        {n: Template(folder / f"{cluster_stack(n)}.template.json") for n in ("prod", "staging")}
    )


@pytest.fixture(scope="module")
def usual(clusters: Mapping[str, Template]) -> Grants:
    return Grants({"prod": clusters["prod"]})


def ask(action: str, resource: str, context: Mapping[str, str], cluster: str = "prod") -> Ask:
    role = asked.cluster_role(cluster, "launch")
    return Ask(principal=role, action=action, resource=resource, context=context)


@pytest.mark.parametrize("tags", OWN, ids=str)
@pytest.mark.parametrize(("action", "resource"), USED)
def test_a_launch_uses_what_carries_a_tag_of_the_cluster(
    usual: Grants, action: str, resource: str, tags: Mapping[str, str]
) -> None:
    assert usual.allows(ask(action, resource, tags))


@pytest.mark.parametrize("tags", FOREIGN, ids=str)
@pytest.mark.parametrize(("action", "resource"), USED)
def test_a_launch_uses_nothing_that_carries_no_tag_of_the_cluster(
    usual: Grants, action: str, resource: str, tags: Mapping[str, str]
) -> None:
    assert not usual.allows(ask(action, resource, tags))


@pytest.mark.parametrize("action", ACTIONS)
def test_what_is_listed_for_a_cluster_is_used_by_this_cluster_alone(
    chosen: Grants, action: str
) -> None:
    assert chosen.allows(ask(action, LISTED, {}))
    assert not chosen.allows(ask(action, LISTED.replace("0listed", "0other"), {}))
    assert not chosen.allows(ask(action, LISTED, {}, "staging"))


def test_an_interface_that_is_there_is_used_only_where_it_is_listed(
    chosen: Grants, usual: Grants
) -> None:
    """EC2's check of a launch knows no tags of an interface."""
    for tags in OWN:
        assert not usual.allows(ask("ec2:RunInstances", INTERFACE, tags))
    assert chosen.allows(ask("ec2:RunInstances", INTERFACE, {}))
    assert not chosen.allows(ask("ec2:CreateFleet", INTERFACE, {}))


def test_an_image_is_found_by_a_parameter_that_is_listed_for_the_cluster_alone(
    chosen: Grants, usual: Grants
) -> None:
    asks = "ssm:GetParameters"
    public = f"arn:aws:ssm:{asked.REGION}::parameter/aws/service/eks/optimized-ami/1.33/image_id"

    for grants in (chosen, usual):
        assert grants.allows(ask(asks, public, {}))
    assert chosen.allows(ask(asks, PARAMETER, {}))
    assert not chosen.allows(ask(asks, f"{PARAMETER}/password", {}))
    assert not chosen.allows(ask("ssm:PutParameter", PARAMETER, {}))
    assert not chosen.allows(ask(asks, PARAMETER, {}, "staging"))
    assert not usual.allows(ask(asks, PARAMETER, {}))


def test_snapshots_of_trusted_owners_are_used_without_a_tag_and_own_ones_are_not(
    chosen: Grants,
) -> None:
    action = "ec2:RunInstances"
    snapshot = f"arn:aws:ec2:{asked.REGION}::snapshot/snap-0database"

    for owner in ("amazon", "999999999999"):
        assert chosen.allows(ask(action, snapshot, {"ec2:Owner": owner}))
    for stranger in (asked.ACCOUNT, "888888888888", "aws-marketplace"):
        assert not chosen.allows(ask(action, snapshot, {"ec2:Owner": stranger}))


IMAGE = f"arn:aws:ec2:{asked.REGION}::image/ami-0backup"


@pytest.mark.parametrize("tags", [*OWN, *FOREIGN], ids=str)
def test_an_image_of_the_account_is_launched_if_it_carries_a_tag_of_the_cluster(
    usual: Grants, tags: Mapping[str, str]
) -> None:
    context = {"ec2:Owner": asked.ACCOUNT, **tags}
    assert usual.allows(ask("ec2:RunInstances", IMAGE, context)) == (tags in OWN)
    # Anybody may give such a tag to an image of their own and share it.
    shared = {**context, "ec2:Owner": "888888888888"}
    assert not usual.allows(ask("ec2:RunInstances", IMAGE, shared))


def test_every_image_of_the_account_may_be_a_choice_and_trusted_owners_need_no_tag(
    chosen: Grants,
) -> None:
    for owner in ("amazon", "999999999999", asked.ACCOUNT):
        assert chosen.allows(ask("ec2:RunInstances", IMAGE, {"ec2:Owner": owner}))
    assert not chosen.allows(ask("ec2:RunInstances", IMAGE, {"ec2:Owner": "888888888888"}))


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        ("ec2:RunInstances", "network-interface"),
        ("ec2:RunInstances", "volume"),
        ("ec2:CreateFleet", "volume"),
    ],
)
def test_interfaces_and_volumes_are_made_with_the_tags_of_the_cluster_only(
    usual: Grants, action: str, kind: str
) -> None:
    assert usual.allows(ask(action, f"{EC2}{kind}/*", asked.made_with("prod")))
    assert not usual.allows(ask(action, f"{EC2}{kind}/*", asked.made_with("staging")))
    assert not usual.allows(ask(action, f"{EC2}{kind}/*", {}))


def test_machines_answer_requests_for_metadata_with_a_token_within_two_hops_only(
    usual: Grants,
) -> None:
    def may(**changed: str) -> bool:
        context = {**asked.launched_with("prod"), **changed}
        kept = {key: value for key, value in context.items() if value}
        return usual.allows(ask("ec2:RunInstances", f"{EC2}instance/*", kept))

    assert may()
    assert may(**{"ec2:MetadataHttpPutResponseHopLimit": "1"})
    assert not may(**{"ec2:MetadataHttpPutResponseHopLimit": "3"})
    assert not may(**{"ec2:MetadataHttpPutResponseHopLimit": ""})
    assert not may(**{"ec2:MetadataHttpTokens": "optional"})
    assert not may(**{"ec2:MetadataHttpTokens": ""})


def test_the_bounds_of_metadata_are_a_choice_of_the_deployment(chosen: Grants) -> None:
    def may(hops: str, tokens: str) -> bool:
        context = {
            **asked.launched_with("prod"),
            "ec2:MetadataHttpPutResponseHopLimit": hops,
            "ec2:MetadataHttpTokens": tokens,
        }
        return chosen.allows(ask("ec2:RunInstances", f"{EC2}instance/*", context))

    assert may("1", "optional")
    assert not may("2", "required")
