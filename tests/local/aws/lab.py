"""What the tests of the embedded AWS API share: functions, queues, waiting for something."""

import io
import json
import uuid
import zipfile
from collections.abc import Mapping
from typing import Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from infra.local.aws import EmbeddedAws
from tests.waiting import until

HANDLER = """
import json, os, sys, time

def handler(event, context):
    event = event if isinstance(event, dict) else {"given": event}
    do = event.get("do")
    if do == "fail":
        raise LaunchFailed("asked to")
    if do == "exit":
        os._exit(3)
    if do == "sleep":
        time.sleep(event["seconds"])
    if do == "print":
        print(event["text"])
    if do == "infra":
        import infra
    if do == "caller":
        import boto3
        return boto3.client("sts").get_caller_identity()["Arn"]
    answer = {"env": {key: os.environ.get(key) for key in event.get("names", ())}}
    answer["event"] = event
    answer["left"] = context.get_remaining_time_in_millis()
    answer["arn"] = context.invoked_function_arn
    answer["request"] = context.aws_request_id
    answer["pid"] = os.getpid()
    if "Records" in event:
        bodies = [row["body"] for row in event["Records"]]
        print(json.dumps({"batch": bodies}))
        bad = os.environ.get("BAD")
        if bad:
            return {"batchItemFailures": [
                {"itemIdentifier": row["messageId"]} for row in event["Records"]
                if row["body"] == bad
                and int(row["attributes"]["ApproximateReceiveCount"]) < 2
            ]}
        return None
    return answer

class LaunchFailed(Exception):
    pass
"""

# As AWSLambdaBasicExecutionRole has them.
LOG_ACTIONS = ("logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents")


def package(source: str = HANDLER) -> bytes:
    """A deployment package with one module, functions/app.py."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("functions/__init__.py", "")
        archive.writestr("functions/app.py", source)
    return buffer.getvalue()


class Lab:
    """Short ways to make and watch things on one embedded AWS API."""

    def __init__(self, aws: EmbeddedAws) -> None:
        self.aws = aws

    @staticmethod
    def name(prefix: str) -> str:
        """A name nothing else uses."""
        return f"{prefix}-{uuid.uuid4().hex[:8]}"

    def sign(
        self,
        service: str,
        method: str,
        path: str,
        body: bytes | None = b"",
        *,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """Return the headers of a request, signed with the server's key; a body of None is not.

        A header `Host` names another host than the server's.
        """
        given = dict(headers or {})
        request = AWSRequest(
            method=method, url=self.aws.url + path, data=body or b"", headers=given
        )
        request.context["payload_signing_enabled"] = body is not None
        access = self.aws.access
        keys = Credentials(access.key_id, access.secret)
        SigV4Auth(keys, service, access.region).add_auth(request)
        return dict(request.headers.items())

    def role(self, *actions: str) -> str:
        """Make a role that has these actions and return its ARN."""
        iam, name = self.aws.client("iam"), self.name("role")
        made = iam.create_role(RoleName=name, AssumeRolePolicyDocument="{}")
        if actions:
            statement = {"Effect": "Allow", "Action": list(actions), "Resource": "*"}
            document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
            iam.put_role_policy(RoleName=name, PolicyName="given", PolicyDocument=document)
        return str(made["Role"]["Arn"])

    def function(self, *, source: str = HANDLER, **settings: Any) -> str:
        """Make a function and return its name."""
        name = self.name("function")
        given: dict[str, Any] = {
            "FunctionName": name,
            "Runtime": "python3.13",
            "Role": self.role(*LOG_ACTIONS),
            "Handler": "functions.app.handler",
            "Code": {"ZipFile": package(source)},
            "Timeout": 60,
        }
        self.aws.client("lambda").create_function(**(given | settings))
        return name

    def invoke(self, name: str, event: Any, **settings: Any) -> tuple[Any, str | None]:
        """Invoke and return (payload, function error)."""
        answer = self.aws.client("lambda").invoke(
            FunctionName=name, Payload=json.dumps(event), **settings
        )
        text = answer["Payload"].read()
        return json.loads(text) if text else None, answer.get("FunctionError")

    def queue(self, **attributes: str) -> tuple[str, str]:
        """Make a queue and return (URL, ARN)."""
        url = self.aws.client("sqs").create_queue(QueueName=self.name("q"), Attributes=attributes)
        attributes_now = self.aws.client("sqs").get_queue_attributes(
            QueueUrl=url["QueueUrl"], AttributeNames=["QueueArn"]
        )
        return str(url["QueueUrl"]), str(attributes_now["Attributes"]["QueueArn"])

    def receive(self, url: str) -> list[dict[str, Any]]:
        """Take up to ten messages, once the first has come."""
        return list(until(lambda: self.take(url, seconds=20)))

    def take(self, url: str, *, seconds: int = 0) -> list[dict[str, Any]]:
        """Take up to ten messages by one call, which waits so long for the first."""
        answer = self.aws.client("sqs").receive_message(
            QueueUrl=url,
            WaitTimeSeconds=seconds,
            MaxNumberOfMessages=10,
            AttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        messages = answer.get("Messages", [])
        for message in messages:
            self.aws.client("sqs").delete_message(
                QueueUrl=url, ReceiptHandle=message["ReceiptHandle"]
            )
        return list(messages)

    def bus(self, *targets: dict[str, Any], pattern: dict[str, Any] | None = None) -> str:
        """Make a bus with one rule and these targets; return the name of the bus."""
        name = self.name("bus")
        events = self.aws.client("events")
        events.create_event_bus(Name=name)
        events.put_rule(
            Name=name,
            EventBusName=name,
            EventPattern=json.dumps(pattern or {"source": ["dovetail"]}),
        )
        rows = [{"Id": str(index)} | row for index, row in enumerate(targets)]
        events.put_targets(Rule=name, EventBusName=name, Targets=rows)
        return name

    def put(self, bus: str, *details: Any, detail_type: str = "pod-pending") -> Any:
        """Put up to ten events and return the answer's first entry."""
        entries = [
            {
                "EventBusName": bus,
                "Source": "dovetail",
                "DetailType": detail_type,
                "Detail": json.dumps(detail),
            }
            for detail in details
        ]
        return self.aws.client("events").put_events(Entries=entries)["Entries"][0]

    def invocations(self, name: str) -> list[dict[str, Any]]:
        """Finished invocations of a function."""
        answer = self.aws.control("functions/invocations", {"function": name})
        return list(answer["invocations"])
