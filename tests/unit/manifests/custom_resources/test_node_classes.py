"""EC2NodeClasses, as what launches use."""

from typing import Any

import pytest

from shared.instance_types.ami_families import refuse_wrong_user_data
from shared.manifests.api.selector_map import selector_of
from shared.manifests.custom_resources.node_classes import NodeClassContent, read_node_class
from shared.manifests.problems import FieldProblem
from shared.model.ec2.selectors import SelectorTerm
from shared.model.provisioner import BlockDevice, MetadataOptions, NodeTemplate
from tests.unit.manifests.documents import node_class

TAGGED = selector_of({"karpenter.sh/discovery": "demo"})


def read(**spec: Any) -> NodeClassContent:
    problems: list[FieldProblem] = []
    found = read_node_class(node_class(**spec), problems, refuse_wrong_user_data)
    assert problems == []
    return found


def wrong(**spec: Any) -> list[str]:
    problems: list[FieldProblem] = []
    raw = node_class(**spec)
    raw["spec"] = {key: value for key, value in raw["spec"].items() if value != "absent"}
    read_node_class(raw, problems, refuse_wrong_user_data)
    return [f"{problem.field}: {problem.remedy}" for problem in problems]


def test_what_is_left_out_is_filled_in_as_v1_says() -> None:
    assert read() == NodeClassContent(
        template=NodeTemplate(
            name="nodes",
            subnet_selector=TAGGED,
            security_group_selector=TAGGED,
            instance_profile="workers",
            ami_family="AL2023",
            metadata_options=MetadataOptions(http_put_response_hop_limit=1),
        )
    )


def test_settings_of_launches_are_read() -> None:
    found = read(
        tags={"team": "red"},
        userData="#!/bin/sh",
        metadataOptions={"httpPutResponseHopLimit": 2, "httpTokens": "optional"},
        blockDeviceMappings=[
            {"deviceName": "/dev/xvda", "ebs": {"volumeSize": "50Gi", "iops": 4000}}
        ],
        detailedMonitoring=True,
        context="reserved",
        instanceStorePolicy="RAID0",
        associatePublicIPAddress=False,
    )
    assert found.template == NodeTemplate(
        name="nodes",
        subnet_selector=TAGGED,
        security_group_selector=TAGGED,
        instance_profile="workers",
        tags={"team": "red"},
        user_data="#!/bin/sh",
        metadata_options=MetadataOptions(http_tokens="optional"),
        block_devices=(BlockDevice(device_name="/dev/xvda", volume_size_gib=50, iops=4000),),
        detailed_monitoring=True,
        context="reserved",
        instance_store=True,
        public_ip=False,
    )
    assert found.warnings == ()


@pytest.mark.parametrize(
    ("alias", "family", "joins_as", "boots", "version"),
    [
        ("al2@v20260120", None, "AL2", "", "v20260120"),
        ("bottlerocket@v1.39.1", "Bottlerocket", "Bottlerocket", "", "v1.39.1"),
        ("bottlerocket@latest", "Custom", "Custom", "Bottlerocket", ""),
    ],
)
def test_an_alias_names_the_image_and_the_family_that_joins(
    alias: str, family: str | None, joins_as: str, boots: str, version: str
) -> None:
    template = read(amiSelectorTerms=[{"alias": alias}], amiFamily=family).template
    found = template.ami_family, template.image_family, template.image_version
    assert found == (joins_as, boots, version)
    assert template.ami_selector == ()


@pytest.mark.parametrize(
    ("terms", "selector"),
    [
        (
            [{"id": "ami-1"}, {"ssmParameter": "/mine/ami"}],
            (SelectorTerm(ids=("ami-1",)), SelectorTerm(parameters=("/mine/ami",))),
        ),
        (
            [{"name": "mine-*"}],
            (SelectorTerm(names=("mine-*",), owners=("amazon", "self")),),
        ),
        (
            [{"name": "a", "owner": "123456789012"}, {"tags": {"team": "red", "os": "*"}}],
            (
                SelectorTerm(names=("a",), owners=("123456789012",)),
                SelectorTerm(tags={"team": ("red",), "os": ("*",)}),
            ),
        ),
    ],
)
def test_images_are_found_by_any_of_their_terms(
    terms: list[dict[str, Any]], selector: tuple[SelectorTerm, ...]
) -> None:
    found = read(amiSelectorTerms=terms, amiFamily="AL2023")
    assert (found.template.ami_selector, found.warnings) == (selector, ())


def test_role_is_kept_for_the_launch() -> None:
    found = read(role="workers", instanceProfile=None)
    assert (found.template.role, found.template.instance_profile) == ("workers", "")
    assert found.warnings == ()


def test_subnets_and_groups_are_found_by_any_of_their_terms() -> None:
    template = read(
        subnetSelectorTerms=[{"id": "subnet-1"}, {"tags": {"a": "x,y", "b": "*"}}],
        securityGroupSelectorTerms=[{"tags": {"team": "red"}}, {"name": "nodes"}, {"id": "sg-1"}],
    ).template
    assert template.subnet_selector == (
        SelectorTerm(ids=("subnet-1",)),
        SelectorTerm(tags={"a": ("x,y",), "b": ("*",)}),
    )
    assert template.security_group_selector == (
        SelectorTerm(tags={"team": ("red",)}),
        SelectorTerm(names=("nodes",)),
        SelectorTerm(ids=("sg-1",)),
    )


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (
            {"amiSelectorTerms": [{"alias": "al2@lates"}]},
            "spec.amiSelectorTerms[0].alias: al2@lates: versions of this family are latest and",
        ),
        (
            {
                "blockDeviceMappings": [
                    {
                        "deviceName": "/dev/xvdb",
                        "rootVolume": True,
                        "ebs": {"volumeSize": "1Gi"},
                    }
                ]
            },
            "spec.blockDeviceMappings[0].rootVolume: not acted on yet",
        ),
        (
            {
                "amiSelectorTerms": [{"alias": "bottlerocket@latest"}],
                "kubelet": {"systemReserved": {"cpu": "100m", "pid": "1000"}},
            },
            "spec.kubelet.systemReserved.pid: left out: Bottlerocket has no setting for it",
        ),
    ],
)
def test_what_does_nothing_yet_is_reported(spec: dict[str, Any], words: str) -> None:
    (warning,) = read(**spec).warnings
    assert warning.startswith(words)


@pytest.mark.parametrize(
    ("field", "terms", "words"),
    [
        ("subnetSelectorTerms", [{"id": "subnet-1"}] * 31, ": write at most 30 entries"),
        (
            "subnetSelectorTerms",
            [{"tags": {}}],
            "[0].tags: write a tag name and a value, or * for any value",
        ),
        ("securityGroupSelectorTerms", [{"name": ""}], "[0].name: write at least one char"),
        ("amiSelectorTerms", [{}], "[0]: write alias, id, name, ssmParameter or tags"),
        ("amiSelectorTerms", [{"owner": "self"}], "[0]: write alias, id, name, ssmParameter or"),
        ("amiSelectorTerms", [{"name": "a", "owner": "me"}], "[0].owner: write an account numb"),
        (
            "amiSelectorTerms",
            [{"alias": "al2@" + "1" * 27}],
            "[0].alias: write family@version, such as",
        ),
    ],
)
def test_a_wrong_term_is_refused(field: str, terms: object, words: str) -> None:
    (found,) = wrong(**{field: terms})
    assert found.startswith(f"EC2NodeClass nodes.spec.{field}{words}"), found


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (
            {
                "amiSelectorTerms": [{"id": "ami-1"}],
                "blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"snapshotID": "s"}}],
            },
            "amiFamily: write the family that decides how",
        ),
        ({"instanceProfile": ""}, "instanceProfile: write a name, or remove the field"),
        ({"userData": "[a"}, "userData, line 1: is no YAML"),
        ({"instanceStorePolicy": "RAID1"}, "instanceStorePolicy: use one of RAID0"),
        ({"kubelet": {"containerRuntime": "containerd"}}, "kubelet.containerRuntime: unknown f"),
        ({"tags": {f"t{number}": "x" for number in range(42)}}, "tags: write at most 41"),
        *(
            ({name: value}, f"{name}: remove it")
            for name, value in {
                "capacityReservationSelectorTerms": [{"id": "cr-1"}],
                "connectionTracking": {"udpTimeout": 30},
                "cpuOptions": {"nestedVirtualization": "enabled"},
                "ipPrefixCount": 1,
                "launchTemplate": "mine",
                "networkInterfaces": [],
                "placementGroupSelector": {"name": "near"},
            }.items()
        ),
        ({"subnetSelector": {"a": "x"}}, "subnetSelector: write subnetSelectorTerms"),
    ],
)
def test_a_wrong_field_is_refused(spec: dict[str, Any], words: str) -> None:
    (found,) = wrong(**spec)
    assert found.startswith(f"EC2NodeClass nodes.spec.{words}"), found


def test_a_snapshot_alone_says_the_size_of_a_disk_that_pods_do_not_write_to() -> None:
    first, second = (
        {"deviceName": f"/dev/xvd{letter}", "ebs": {"snapshotID": f"snap-{letter}"}}
        for letter in "ab"
    )
    bottlerocket = {"amiSelectorTerms": [{"alias": "bottlerocket@latest"}]}
    found = read(blockDeviceMappings=[first], **bottlerocket).template.block_devices
    assert found == (
        BlockDevice(device_name="/dev/xvda", volume_size_gib=None, snapshot_id="snap-a"),
    )
    (refused,) = wrong(blockDeviceMappings=[first, second], **bottlerocket)
    assert refused == (
        "EC2NodeClass nodes.spec.blockDeviceMappings[1].ebs.volumeSize: write a size from 1Gi to "
        "64Ti, also for a snapshot: pods write to this disk"
    )


def test_user_data_is_not_read_where_the_family_is_not_known() -> None:
    (found,) = wrong(amiSelectorTerms=[{"id": "ami-1"}], userData="[a")
    assert "amiFamily" in found
    (found,) = wrong(amiSelectorTerms=[], userData="[a")
    assert "amiSelectorTerms" in found


@pytest.mark.parametrize(
    ("disk", "words"),
    [
        (
            {"deviceName": "/dev/xvda"},
            "ebs: write the volume's settings, at least volumeSize or snapshotID",
        ),
        ({"ebs": {"volumeSize": "1Gi"}}, "deviceName: write the device, such as /dev/xvda"),
    ],
)
def test_disk_that_api_servers_take_is_refused_where_it_says_too_little(
    disk: dict[str, Any], words: str
) -> None:
    (found,) = wrong(blockDeviceMappings=[disk])
    assert found == f"EC2NodeClass nodes.spec.blockDeviceMappings[0].{words}"
