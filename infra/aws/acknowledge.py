"""The reason why each finding of cdk-nag (security rules) is acceptable, by resource."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from aws_cdk import Acknowledgment, Stack, Validations
from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct

# A statement that names a wildcard in its resources needs a reason here, by its id.
WILDCARD_REASONS: Final[Mapping[str, str]] = {
    "AskForImages": "AMIs are named by Provisioners; RunInstances checks their owner",
    "AskForSpot": "requests are made by the call; the instance they are for must be tagged",
    "AskForTaggedFleets": "fleets are made by the call; its tags must name the cluster",
    "AskIntoDiscovered": "Provisioners' selectors find them; their tag must name the cluster",
    "AskIntoTagged": "Provisioners' selectors find them; their tag must name the cluster",
    "AssumeClusterRole": "clusters are attached later; each role trusts only our functions",
    "Copies": "two objects for each attached cluster and version, all under one prefix",
    "Decisions": "one object per decision, all under one prefix",
    "DropOurTemplates": "templates are made at run time; their tags must name the cluster",
    "EndOurs": "instances are launched at run time; their tags must name the cluster",
    "FindClusters": "one parameter per attached cluster, all under one path",
    "FindImages": "public parameters of AWS name the AMI of each version and architecture",
    "LaunchFromDiscoveredImages": "AMIs of this account; their tag must name the cluster",
    "LaunchFromOurTemplates": "templates are made at run time; their tags must name the cluster",
    "LaunchFromOwnImages": "a choice: every AMI of this account",
    "LaunchFromTaggedImages": "AMIs of this account; their tag must name the cluster",
    "LaunchFromTrustedImages": "AMIs are named by Provisioners; their owner must be trusted",
    "LaunchFromTrustedSnapshots": "snapshots of public AMIs; their owner must be trusted",
    "LaunchIntoDiscovered": "Provisioners' selectors find them; their tag must name the cluster",
    "LaunchIntoTagged": "Provisioners' selectors find them; their tag must name the cluster",
    "LaunchTaggedMachines": "instances are launched by the call; its tags must name the cluster",
    "Look": "these actions know no resource; bound to the Region",
    "LookAtInterfaces": "these actions know no resource; bound to the Region, refused to the code",
    "MakeInterfacesAndVolumes": "made by the call; their tags must name the cluster",
    "MakeTemplates": "templates are made by the call; its tags must name the cluster",
    "NotByItsCode": "it refuses: the more, the better",
    "OpenSessions": "these actions know no resource; bound to the Region",
    "ReadCatalogue": "one object per Region, all under one prefix",
    "ReadOffers": "these actions know no resource; bound to the Region",
    "ReadPrices": "this action knows no resource; it reads a public price list",
    "ReleaseInterfaces": "Lambda makes them at run time; refused to the function's code",
    "StandInSubnets": "an interface has no name before it is made; its subnet is named",
    "TagForAnotherOwner": "instances are made at run time; their tags must name the cluster",
    "TagTemplates": "only while they are made, and only with tags that name the cluster",
    "TagWhatIsLaunched": "only while they are made, and only with tags that name the cluster",
    "Trace": "these actions know no resource; bound to the Region",
    "UntagForAnotherOwner": "instances are made at run time; their tags must name the cluster",
    "WriteCatalogue": "one object per Region, all under one prefix",
}


def acknowledge(construct: IConstruct, rule: str, reason: str) -> None:
    """Record why one rule's finding on one construct is acceptable."""
    Validations.of(construct).acknowledge(
        Acknowledgment(id=f"AwsSolutions::AwsSolutions-{rule}", reason=reason)
    )


def add_statements(role: iam.Role, statements: Iterable[iam.PolicyStatement]) -> None:
    """Add statements to a role, each wildcard with its reason.

    Raises:
        KeyError: If a statement with a wildcard has no reason in `WILDCARD_REASONS`.
    """
    reasons: dict[str, set[str]] = {}
    for statement in statements:
        role.add_to_policy(statement)
        for resource in statement.resources:
            text = _shown(Stack.of(role).resolve(resource))
            if "*" in text:
                assert statement.sid is not None
                reasons.setdefault(text, set()).add(WILDCARD_REASONS[statement.sid])
    policy = role.node.try_find_child("DefaultPolicy")
    assert isinstance(policy, Construct)
    for text, why in sorted(reasons.items()):
        acknowledge(policy, f"IAM5[Resource::{text}]", "; ".join(sorted(why)))


def _shown(value: Any) -> str:
    """Return a resolved ARN as the findings write it: references in angle brackets."""
    if isinstance(value, str):
        return value
    if "Fn::Join" in value:
        separator, parts = value["Fn::Join"]
        return str(separator).join(_shown(part) for part in parts)
    if "Fn::GetAtt" in value:
        return f"<{'.'.join(value['Fn::GetAtt'])}>"
    return f"<{value['Ref']}>"
