"""`dovetail doctor --prerequisites` on the embedded AWS API, before and after the deployment."""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from functions.cli.doctor.aws_prerequisites import AwsAccount
from functions.cli.doctor.doctor_command import mount_doctor
from infra.local.aws.embedded import EmbeddedAws
from infra.local.aws.templates.assembly import read_assembly
from infra.local.aws.templates.deploy import deploy
from shared.aws.clusters import ClusterRegistry
from shared.aws.session import Session
from shared.manifests.api.selector_map import selector_of
from shared.model.provisioner import NodeTemplate
from shared.runtime.system import SystemClock
from tests.infra.templates import CONTROL_PLANE, cluster_stack
from tools import deploy_local

CLUSTER = "demo"


Findings = Mapping[str, Sequence[Mapping[str, Any]]]


class Deployed(NamedTuple):
    """An account in which a cluster runs, and what was found before and after the deployment."""

    aws: EmbeddedAws
    before: Findings
    after: Findings


@pytest.fixture(scope="module")
def deployed(assembly: Path) -> Iterator[Deployed]:
    """Return the account; tests leave it as it was."""
    with EmbeddedAws() as server, pytest.MonkeyPatch.context() as patch:
        server.control("seed", deploy_local.seeds(read_assembly(assembly)))
        for name in ("AWS_PROFILE", "AWS_CONFIG_FILE", "AWS_REGION"):
            patch.delenv(name, raising=False)
        for name, value in server.access.environment.items():
            patch.setenv(name, value)
        before = findings()
        deploy(assembly, server.access, (CONTROL_PLANE, cluster_stack(CLUSTER)))
        yield Deployed(server, before, findings())


@pytest.fixture
def here(deployed: Deployed) -> EmbeddedAws:
    return deployed.aws


def findings() -> Findings:
    """Run the command as a user does; return what it finds, by kind."""
    parser = argparse.ArgumentParser()
    mount_doctor(parser.add_subparsers())
    command = ["doctor", "--prerequisites", "--cluster", CLUSTER, "--output", "json"]
    parsed = parser.parse_args(command)
    with redirect_stdout(StringIO()) as said:
        parsed.run(parsed)
    (found,) = json.loads(said.getvalue())
    kinds: dict[str, list[dict[str, Any]]] = {}
    for finding in found["findings"]:
        kinds.setdefault(finding["kind"], []).append(finding)
    return kinds


def test_each_step_of_a_deployment_takes_a_finding_away(deployed: Deployed) -> None:
    before, after = deployed.before, deployed.after
    assert "not-attached" in before
    # refresh_catalog makes them once it is deployed.
    assert not set(before) & {"authentication-mode", "service-linked-role"}
    assert not set(after) & {"not-attached", "access-entry"}
    # The embedded API knows no quotas, and there is no cluster behind its endpoint.
    unknown = {"quotas", "concurrency", "autoscalers", "launch-rights", "node-role"}
    assert {entry["subject"] for entry in after.get("not-checked", ())} <= unknown


def test_a_lost_agent_is_found_and_the_command_that_is_printed_brings_it_back(
    here: EmbeddedAws,
) -> None:
    eks = here.client("eks")
    assert "identity-agent" not in findings()
    eks.delete_addon(clusterName=CLUSTER, addonName="eks-pod-identity-agent")
    (found,) = findings()["identity-agent"]
    words = found["command"].split()
    assert words[:3] == ["aws", "eks", "create-addon"]
    given = dict(zip(words[3::2], words[4::2], strict=True))
    eks.create_addon(clusterName=given["--cluster-name"], addonName=given["--addon-name"])
    assert "identity-agent" not in findings()


def test_a_lost_access_entry_is_found_and_the_command_that_is_printed_makes_it_again(
    here: EmbeddedAws,
) -> None:
    eks = here.client("eks")
    account = _account()
    attachment = account.attachment()
    assert attachment is not None
    roles = (
        attachment.inside_role,
        attachment.launch_role,
        attachment.terminate_role,
        attachment.node_role,
    )
    for arn in roles:
        eks.delete_access_entry(clusterName=CLUSTER, principalArn=arn)
    found = findings()["access-entry"]
    assert {entry["subject"] for entry in found} == {arn.rsplit("/", 1)[1] for arn in roles}
    for entry in found:
        eks.create_access_entry(**_arguments(entry["command"]))
    assert "access-entry" not in findings()
    kinds = {
        access_entry.principal: (access_entry.kind, access_entry.groups)
        for access_entry in account.access_entries()
    }
    assert kinds[attachment.node_role][0] == "EC2_LINUX"
    assert kinds[attachment.launch_role] == ("STANDARD", ("dovetail:launch",))


def test_what_selectors_find_and_what_the_node_role_has_is_read(
    here: EmbeddedAws,
) -> None:
    account = _account()
    tagged = {f"kubernetes.io/cluster/{CLUSTER}": "*"}
    both = NodeTemplate(
        subnet_selector=selector_of(tagged), security_group_selector=selector_of(tagged)
    )
    attachment = account.attachment()

    found = account.selected(both)

    assert {selected.name.split("-")[0] for selected in found} == {"sg", "subnet"}
    assert all(f"kubernetes.io/cluster/{CLUSTER}" in selected.tags for selected in found)
    assert all(selected.arn.endswith(f"/{selected.name}") for selected in found if selected.arn)
    assert [
        selected for selected in found if selected.name.startswith("subnet-") and not selected.arn
    ] == []
    assert account.selected(NodeTemplate()) == ()
    assert attachment is not None
    assert attachment.metadata_hop_limit == 2
    iam = here.client("iam")
    # The embedded API holds no policies of AWS.
    look = {"Effect": "Allow", "Action": "ec2:DescribeInstances", "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [look]})
    policy = iam.create_policy(PolicyName="Mine", PolicyDocument=document)["Policy"]["Arn"]
    iam.attach_role_policy(RoleName=attachment.node_role.rsplit("/", 1)[1], PolicyArn=policy)
    assert account.node_policies(attachment.node_role) == ("Mine",)


def test_vcpus_in_use_are_counted_by_way_of_buying_and_family(
    here: EmbeddedAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        ("m5.large", None, 1, 2),
        ("c7g.xlarge", "spot", 4, 1),
        ("inf2.xlarge", "spot", 2, 2),
        ("g5.xlarge", None, 2, 2),
        ("im4gn.large", None, 2, 1),
    ]
    reservation = {
        "Instances": [
            {
                "InstanceType": kind,
                "CpuOptions": {"CoreCount": cores, "ThreadsPerCore": threads},
                **({"InstanceLifecycle": way} if way else {}),
            }
            for kind, way, cores, threads in rows
        ]
    }
    account = _account()
    monkeypatch.setattr(account, "_pages", lambda *_, **__: iter([reservation]))
    monkeypatch.setattr(account, "_quota_value", {"L-1216C47A": 640, "L-34B43A08": 64}.__getitem__)

    assert [
        (vcpu_quota.name, vcpu_quota.value, vcpu_quota.used) for vcpu_quota in account.vcpu_quotas()
    ] == [
        ("on-demand", 640, 4),
        ("spot", 64, 4),
    ]


def _account() -> AwsAccount:
    session = Session(region="us-east-1")
    registry = ClusterRegistry(session, path="/dovetail/clusters", clock=SystemClock())
    return AwsAccount(session, cluster=CLUSTER, attached=registry.one)


def _arguments(command: str) -> dict[str, Any]:
    """Return the arguments of a printed `aws eks create-access-entry` as the SDK takes them."""
    words = command.split()
    assert words[:3] == ["aws", "eks", "create-access-entry"]
    given = dict(zip(words[3::2], words[4::2], strict=True))
    named = {"clusterName": given["--cluster-name"], "principalArn": given["--principal-arn"]}
    if "--type" in given:
        return {**named, "type": given["--type"]}
    return {**named, "kubernetesGroups": [given["--kubernetes-groups"]]}
