import dataclasses
from typing import Any

import pytest

from functions.cli.doctor.findings import Finding
from functions.cli.doctor.prerequisite_ports import AccessEntry, SelectedResource, VcpuQuota
from functions.cli.doctor.prerequisites import Prerequisites
from shared.manifests.api.selector_map import selector_of
from shared.model.errors import CertificateError, UnauthorizedError
from shared.model.provisioner import NodeTemplate
from shared.model.values import replace
from shared.ports import Rival, RivalKind, Subnet
from tests.builders import provisioner
from tests.fakes.account import ATTACHMENT, ENTRIES, FakeAccount, FakeSurroundings


def look(account: FakeAccount, inside: FakeSurroundings | None = None) -> tuple[Finding, ...]:
    return Prerequisites("demo", account, lambda: inside or FakeSurroundings()).findings()


def only(account: FakeAccount, inside: FakeSurroundings | None = None) -> Finding:
    (found,) = look(account, inside)
    return found


BOTH_MODES = "authenticationMode=API_AND_CONFIG_MAP"
AGENT = "eks-pod-identity-agent"
SPOT_ROLE, FLEET_ROLE = "AWSServiceRoleForEC2Spot", "AWSServiceRoleForEC2Fleet"


@pytest.mark.parametrize("status", ["ACTIVE", "BUILT_IN", "CREATING", "UPDATING"])
def test_nothing_is_found_where_nothing_is_missing(status: str) -> None:
    assert look(FakeAccount(agent=status)) == ()


@pytest.mark.parametrize(
    ("missing", "kind", "subject", "text", "command"),
    [
        (
            {"mode": "CONFIG_MAP"}, "authentication-mode", "demo", "is CONFIG_MAP",
            f"aws eks update-cluster-config --name demo --access-config {BOTH_MODES}",
        ),
        (
            {"agent": ""}, "identity-agent", AGENT,
            "is missing: EKS Pod Identity gives the forwarder no credentials",
            f"aws eks create-addon --cluster-name demo --addon-name {AGENT}",
        ),
        (
            {"agent": "CREATE_FAILED"}, "identity-agent", AGENT, "is CREATE_FAILED",
            f"aws eks describe-addon --cluster-name demo --addon-name {AGENT}",
        ),
        (
            {"attached": None, "entries": ()}, "not-attached", "demo", "no stack attaches it",
            "npx cdk deploy --all -c clusters=demo -c max_price_per_hour=demo:<dollars>",
        ),
        (
            {"roles": {FLEET_ROLE}}, "service-linked-role", SPOT_ROLE, "is missing",
            "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com",
        ),
        (
            {"roles": {SPOT_ROLE}}, "service-linked-role", FLEET_ROLE, "is missing",
            "aws iam create-service-linked-role --aws-service-name ec2fleet.amazonaws.com",
        ),
    ],
)  # fmt: skip
def test_what_is_missing_is_found_with_what_to_run(
    missing: dict[str, Any], kind: str, subject: str, text: str, command: str
) -> None:
    found = only(FakeAccount(**missing))
    assert (found.kind, found.subject, found.command) == (kind, subject, command)
    assert text in found.text


def test_an_agent_from_its_helm_chart_is_no_finding() -> None:
    inside = FakeSurroundings(daemon_sets=("kube-system/eks-pod-identity-agent",))

    assert look(FakeAccount(agent=""), inside) == ()


def test_the_missing_agent_is_told_also_where_the_cluster_cannot_be_asked() -> None:
    def away() -> FakeSurroundings:
        raise UnauthorizedError("no")

    found = Prerequisites("demo", FakeAccount(agent=""), away).findings()

    assert "identity-agent" in {finding.kind for finding in found}


@pytest.mark.parametrize(
    ("missing", "ending"),
    [
        (ENTRIES[0], "role/Dovetail-demo-us-east-1-launch --kubernetes-groups dovetail:launch"),
        (
            ENTRIES[1],
            "role/Dovetail-demo-us-east-1-terminate --kubernetes-groups dovetail:terminate",
        ),
        (ENTRIES[2], "role/DovetailNode-demo-us-east-1 --type EC2_LINUX"),
        (ENTRIES[3], "role/Dovetail-demo-us-east-1-inside --kubernetes-groups dovetail:inside"),
    ],
)
def test_missing_access_entry_is_reported_with_the_command_that_creates_it(
    missing: AccessEntry, ending: str
) -> None:
    found = only(
        FakeAccount(
            entries=tuple(access_entry for access_entry in ENTRIES if access_entry != missing)
        )
    )

    assert found.kind == "access-entry"
    assert found.command.startswith("aws eks create-access-entry --cluster-name demo ")
    assert found.command.endswith(ending)


def test_entry_with_other_groups_gets_the_command_that_adds_dovetails() -> None:
    other = replace(ENTRIES[0], groups=("theirs",))
    found = only(FakeAccount(entries=(other, *ENTRIES[1:])))

    assert "groups theirs: group dovetail:launch is needed" in found.text
    assert found.command.endswith("--kubernetes-groups dovetail:launch theirs")
    assert "update-access-entry" in found.command


def test_a_node_entry_of_another_type_has_to_be_made_anew() -> None:
    other = replace(ENTRIES[2], kind="STANDARD", groups=())
    found = only(FakeAccount(entries=(*ENTRIES[:2], other, ENTRIES[3])))

    assert "of type STANDARD with groups none: EC2_LINUX is needed" in found.text
    first, second = found.command.split(" && ")
    assert first.startswith("aws eks delete-access-entry")
    assert second.endswith("--type EC2_LINUX")


def test_entries_that_would_stop_the_deployment_are_reported_before_it() -> None:
    foreign = AccessEntry(principal="arn:aws:iam::123456789012:role/admin", kind="STANDARD")
    found = look(FakeAccount(attached=None, entries=(*ENTRIES, foreign)))
    left = [finding for finding in found if finding.kind == "access-entry-left"]

    assert {finding.subject for finding in left} == {
        arn.rsplit("/", 1)[1]
        for arn in (
            ATTACHMENT.inside_role,
            ATTACHMENT.launch_role,
            ATTACHMENT.terminate_role,
            ATTACHMENT.node_role,
        )
    }
    assert all(finding.command.startswith("aws eks delete-access-entry ") for finding in left)


@pytest.mark.parametrize(("limit", "used", "asked"), [(5, 2, 256), (640, 600, 1280)])
def test_quota_with_no_room_for_a_large_machine_is_reported(
    limit: int, used: int, asked: int
) -> None:
    spot = VcpuQuota(code="L-34B43A08", name="spot", value=limit, used=used)
    found = only(FakeAccount(quotas=(spot,)))

    assert (found.kind, found.subject) == ("quota", "spot vCPUs")
    assert f"{used} of {limit} are in use" in found.text
    assert found.command.endswith(f"--quota-code L-34B43A08 --desired-value {asked}")


def test_account_in_which_few_functions_may_run_at_once_is_reported() -> None:
    found = only(FakeAccount(concurrency=10))

    assert (found.kind, found.subject) == ("quota", "Lambda concurrency")
    assert found.text.startswith("10 functions may run at once")
    assert found.command.endswith("--quota-code L-B99A9384 --desired-value 1000")
    assert look(FakeAccount(concurrency=481)) == ()


def test_untrusted_certificate_is_reported_with_the_command_that_shows_its_authority() -> None:
    def untrusted() -> FakeSurroundings:
        raise CertificateError("https://x: its certificate is not accepted")

    (found,) = Prerequisites("demo", FakeAccount(), untrusted).findings()

    assert (found.kind, found.subject) == ("certificate", "demo")
    assert "not accepted" in found.text
    assert found.command.startswith("aws eks describe-cluster --name demo --query cluster.cert")


def test_subnets_without_addresses_and_clusters_without_subnets_are_reported() -> None:
    small = Subnet(subnet_id="subnet-2", zone="us-east-1b", free_addresses=11)
    few = only(FakeAccount(subnets=(small,)))
    none = only(FakeAccount(subnets=()))

    assert (few.kind, few.subject) == ("subnet-addresses", "subnet-2")
    assert "11 free addresses in us-east-1b" in few.text
    assert "Key=kubernetes.io/cluster/demo,Value=shared" in none.command


def test_second_autoscaler_is_reported_with_the_command_that_stops_it() -> None:
    running = FakeSurroundings(
        rivals=(
            Rival(kind=RivalKind.KARPENTER, where="autoscaling/lease", holder="karpenter-7"),
            Rival(kind=RivalKind.CLUSTER_AUTOSCALER, where="kube-system/lease"),
        )
    )
    ours, theirs = look(FakeAccount(), running)

    assert ours.command == (
        "kubectl -n kube-system scale deployment cluster-autoscaler --replicas 0"
    )
    assert theirs.command == "kubectl -n autoscaling scale deployment karpenter --replicas 0"
    assert "held by karpenter-7" in theirs.text
    assert "held by" not in ours.text


def test_what_cannot_be_asked_is_a_finding_and_stops_no_other_question() -> None:
    def unreachable() -> FakeSurroundings:
        raise UnauthorizedError("no access\nto the cluster")

    refused = look(FakeAccount(refused=UnauthorizedError("no right")))
    alone, *others = Prerequisites("demo", FakeAccount(), unreachable).findings()

    assert {finding.kind for finding in refused} == {"not-checked"}
    assert [finding.subject for finding in refused] == [
        "access-entries",
        "authentication-mode",
        "concurrency",
        "identity-agent",
        "launch-rights",
        "node-role",
        "quotas",
        "service-linked-roles",
        "subnets",
    ]
    assert alone.subject == "autoscalers"
    assert alone.text == "no access to the cluster"
    assert alone.command.startswith("aws eks update-kubeconfig --name demo")
    assert [other.subject for other in others] == ["launch-rights", "node-role"]


UNTAGGED = "subnet-0payments"
FOUND = {
    "subnet-0own": {"kubernetes.io/cluster/demo": "shared"},
    "subnet-0found": {"karpenter.sh/discovery": "demo"},
    "subnet-0listed": {},
    UNTAGGED: {"Name": "payments"},
    "subnet-0other": {"karpenter.sh/discovery": "prod", "kubernetes.io/cluster/prod": "owned"},
    "sg-0a": {},
    "ami-0own": {"karpenter.sh/discovery": "demo"},
    "ami-0b": {},
}


def test_each_forbidden_subnet_group_and_image_is_reported_with_the_tag_to_add() -> None:
    listed = replace(ATTACHMENT, launch_resources=("arn:subnet-0listed",))
    account = FakeAccount(
        attached=listed,
        found={
            name: SelectedResource(name=name, arn=f"arn:{name}", tags=tags)
            for name, tags in FOUND.items()
        },
    )
    subnets = ",".join(name for name in FOUND if name.startswith("subnet-"))
    template = NodeTemplate(
        subnet_selector=selector_of({"aws-ids": subnets}),
        security_group_selector=selector_of({"aws-ids": "sg-0a"}),
        ami_selector=selector_of({"aws-ids": "ami-0b,ami-0own"}),
    )
    inside = FakeSurroundings(
        declared=(provisioner("one", template=template), provisioner("two", template=template))
    )

    told = look(account, inside)

    assert {finding.kind for finding in told} == {"launch-right"}
    assert [finding.subject for finding in told] == ["ami-0b", "sg-0a", "subnet-0other", UNTAGGED]
    assert "selected by Provisioner one, two" in told[0].text
    assert told[3].command == (
        f"aws ec2 create-tags --resources {UNTAGGED} --tags Key=karpenter.sh/discovery,Value=demo"
    )
    every = replace(listed, uses_own_images=True)
    left = look(dataclasses.replace(account, attached=every), inside)
    assert [finding.subject for finding in left] == ["sg-0a", "subnet-0other", UNTAGGED]
    assert {
        finding.subject for finding in look(dataclasses.replace(account, attached=None), inside)
    } >= {
        "subnet-0listed",
        UNTAGGED,
    }


def test_the_switch_of_the_network_plugin_is_refused_until_it_has_a_role_of_its_own() -> None:
    without = ("AmazonEKSWorkerNodePolicy",)
    refused = only(FakeAccount(policies=without))

    assert (refused.kind, refused.subject, refused.advice) == ("cni-role", "aws-node", False)
    assert "pods of new nodes get no address" in refused.text
    assert refused.command.endswith("-c cni_role=node")
    for account, inside in (
        (FakeAccount(plugin_role="arn:own"), FakeSurroundings()),
        (FakeAccount(), FakeSurroundings(annotated="arn:own")),
    ):
        allowed = only(account, inside)
        assert (allowed.kind, allowed.advice) == ("cni-role", True)
        assert allowed.command.endswith("-c cni_role=own")
        assert "(arn:own)" in allowed.text
        assert look(dataclasses.replace(account, policies=without), inside) == ()


def test_what_pods_reach_through_the_metadata_service_is_listed() -> None:
    reached = replace(ATTACHMENT, metadata_hop_limit=2)
    policies = ("AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "Mine")
    told = only(FakeAccount(attached=reached, policies=policies))

    assert told.advice
    assert (told.kind, told.subject) == ("metadata-reach", "DovetailNode-demo-us-east-1")
    assert "delete every network interface of the account (AmazonEKS_CNI_Policy)" in told.text
    assert "what it allows (Mine)" in told.text
    assert told.command.startswith("aws eks create-pod-identity-association --cluster-name demo")
    own = FakeAccount(attached=reached, policies=policies[:1], plugin_role="arn:own")
    assert only(own).command.endswith("-c metadata_hop_limit=1")
