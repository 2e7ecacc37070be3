"""The doctor finds the functions' variables, and has its user's permissions."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from moto.eks.models import eks_backends

from functions.cli.deployed_settings import catalog_settings, function_variables
from functions.cli.doctor.runtime import DoctorRuntime
from functions.cli.watch.cluster_watch import refuse_unknown_cluster
from infra.local.kube.certificates import ca_file, server_context
from shared.aws.session import Session
from shared.instance_types.pod_addresses import PodNetwork
from shared.model.errors import NotAttachedError, NotFoundError, PermanentError
from shared.runtime.catalog import instance_setup
from shared.runtime.provisioning_wiring import ProvisioningWiring
from shared.runtime.wiring import ActingRole
from shared.settings import FunctionSettings, SettingsError
from tests.attachments import ROLES, attachment
from tests.contract.aws.canned import canned

VARIABLES = {
    "DOVETAIL_TABLE": "ledger",
    "DOVETAIL_BUCKET": "archive",
    "DOVETAIL_QUEUE_URL": "https://sqs.test/wake",
    "DOVETAIL_DEAD_LETTER_URL": "https://sqs.test/dead",
    "DOVETAIL_ORPHAN_GRACE_SECONDS": "90",
}


@pytest.fixture
def here(aws: Session, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setenv("AWS_REGION", aws.region)
    return aws


def deploy(aws: Session, name: str = "dovetail-sweep", **more: str) -> None:
    """Deploy the part of a control plane that is read: one function."""
    trust = {"Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole"}]}
    role = aws.client("iam").create_role(
        RoleName="sweep", AssumeRolePolicyDocument=json.dumps(trust)
    )
    aws.client("lambda").create_function(
        FunctionName=name,
        Role=role["Role"]["Arn"],
        Runtime="python3.13",
        Handler="functions.handler",
        Code={"ZipFile": b"PK\x05\x06" + bytes(18)},
        Environment={"Variables": {**VARIABLES, **more}},
    )


def test_the_variables_are_those_of_the_deployed_function(here: Session) -> None:
    deploy(here)

    assert function_variables(here, "dovetail-sweep") == VARIABLES
    assert isinstance(DoctorRuntime({}), DoctorRuntime)


def test_a_catalogue_is_made_with_the_settings_of_the_control_plane_in_its_region(
    here: Session,
) -> None:
    assert catalog_settings(here) is None
    deploy(here, "dovetail-refresh-catalog", DOVETAIL_PREFIX_DELEGATION="True")

    settings = catalog_settings(here)
    assert settings is not None
    assert instance_setup(settings).network == PodNetwork(prefix_delegation=True)
    with canned(here, "lambda", "GetFunctionConfiguration", (403, "AccessDeniedException")):
        assert catalog_settings(here) is None


def test_without_a_control_plane_it_is_said_where_it_was_looked_for(here: Session) -> None:
    with pytest.raises(NotFoundError, match=f"no function dovetail-sweep in {here.region}"):
        DoctorRuntime({"PATH": "/bin"})


def test_variables_that_are_set_are_taken_and_checked(here: Session) -> None:
    assert isinstance(DoctorRuntime(VARIABLES), DoctorRuntime)
    with pytest.raises(SettingsError, match="DOVETAIL_BUCKET"):
        DoctorRuntime({"DOVETAIL_TABLE": "ledger"})


def test_a_cluster_whose_attachment_cannot_be_read_is_named_and_refused(
    here: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    here.client("ssm").put_parameter(Name="/dovetail/clusters/zzz", Value="not json", Type="String")
    runtime = DoctorRuntime(VARIABLES)

    assert runtime.clusters() == ("zzz",)
    with pytest.raises(PermanentError, match="/dovetail/clusters/zzz: JSON is malformed"):
        runtime.service("zzz")
    assert capsys.readouterr().err.startswith("note: /dovetail/clusters/zzz: JSON")


def test_a_name_to_watch_is_refused_only_by_a_control_plane_that_does_not_know_it(
    here: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_unknown_cluster("nope")  # there is no control plane
    deploy(here)
    here.client("ssm").put_parameter(Name="/dovetail/clusters/zzz", Value="not json", Type="String")
    refuse_unknown_cluster("zzz")
    with pytest.raises(NotAttachedError, match=r"'nope' is not attached: .*or leave --cluster out"):
        refuse_unknown_cluster("nope")
    monkeypatch.setenv("DOVETAIL_TABLE", "ledger")
    refuse_unknown_cluster("nope")  # the variables are not complete


@pytest.mark.parametrize(
    ("right", "roles"),
    [
        (ActingRole.INSIDE, [f"{ROLES}/test-inside"]),
        (ActingRole.LAUNCH, [f"{ROLES}/test-launch"]),
        (ActingRole.TERMINATE, [f"{ROLES}/test-terminate"]),
        (ActingRole.OWN, []),
    ],
)
def test_people_act_with_their_own_rights_and_functions_under_a_role_of_the_cluster(
    here: Session, right: ActingRole, roles: list[str], tmp_path: Path
) -> None:
    here.client("ssm").put_parameter(
        Name="/dovetail/clusters/test", Type="String", Value=json.dumps(attachment("test"))
    )
    here.client("eks").create_cluster(
        name="test", roleArn=f"{ROLES}/eks", resourcesVpcConfig={"subnetIds": ["subnet-1"]}
    )
    # The emulated cluster's authority is no certificate.
    server_context(tmp_path)
    authority = base64.b64encode(ca_file(tmp_path).read_bytes()).decode()
    eks = eks_backends["123456789012"][here.region]
    eks.clusters["test"].certificate_authority = {"data": authority}
    wiring = ProvisioningWiring(FunctionSettings.from_environment(VARIABLES), right)
    asked: list[Mapping[str, Any]] = []
    wiring.session.client("sts").meta.events.register(
        "provide-client-params.sts.AssumeRole", lambda params, **_: asked.append(params)
    )

    assert wiring.ports("test").instance_profile == "test-nodes"
    assert wiring.ports("test").node_profiles == {"test-nodes": "test-nodes"}
    assert [entry["RoleArn"] for entry in asked] == roles
