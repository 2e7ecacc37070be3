"""Stacks like the product's, as a synthesised assembly on disk."""

import json
from pathlib import Path
from typing import Any

from tests.local.aws.lab import HANDLER

Json = dict[str, Any]
ASSETS = "cdk-hnb659fds-assets-${AWS::AccountId}-${AWS::Region}"
PARAMETERS: Json = {
    "BootstrapVersion": {
        "Type": "AWS::SSM::Parameter::Value<String>",
        "Default": "/cdk-bootstrap/hnb659fds/version",
    }
}


DEFINITION: Json = {
    "StartAt": "T",
    "States": {"T": {"Type": "Task", "Resource": "${FunctionArn}", "End": True}},
}


def ref(name: str) -> Json:
    return {"Ref": name}


def arn_of(name: str) -> Json:
    return {"Fn::GetAtt": [name, "Arn"]}


def policy(*actions: str) -> Json:
    deny: Json = {"Effect": "Deny", "Principal": "*", "Action": list(actions), "Resource": "*"}
    deny["Condition"] = {"Bool": {"aws:SecureTransport": "false"}}
    return {"Version": "2012-10-17", "Statement": [deny]}


def resource(kind: str, **properties: Any) -> Json:
    return {"Type": f"AWS::{kind}", "Properties": properties}


def control_plane() -> Json:
    code = {"S3Bucket": {"Fn::Sub": ASSETS}, "S3Key": "code.zip"}
    table_keys = {
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
        "TimeToLiveSpecification": {"AttributeName": "expires", "Enabled": True},
    }
    machine = {
        "DefinitionString": json.dumps(DEFINITION),
        "DefinitionSubstitutions": {"FunctionArn": arn_of("Function")},
        "RoleArn": arn_of("Role"),
    }
    return {
        "Bus": resource("Events::EventBus", Name="dovetail"),
        "Rule": resource(
            "Events::Rule",
            EventBusName=ref("Bus"),
            EventPattern={"source": ["dovetail"]},
            Targets=[
                {"Id": "queue", "Arn": arn_of("Queue")},
            ],
        ),
        "DeadLetters": resource("SQS::Queue"),
        "Queue": resource(
            "SQS::Queue",
            VisibilityTimeout=30,
            RedrivePolicy={"deadLetterTargetArn": arn_of("DeadLetters"), "maxReceiveCount": 3},
        ),
        "QueuePolicy": resource(
            "SQS::QueuePolicy", Queues=[ref("Queue")], PolicyDocument=policy("sqs:*")
        ),
        "Role": resource("IAM::Role", AssumeRolePolicyDocument=policy("sts:AssumeRole")),
        "Logs": resource("Logs::LogGroup", LogGroupName="/dovetail/functions"),
        "Function": resource(
            "Lambda::Function",
            Code=code,
            Handler="functions.app.handler",
            Runtime="python3.13",
            Architectures=["arm64"],
            Role=arn_of("Role"),
            LoggingConfig={"LogGroup": ref("Logs")},
            Environment={"Variables": {"TABLE": ref("Table")}},
        ),
        "Invocations": resource(
            "Lambda::EventInvokeConfig",
            FunctionName=ref("Function"),
            Qualifier="$LATEST",
            MaximumRetryAttempts=0,
            MaximumEventAgeInSeconds=60,
        ),
        "Permission": resource(
            "Lambda::Permission",
            FunctionName=arn_of("Function"),
            Action="lambda:InvokeFunction",
            Principal="events.amazonaws.com",
            SourceArn=arn_of("Rule"),
        ),
        "Mapping": resource(
            "Lambda::EventSourceMapping",
            EventSourceArn=arn_of("Queue"),
            FunctionName=ref("Function"),
            BatchSize=100,
            MaximumBatchingWindowInSeconds=1,
        ),
        "Machine": resource("StepFunctions::StateMachine", **machine),
        "Table": resource("DynamoDB::Table", **table_keys),
        "Bucket": resource("S3::Bucket"),
        "BucketPolicy": resource(
            "S3::BucketPolicy", Bucket=ref("Bucket"), PolicyDocument=policy("s3:*")
        ),
        "Alarm": resource(
            "CloudWatch::Alarm",
            AlarmName="old-messages",
            MetricName="ApproximateAgeOfOldestMessage",
            Namespace="AWS/SQS",
            ComparisonOperator="GreaterThanThreshold",
            EvaluationPeriods=1,
            Period=60,
            Threshold=60,
            Statistic="Maximum",
        ),
        "Pause": resource(
            "SSM::Parameter",
            Name="/dovetail/pause",
            Type="String",
            Value="off",
            Tags={"app": "dovetail"},
        ),
        "Entry": resource(
            "EKS::AccessEntry",
            ClusterName="blue",
            PrincipalArn=arn_of("Role"),
            KubernetesGroups=["dovetail:launch"],
            Type="STANDARD",
        ),
        "Metadata": resource("CDK::Metadata"),
    }


def write_assembly(folder: Path, stacks: dict[str, Json]) -> Path:
    """Write what `cdk synth` writes: each stack with its template and asset manifest."""
    artifacts: Json = {}
    (folder / "code" / "functions").mkdir(parents=True)
    (folder / "code" / "functions" / "__init__.py").write_text("")
    (folder / "code" / "functions" / "app.py").write_text(HANDLER)
    for name, template in stacks.items():
        (folder / f"{name}.template.json").write_text(json.dumps(template))
        files = {"code": asset("code", "zip", "code.zip")}
        (folder / f"{name}.assets.json").write_text(json.dumps({"files": files}))
        artifacts[f"{name}.assets"] = {
            "type": "cdk:asset-manifest",
            "properties": {"file": f"{name}.assets.json"},
        }
        artifacts[name] = {
            "type": "aws:cloudformation:stack",
            "properties": {"templateFile": f"{name}.template.json"},
            "dependencies": [f"{name}.assets", *template.get("DependsOnStacks", ())],
        }
    (folder / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))
    return folder


def asset(path: str, packaging: str, key: str) -> Json:
    return {
        "source": {"path": path, "packaging": packaging},
        "destinations": {"current": {"bucketName": ASSETS, "objectKey": key}},
    }
