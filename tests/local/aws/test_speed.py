import json
from typing import Any

import yaml

from tests.local.aws.lab import Lab


def without_request(answer: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in answer.items() if key != "ResponseMetadata"}


def test_an_answer_is_the_same_once_its_names_are_known(lab: Lab) -> None:
    ec2, iam = lab.aws.client("ec2"), lab.aws.client("iam")
    image = ec2.describe_images()["Images"][0]
    ec2.run_instances(ImageId=image["ImageId"], MinCount=2, MaxCount=2, InstanceType="m5.large")
    role = lab.role().rsplit("/", 1)[-1]
    first, again = (
        [
            without_request(answer)
            for answer in (
                ec2.describe_instances(),
                ec2.describe_subnets(),
                iam.get_role(RoleName=role),
            )
        ]
        for _ in range(2)
    )
    assert first == again
    launched = first[0]["Reservations"][0]["Instances"]
    assert {found["ImageId"] for found in launched} == {image["ImageId"]}
    assert {found["State"]["Name"] for found in launched} <= {"pending", "running"}
    assert first[2]["Role"]["AssumeRolePolicyDocument"] == {}
    # Written as EC2 does, where moto keeps a time.
    assert image["CreationDate"].endswith(".000Z")


def test_an_expression_is_read_anew_each_time(lab: Lab) -> None:
    rows = lab.aws.client("dynamodb")
    rows.create_table(
        TableName="rows",
        KeySchema=[{"AttributeName": "name", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "name", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    row = {"TableName": "rows", "Key": {"name": {"S": "one"}}}
    for expression in ("SET seen = :one", "ADD seen :one", "ADD seen :one REMOVE absent"):
        rows.update_item(
            **row, UpdateExpression=expression, ExpressionAttributeValues={":one": {"N": "1"}}
        )
    assert rows.get_item(**row)["Item"]["seen"] == {"N": "3"}


def test_a_template_is_written_in_json_or_yaml(lab: Lab) -> None:
    stacks = lab.aws.client("cloudformation")
    template = {
        "Resources": {"Queue": {"Type": "AWS::SQS::Queue"}},
        "Outputs": {"Name": {"Value": {"Fn::GetAtt": ["Queue", "QueueName"]}}},
    }
    for write in (json.dumps, yaml.safe_dump):
        name = lab.name("stack")
        stacks.create_stack(StackName=name, TemplateBody=write(template))
        outputs = stacks.describe_stacks(StackName=name)["Stacks"][0]["Outputs"]
        assert lab.aws.client("sqs").get_queue_url(QueueName=outputs[0]["OutputValue"])
