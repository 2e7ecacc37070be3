import json
from pathlib import Path
from typing import Any

import pytest

from infra.local.aws.templates.assembly import read_assembly
from infra.local.aws.templates.deploy import DeployError, deploy
from infra.local.aws.templates.resource_check import missing_resources, not_emulated
from tests.local.aws.lab import Lab
from tests.local.aws.stacks import (
    PARAMETERS,
    arn_of,
    control_plane,
    ref,
    resource,
    write_assembly,
)
from tests.waiting import until


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    outputs = {
        "QueueUrl": {"Value": ref("Queue")},
        "FunctionArn": {"Value": arn_of("Function"), "Export": {"Name": "FunctionArn"}},
        "MachineArn": {"Value": ref("Machine")},
    }
    main = {"Parameters": PARAMETERS, "Resources": control_plane(), "Outputs": outputs}
    attached = {
        "Resources": {"Queue": resource("SQS::Queue")},
        "Outputs": {"Function": {"Value": {"Fn::ImportValue": "FunctionArn"}}},
        "DependsOnStacks": ["Main"],
    }
    folder = tmp_path_factory.mktemp("assembly")
    return write_assembly(folder, {"Attached": attached, "Main": main})


@pytest.fixture
def deployed(lab: Lab, assembly: Path) -> dict[str, dict[str, str]]:
    cluster = {"name": "blue", "endpoint": "https://127.0.0.1:1", "ca_data": "QQ=="}
    lab.aws.control("seed", {"clusters": [cluster]})
    return deploy(assembly, lab.aws.access)


def test_everything_the_templates_declare_exists(
    lab: Lab, assembly: Path, deployed: dict[str, dict[str, str]]
) -> None:
    assert missing_resources(assembly, lab.aws.access) == ()
    assert deployed["Attached"]["Function"] == deployed["Main"]["FunctionArn"]


def test_a_missing_resource_is_found(
    lab: Lab, assembly: Path, deployed: dict[str, dict[str, str]], tmp_path: Path
) -> None:
    template = json.loads((assembly / "Main.template.json").read_text())
    template["Resources"] |= {
        "Later": resource("SQS::Queue"),
        "Unknown": resource("Bedrock::Agent"),
    }
    other = write_assembly(tmp_path, {"Main": template})
    missing = missing_resources(other, lab.aws.access)
    assert [row.logical_id for row in missing] == ["Later", "Unknown"]
    lab.aws.client("ssm").delete_parameter(Name="/dovetail/pause")
    found = missing_resources(assembly, lab.aws.access)
    assert [(row.logical_id, row.reason) for row in found] == [
        ("Pause", "the API of its service does not know /dovetail/pause")
    ]


def test_a_deployed_function_has_its_properties(
    lab: Lab, deployed: dict[str, dict[str, str]]
) -> None:
    arn = deployed["Main"]["FunctionArn"]
    configuration = lab.aws.client("lambda").get_function_configuration(FunctionName=arn)
    assert configuration["Architectures"] == ["arm64"]
    assert configuration["LoggingConfig"]["LogGroup"] == "/dovetail/functions"
    answer, error = lab.invoke(arn, {"names": ["TABLE"]})
    assert error is None
    table = lab.aws.client("dynamodb").describe_time_to_live(TableName=answer["env"]["TABLE"])
    assert table["TimeToLiveDescription"]["TimeToLiveStatus"] == "ENABLED"
    event_config = lab.aws.client("lambda").get_function_event_invoke_config(FunctionName=arn)
    assert event_config["MaximumRetryAttempts"] == 0


def test_event_passes_through_a_deployed_stack(
    lab: Lab, deployed: dict[str, dict[str, str]]
) -> None:
    lab.put("dovetail", {"pods": 1})
    arn = deployed["Main"]["FunctionArn"]
    name = arn.rsplit(":", 1)[-1]
    client = lab.aws.client("stepfunctions")
    machine = deployed["Main"]["MachineArn"]
    client.start_execution(stateMachineArn=machine)

    def succeeded() -> Any:
        answer = client.list_executions(stateMachineArn=machine, statusFilter="SUCCEEDED")
        return answer["executions"]

    until(succeeded)
    until(lambda: len(lab.invocations(name)) >= 2)


def test_a_policy_with_a_condition_does_not_lock_the_bucket(
    lab: Lab, deployed: dict[str, dict[str, str]]
) -> None:
    del deployed
    s3 = lab.aws.client("s3")
    bucket = next(
        row["Name"] for row in s3.list_buckets()["Buckets"] if row["Name"].startswith("main-bucket")
    )
    s3.put_object(Bucket=bucket, Key="k", Body=b"v")
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"v"


def test_a_resource_that_cannot_be_made_fails_the_stack(lab: Lab, tmp_path: Path) -> None:
    broken = resource(
        "StepFunctions::StateMachine",
        DefinitionString='{"StartAt": "A"}',
        RoleArn="arn:aws:iam::123456789012:role/r",
    )
    folder = write_assembly(tmp_path, {"Broken": {"Resources": {"Machine": broken}}})
    with pytest.raises(DeployError, match="stack Broken: InvalidDefinition"):
        deploy(folder, lab.aws.access)


def test_an_entry_of_a_list_that_has_no_value_is_left_out(lab: Lab) -> None:
    name = lab.name("lists")
    wanted = {"Fn::If": ["Wanted", {"Key": "a", "Value": "b"}, {"Ref": "AWS::NoValue"}]}
    tags = [wanted, {"Key": "c", "Value": "d"}]
    template = {
        "Conditions": {"Wanted": {"Fn::Equals": ["yes", "no"]}},
        "Resources": {"Queue": resource("SQS::Queue", QueueName=name, Tags=tags)},
    }
    lab.aws.client("cloudformation").create_stack(StackName=name, TemplateBody=json.dumps(template))
    sqs = lab.aws.client("sqs")
    url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"]["c"] == "d"
    assert "a" not in sqs.list_queue_tags(QueueUrl=url)["Tags"]


def test_a_template_may_be_read_by_an_address_with_numbers(lab: Lab) -> None:
    bucket = lab.name("templates")
    lab.aws.client("s3").create_bucket(Bucket=bucket)
    body = json.dumps({"Resources": {"Queue": resource("SQS::Queue")}})
    lab.aws.client("s3").put_object(Bucket=bucket, Key="t.json", Body=body)
    lab.aws.client("cloudformation").create_stack(
        StackName=bucket, TemplateURL=f"{lab.aws.url}/{bucket}/t.json"
    )
    stack = lab.aws.client("cloudformation").describe_stacks(StackName=bucket)["Stacks"][0]
    assert stack["StackStatus"] == "CREATE_COMPLETE"


def test_unknown_stacks_are_named(lab: Lab, assembly: Path) -> None:
    with pytest.raises(DeployError, match=r"\['Nope'\] are not in .*'Main'"):
        deploy(assembly, lab.aws.access, ["Nope"])


def test_stacks_come_after_what_they_depend_on(assembly: Path) -> None:
    assert [stack.name for stack in read_assembly(assembly)] == ["Main", "Attached"]


def test_each_left_out_type_has_a_reason() -> None:
    assert all(len(reason) > 10 for reason in not_emulated().values())
