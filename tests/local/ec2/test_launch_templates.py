"""Launch templates: tags, lists, errors."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.ec2.conftest import Fleet
from tests.local.ec2.launches import ids_of, override, refused


def test_tags_of_a_launch_template_stay_on_it(account: Any, cluster: dict[str, Any]) -> None:
    found = account.ec2.describe_launch_templates(Filters=[{"Name": "tag:leak", "Values": ["no"]}])[
        "LaunchTemplates"
    ]
    assert [row["LaunchTemplateId"] for row in found] == [cluster["template_id"]]
    [version] = account.ec2.describe_launch_template_versions(LaunchTemplateName="nodes")[
        "LaunchTemplateVersions"
    ]
    kinds = [row["ResourceType"] for row in version["LaunchTemplateData"]["TagSpecifications"]]
    assert kinds == ["instance", "volume"]


def test_launch_templates_are_listed_in_pages(account: Any, cluster: dict[str, Any]) -> None:
    for number in range(20):
        account.ec2.create_launch_template(
            LaunchTemplateName=f"more-{number:02}",
            LaunchTemplateData={"ImageId": cluster["image_id"]},
        )
    paginator = account.ec2.get_paginator("describe_launch_templates")
    assert sum(len(page["LaunchTemplates"]) for page in paginator.paginate()) == 21
    pages = list(paginator.paginate(PaginationConfig={"PageSize": 15}))
    assert [len(page["LaunchTemplates"]) for page in pages] == [15, 6]


@pytest.mark.parametrize("call", ["describe_launch_templates", "delete_launch_template"])
def test_a_launch_template_that_is_gone_is_a_proper_error(
    account: Any, cluster: dict[str, Any], call: str
) -> None:
    account.ec2.delete_launch_template(LaunchTemplateName="nodes")
    several = call.startswith("describe")
    by_name = {"LaunchTemplateNames": ["nodes"]} if several else {"LaunchTemplateName": "nodes"}
    by_id = (
        {"LaunchTemplateIds": [cluster["template_id"]]}
        if several
        else {"LaunchTemplateId": cluster["template_id"]}
    )
    for arguments, code in (
        (by_name, "InvalidLaunchTemplateName.NotFoundException"),
        (by_id, "InvalidLaunchTemplateId.NotFound"),
    ):
        with pytest.raises(ClientError) as refusal:
            getattr(account.ec2, call)(**arguments)
        assert refusal.value.response["Error"]["Code"] == code


def test_groups_of_interfaces_are_those_of_the_instance(
    account: Any, cluster: dict[str, Any], fleet: Fleet
) -> None:
    group = cluster["security_group_id"]
    interface = {"DeviceIndex": 0, "Groups": [group]}
    for number, groups in enumerate([[group], ["sg-0123456789abcdef0"]]):
        account.ec2.create_launch_template_version(
            LaunchTemplateName="nodes",
            LaunchTemplateData={
                "ImageId": cluster["image_id"],
                "NetworkInterfaces": [{**interface, "Groups": groups}],
            },
        )
        answer = fleet([override("m5.large", cluster["subnet_ids"][0])])
        if number:
            assert refused(answer) == [("m5.large", "InvalidGroup.NotFound")]
            continue
        [row] = account.ec2.describe_instances(InstanceIds=ids_of(answer))["Reservations"]
        [instance] = row["Instances"]
        assert [found["GroupId"] for found in instance["SecurityGroups"]] == [group]
