"""What a launch template is made of."""

from typing import Any

import pytest

from shared.manifests.api.selector_map import selector_of
from shared.model import labels as keys
from shared.model.errors import NotFoundError
from shared.model.kubernetes.taints import Toleration
from shared.model.provisioner import NodeTemplate
from tests.builders import needs, pod
from tests.karpenter_cases.lifecycle.births import (
    bought,
    data_of,
    image,
    is_bound,
    launched,
    only_data,
    provisioner,
    request,
    world,
)
from tests.unit.manifests.documents import template
from tests.unit.worlds import World

KMS = "arn:aws:kms:us-west-2:111122223333:key/1234"


def named(there: World) -> set[str]:
    return {
        launch_template_config["LaunchTemplateSpecification"]["LaunchTemplateName"]
        for fleet in there.cloud.fleets
        for launch_template_config in fleet["LaunchTemplateConfigs"]
    }


def tags(there: World) -> dict[str, dict[str, str]]:
    return {
        tag_specification["ResourceType"]: {
            tag["Key"]: tag["Value"] for tag in tag_specification["Tags"]
        }
        for tag_specification in request(there)["TagSpecifications"]
    }


def disk(name: str, size: str, **more: Any) -> dict[str, Any]:
    return {"deviceName": name, "ebs": {"volumeSize": size, **more}}


def sizes(there: World) -> list[int]:
    return [
        block_device_mapping["Ebs"]["VolumeSize"]
        for block_device_mapping in only_data(there)["BlockDeviceMappings"]
    ]


# --- the template


@pytest.mark.parametrize("release", ["old", "new"])
def test_a_template_is_made_and_used_in_its_latest_version(release: str) -> None:
    there = launched({"provider": {}} if release == "old" else {})
    assert named(there) == set(there.cloud.templates)
    assert only_data(there)["BlockDeviceMappings"][0]["Ebs"]["Encrypted"] is True
    (config,) = request(there)["LaunchTemplateConfigs"]
    assert config["LaunchTemplateSpecification"]["Version"] == "$Latest"


@pytest.mark.parametrize("release", ["old", "new"])
def test_a_template_of_the_users_own_can_be_named(release: str) -> None:
    own = {"launchTemplate": "mine"}
    raws = [provisioner(provider=own)] if release == "old" else [provisioner(), template(**own)]
    there = world(*raws)
    there.cloud.ensure_launch_template("mine", {})
    bought(there)
    assert named(there) == set(there.cloud.templates) == {"mine"}
    (config,) = request(there)["LaunchTemplateConfigs"]
    assert config["LaunchTemplateSpecification"]["Version"] == "$Latest"


@pytest.mark.parametrize("release", ["old", "new"])
def test_what_is_made_alike_shares_a_template(release: str) -> None:
    tolerations = [
        Toleration(key=value, operator="Exists") for value in ("abacus", "zebra", "boar")
    ]
    there = world(provisioner(provider={}) if release == "old" else provisioner())
    for name, order in (("a", (0, 1, 2)), ("b", (1, 2, 0))):
        bought(there, pod(name, cpu=1900, tolerations=tuple(tolerations[n] for n in order)))
    assert len(there.cloud.fleets) == 2
    assert len(named(there)) == 1


def test_a_template_that_is_gone_is_made_again() -> None:
    there = world(provisioner(kubeletConfiguration={"maxPods": 1}))
    there.cloud.fail_next("create_fleet", NotFoundError("no such launch template"))
    bought(there)
    assert is_bound(there, "a")
    assert len(there.cloud.called("create_fleet")) == 2


# --- labels and tags


def test_a_node_says_what_its_machine_is() -> None:
    labels = launched().node.labels
    assert {keys.OS, keys.ARCH, keys.INSTANCE_TYPE} <= labels.keys()


def test_a_node_of_a_chosen_image_says_what_its_machine_is() -> None:
    there = world(provisioner(), template(amiSelector={"team": "red"}))
    there.cloud.images = (image("ami-1", team="red"), image("ami-2", "arm64", team="red"))
    assert bought(there).node.labels[keys.ARCH] == "amd64"


def test_everything_is_tagged_with_the_provisioners_name() -> None:
    there = bought(world(provisioner("the-provisioner")))
    assert set(tags(there)) == {"instance", "volume", "fleet"}
    for found in tags(there).values():
        assert found[keys.PROVISIONER_NAME] == "the-provisioner"
        assert found["Name"] == f"{keys.PROVISIONER_NAME}/the-provisioner"


def test_tags_of_the_user_are_on_machines_and_disks() -> None:
    wanted = {"tag1": "value1", "tag2": "value2"}
    for found in tags(launched(tags=wanted)).values():
        assert wanted.items() <= found.items()


def test_the_name_of_machines_may_be_the_users() -> None:
    assert {tag["Name"] for tag in tags(launched(tags={"Name": "mine"})).values()} == {"mine"}


# --- disks


def test_older_images_have_one_disk() -> None:
    (one,) = only_data(launched(amiFamily="AL2"))["BlockDeviceMappings"]
    assert one["DeviceName"] == "/dev/xvda"
    assert (one["Ebs"]["VolumeSize"], one["Ebs"]["VolumeType"]) == (20, "gp3")
    assert "Iops" not in one["Ebs"]


@pytest.mark.parametrize("family", ["AL2", "Custom"])
def test_disks_are_made_as_they_are_written(family: str) -> None:
    more = {"volumeType": "io2", "iops": 10_000, "kmsKeyID": KMS, "encrypted": True}
    disks = [disk("/dev/xvda", "200G", **more), disk("/dev/xvdb", "200Gi", **more)]
    there = world(
        provisioner(),
        template(amiFamily=family, blockDeviceMappings=disks, amiSelector={"team": "red"}),
    )
    there.cloud.images = (image("ami-1", team="red"),)
    found = only_data(bought(there))["BlockDeviceMappings"]
    assert [entry["DeviceName"] for entry in found] == ["/dev/xvda", "/dev/xvdb"]
    assert [entry["Ebs"] for entry in found] == [
        {
            "VolumeSize": size,
            "VolumeType": "io2",
            "Iops": 10_000,
            "KmsKeyId": KMS,
            "Encrypted": True,
            "DeleteOnTermination": True,
        }
        for size in (187, 200)
    ]


def test_sizes_are_rounded_up_to_whole_gibibytes() -> None:
    there = launched(
        amiFamily="AL2", blockDeviceMappings=[disk("/dev/xvda", "4G"), disk("/dev/xvdb", "2G")]
    )
    assert sizes(there) == [4, 2]


def test_bottlerocket_has_a_small_disk_and_one_for_pods() -> None:
    there = launched(amiFamily="Bottlerocket")
    assert sizes(there) == [4, 20]
    for block_device_mapping in only_data(there)["BlockDeviceMappings"]:
        assert block_device_mapping["Ebs"]["VolumeType"] == "gp3"
        assert "Iops" not in block_device_mapping["Ebs"]


def test_an_image_of_the_users_own_keeps_its_own_disks() -> None:
    there = world(provisioner(), template(amiFamily="Custom", amiSelector={"team": "red"}))
    there.cloud.images = (image("ami-1", team="red"),)
    assert "BlockDeviceMappings" not in only_data(bought(there))


# --- profile, metadata, monitoring, network


@pytest.mark.parametrize("release", ["old", "new"])
def test_machines_have_the_clusters_profile(release: str) -> None:
    there = launched({"provider": {}} if release == "old" else {})
    assert only_data(there)["IamInstanceProfile"] == {"Name": "nodes"}


@pytest.mark.parametrize("release", ["old", "new"])
def test_machines_may_have_another_profile(release: str) -> None:
    own: dict[str, Any] = {"instanceProfile": "mine"}
    there = launched({"provider": own}) if release == "old" else launched(**own)
    assert only_data(there)["IamInstanceProfile"] == {"Name": "mine"}


def test_the_metadata_service_asks_for_a_token() -> None:
    assert only_data(launched())["MetadataOptions"] == {
        "HttpEndpoint": "enabled",
        "HttpProtocolIpv6": "disabled",
        "HttpPutResponseHopLimit": 2,
        "HttpTokens": "required",
        "InstanceMetadataTags": "disabled",
    }


def test_the_metadata_service_is_set_as_it_is_written() -> None:
    options = {
        "httpEndpoint": "disabled",
        "httpProtocolIPv6": "enabled",
        "httpPutResponseHopLimit": 1,
        "httpTokens": "optional",
    }
    assert only_data(launched({"provider": {"metadataOptions": options}}))["MetadataOptions"] == {
        "HttpEndpoint": "disabled",
        "HttpProtocolIpv6": "enabled",
        "HttpPutResponseHopLimit": 1,
        "HttpTokens": "optional",
        "InstanceMetadataTags": "disabled",
    }


def test_figures_of_each_minute_are_not_asked_for() -> None:
    assert "Monitoring" not in only_data(launched())


def test_figures_of_each_minute_can_be_asked_for() -> None:
    assert only_data(launched(detailedMonitoring=True))["Monitoring"] == {"Enabled": True}


def test_whether_addresses_are_public_is_left_to_the_subnet() -> None:
    assert "NetworkInterfaces" not in only_data(launched())


def test_groups_found_by_id_are_those_of_the_template() -> None:
    there = world(provisioner(), template(securityGroupSelector={"aws-ids": "sg-1,sg-2"}))
    there.cloud.security_groups = ("sg-1", "sg-2")
    assert only_data(bought(there))["SecurityGroupIds"] == ["sg-1", "sg-2"]
    asked = [value for value in there.cloud.called("site") if isinstance(value, NodeTemplate)]
    both = selector_of({"aws-ids": "sg-1,sg-2"})
    assert {value.security_group_selector for value in asked} == {both}


def test_a_template_for_each_image() -> None:
    there = world(provisioner(requirements=[{"key": keys.INSTANCE_TYPE, "operator": "Exists"}]))
    both = needs(keys.INSTANCE_TYPE, "In", "c6g.large")
    bought(there, pod("a"), pod("b", node_selector=both))
    assert len({entry["ImageId"] for entry in data_of(there)}) == len(data_of(there))
