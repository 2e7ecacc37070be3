"""Deploying a synthesised assembly to the embedded AWS API without the CDK command line.

The template is sent untouched; only the uploads and the call that the CDK's command line
makes are made here instead, which takes a tenth of the time. The command line works too:
`cdk bootstrap` and `cdk deploy --method=direct` with AWS_ENDPOINT_URL set.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from infra.local.aws.clients import Access, ClientFor, clients_of
from infra.local.aws.control import ACCOUNT_ID
from infra.local.aws.templates.assembly import StackArtifact, read_assembly

_BOOTSTRAP_VERSION = "30"


class DeployError(RuntimeError):
    """A stack could not be made."""


def deploy(
    assembly: Path,
    access: Access,
    stacks: Sequence[str] = (),
    *,
    parameters: Mapping[str, Mapping[str, str]] | None = None,
) -> dict[str, dict[str, str]]:
    """Create the stacks of an assembly, dependencies first, and return their outputs by name."""
    found = read_assembly(assembly)
    known = [stack.name for stack in found]
    unknown = sorted(set(stacks) - set(known))
    if unknown:
        raise DeployError(f"stacks {unknown} are not in {assembly}: choose from {known}")
    client = clients_of(access)
    outputs: dict[str, dict[str, str]] = {}
    for stack in found:
        if not stacks or stack.name in stacks:
            given = dict(stack.parameters) | dict((parameters or {}).get(stack.name) or {})
            outputs[stack.name] = _create(client, stack, given, access.region)
    return outputs


def _create(
    client: ClientFor, stack: StackArtifact, parameters: Mapping[str, str], region: str
) -> dict[str, str]:
    template_url = _upload(client, stack, region)
    _pretend_bootstrap(client, stack)
    client("cloudformation").create_stack(
        StackName=stack.name,
        Parameters=[
            {"ParameterKey": key, "ParameterValue": value}
            for key, value in sorted(parameters.items())
        ],
        Capabilities=["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"],
        **template_url,
    )
    described = client("cloudformation").describe_stacks(StackName=stack.name)["Stacks"][0]
    if described["StackStatus"] != "CREATE_COMPLETE":
        raise DeployError(f"stack {stack.name}: {_reason(client, stack.name)}")
    return {row["OutputKey"]: row["OutputValue"] for row in described.get("Outputs") or ()}


def _reason(client: ClientFor, name: str) -> str:
    events = client("cloudformation").describe_stack_events(StackName=name)["StackEvents"]
    for event in events:
        if event["ResourceStatus"].endswith("FAILED"):
            return str(event.get("ResourceStatusReason", "failed without a reason"))
    return "did not complete"


def _upload(client: ClientFor, stack: StackArtifact, region: str) -> dict[str, str]:
    """Upload the assets and say where the template is, as create_stack wants it."""
    made: set[str] = set()
    for asset in stack.assets:
        bucket = _fill(asset.bucket, region)
        if bucket not in made:
            client("s3").create_bucket(Bucket=bucket, **_location(region))
            made.add(bucket)
        client("s3").put_object(Bucket=bucket, Key=asset.key, Body=asset.content())
    return {"TemplateBody": json.dumps(stack.template)}


def _location(region: str) -> dict[str, Any]:
    if region == "us-east-1":
        return {}
    return {"CreateBucketConfiguration": {"LocationConstraint": region}}


def _fill(text: str, region: str) -> str:
    return text.replace("${AWS::AccountId}", ACCOUNT_ID).replace("${AWS::Region}", region)


def _pretend_bootstrap(client: ClientFor, stack: StackArtifact) -> None:
    """Set the version parameter that templates of the default synthesizer read."""
    declared = (stack.template.get("Parameters") or {}).get("BootstrapVersion") or {}
    name = declared.get("Default")
    if name:
        client("ssm").put_parameter(
            Name=name, Value=_BOOTSTRAP_VERSION, Type="String", Overwrite=True
        )
