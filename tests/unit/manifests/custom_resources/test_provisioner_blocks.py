"""The kubelet's configuration and the provider block of a Provisioner."""

from typing import Any

import pytest

from shared.instance_types.ami_families import refuse_wrong_user_data
from shared.manifests.api.selector_map import selector_of
from shared.manifests.custom_resources.provisioners import decode_provisioner, decode_provisioners
from shared.model.ec2.selectors import SelectorTerm
from shared.model.provisioner import BlockDevice, MetadataOptions
from shared.model.resources import Resources
from tests.unit.manifests.documents import one_problem, provisioner


def test_a_kubelet_configuration_is_read_whole() -> None:
    found = decode_provisioner(
        provisioner(
            kubeletConfiguration={
                "clusterDNS": ["10.0.0.10", "fd00::a"],
                "containerRuntime": "containerd",
                "maxPods": 20,
                "podsPerCore": 2,
                "systemReserved": {"cpu": "100m", "memory": "100Mi", "pid": "1000"},
                "kubeReserved": {"cpu": "200m", "ephemeral-storage": "1Gi"},
                "evictionHard": {"memory.available": "5%", "nodefs.available": "10Gi"},
                "evictionSoft": {"memory.available": "500Mi"},
                "evictionSoftGracePeriod": {"memory.available": "1m30s"},
                "evictionMaxPodGracePeriod": 60,
                "imageGCHighThresholdPercent": 85,
                "imageGCLowThresholdPercent": 80,
                "cpuCFSQuota": True,
            }
        )
    ).kubelet
    assert found.cluster_dns == ("10.0.0.10", "fd00::a")
    assert (found.max_pods, found.pods_per_core) == (20, 2)
    assert found.system_reserved["cpu"] == 100
    assert found.kube_reserved == Resources.from_mapping({"cpu": 200, "ephemeral-storage": 2**30})
    assert found.eviction_hard == {"memory.available": "5%", "nodefs.available": "10Gi"}
    assert found.eviction_soft_grace_period == {"memory.available": "1m30s"}
    assert (found.eviction_max_pod_grace_period, found.cpu_cfs_quota) == (60, True)
    assert (found.image_gc_high_percent, found.image_gc_low_percent) == (85, 80)


@pytest.mark.parametrize(
    ("kubelet", "field", "words"),
    [
        ({"maxPod": 3}, "maxPod", "write maxPods"),
        ({"maxPods": -1}, "maxPods", "from 0 to 2147483647"),
        ({"podsPerCore": 2**31}, "podsPerCore", "from 0 to 2147483647"),
        ({"containerRuntime": "dockerd"}, "containerRuntime", "containerd"),
        ({"clusterDNS": ["dns"]}, "clusterDNS[0]", "'dns' is no IP address"),
        (
            {"clusterDNS": ["fe80::1%x --v=9"]},
            "clusterDNS[0]",
            "'fe80::1%x --v=9' is no IP address",
        ),
        (
            {"evictionHard": {"memory.available": "\u0665%"}},
            "evictionHard.memory.available",
            "write a quantity such as",
        ),
        ({"clusterDNS": "10.0.0.10"}, "clusterDNS", "list of strings"),
        ({"systemReserved": {"gpu": 1}}, "systemReserved.gpu", "unknown field"),
        ({"kubeReserved": {"cpu": "-1"}}, "kubeReserved.cpu", "0 or more"),
        ({"evictionHard": {"memory": "5%"}}, "evictionHard.memory", "memory.available"),
        ({"evictionHard": {"memory.available": "101%"}}, "evictionHard.memory.available", "100%"),
        ({"evictionHard": {"memory.available": "much"}}, "evictionHard.memory.available", "100Mi"),
        ({"evictionHard": {"memory.available": "-1"}}, "evictionHard.memory.available", "100Mi"),
        ({"evictionHard": {"memory.available": "0"}}, "evictionHard.memory.available", "100Mi"),
        (
            {"evictionSoft": {"memory.available": "5%"}},
            "evictionSoftGracePeriod.memory.available",
            "needs its grace period",
        ),
        (
            {"evictionSoftGracePeriod": {"memory.available": "1m"}},
            "evictionSoftGracePeriod.memory.available",
            "no evictionSoft threshold",
        ),
        (
            {
                "evictionSoft": {"memory.available": "5%"},
                "evictionSoftGracePeriod": {"memory.available": "90"},
            },
            "evictionSoftGracePeriod.memory.available",
            "1m30s",
        ),
        (
            {
                "evictionSoft": {"memory.available": "5%"},
                "evictionSoftGracePeriod": {"memory.available": "9999999h"},
            },
            "evictionSoftGracePeriod.memory.available",
            "1m30s",
        ),
        (
            {"imageGCHighThresholdPercent": 80, "imageGCLowThresholdPercent": 80},
            "imageGCHighThresholdPercent",
            "more than the low threshold, 80",
        ),
        (
            {"imageGCHighThresholdPercent": 75},
            "imageGCHighThresholdPercent",
            "more than the low threshold, which is 80 unless it is set",
        ),
        (
            {"imageGCLowThresholdPercent": 90},
            "imageGCLowThresholdPercent",
            "less than the high threshold, which is 85 unless it is set",
        ),
    ],
)
def test_a_wrong_kubelet_configuration_is_refused(
    kubelet: dict[str, Any], field: str, words: str
) -> None:
    raw = provisioner(kubeletConfiguration=kubelet)
    one_problem(raw, f"spec.kubeletConfiguration.{field}", words)


def test_a_provider_block_is_read_whole() -> None:
    found = decode_provisioner(
        provisioner(
            provider={
                "apiVersion": "extensions.karpenter.sh/v1alpha1",
                "kind": "AWS",
                "instanceProfile": "nodes",
                "amiFamily": "AL2023",
                "subnetSelector": {"Name": "a, b", "karpenter.sh/discovery": "*"},
                "securityGroupSelector": {"aws::ids": "sg-1,sg-2"},
                "tags": {"team": "x"},
                "metadataOptions": {"httpTokens": "optional", "httpPutResponseHopLimit": 1},
                "blockDeviceMappings": [
                    {
                        "deviceName": "/dev/xvda",
                        "ebs": {
                            "volumeSize": "100Gi",
                            "volumeType": "io2",
                            "iops": 5000,
                            "throughput": 200,
                            "encrypted": False,
                            "deleteOnTermination": True,
                            "kmsKeyID": "key",
                            "snapshotID": "snap",
                        },
                    },
                    {"deviceName": "/dev/xvdb", "ebs": {"volumeSize": "20G"}},
                    {"deviceName": "/dev/xvdc", "ebs": {"snapshotID": "snap-c"}},
                ],
            }
        )
    ).template
    assert found.instance_profile == "nodes"
    assert found.subnet_selector == (
        SelectorTerm(tags={"Name": ("a", "b"), "karpenter.sh/discovery": ("*",)}),
    )
    assert found.security_group_selector == (SelectorTerm(ids=("sg-1", "sg-2")),)
    assert found.tags == {"team": "x"}
    assert found.metadata_options == MetadataOptions(
        http_tokens="optional", http_put_response_hop_limit=1
    )
    assert found.block_devices == (
        BlockDevice(
            device_name="/dev/xvda",
            volume_size_gib=100,
            volume_type="io2",
            iops=5000,
            throughput=200,
            encrypted=False,
            kms_key_id="key",
            snapshot_id="snap",
        ),
        BlockDevice(device_name="/dev/xvdb", volume_size_gib=19),
        BlockDevice(device_name="/dev/xvdc", volume_size_gib=None, snapshot_id="snap-c"),
    )


def test_images_are_chosen_by_tags_names_and_owners() -> None:
    found = decode_provisioner(
        provisioner(
            provider={
                "amiFamily": "Custom",
                "amiSelector": {"aws::name": "nodes-*", "aws::owners": "self, 123456789012"},
                "userData": "anything",
                "detailedMonitoring": True,
                "context": "ctx",
            }
        )
    ).template
    assert found.ami_selector == (
        SelectorTerm(names=("nodes-*",), owners=("self", "123456789012")),
    )
    assert (found.user_data, found.detailed_monitoring, found.context) == ("anything", True, "ctx")


def test_elsewhere_owners_and_names_are_tags_like_others() -> None:
    selector = {"aws::owners": "me", "aws::name": "x"}
    found = decode_provisioner(provisioner(provider={"subnetSelector": selector})).template
    assert found.subnet_selector == selector_of(selector)


@pytest.mark.parametrize(
    "provider",
    [
        {"userData": "export TOKEN=s3cret"},
        {"userData": "#!/bin/sh\nTOKEN=s3cret", "launchTemplate": "mine"},
        {"userData": "[settings]\ntoken = s3cret", "amiFamily": "Bottlerocket"},
        {"userData": ["TOKEN=s3cret"]},
        {"userdata": "#!/bin/sh\nTOKEN=s3cret"},
        {"user_data": {"write_files": "s3cret"}},
    ],
)
def test_conditions_and_events_show_nothing_of_user_data(provider: dict[str, Any]) -> None:
    usable, (refused,) = decode_provisioners(
        [provisioner(provider=provider)], check=refuse_wrong_user_data
    )
    assert usable == ()
    assert "s3cret" not in " ".join(refused.reasons)
    assert "serdata" in refused.reasons[0].lower().replace("_", "")


def test_a_custom_launch_template_excludes_other_fields() -> None:
    found = decode_provisioner(
        provisioner(provider={"launchTemplate": "mine", "subnetSelector": {"a": "b"}})
    )
    assert found.template.launch_template == "mine"
    both = provisioner(provider={"launchTemplate": "mine", "instanceProfile": "p"})
    one_problem(both, "spec.provider.instanceProfile", "launchTemplate already decides")


def test_a_reservation_that_the_family_cannot_make_is_reported() -> None:
    kubelet = {"kubeReserved": {"pid": "1k", "cpu": "1"}, "systemReserved": {"pid": 1000}}
    raw = provisioner(provider={"amiFamily": "Bottlerocket"}, kubeletConfiguration=kubelet)
    assert decode_provisioner(raw).warnings == tuple(
        f"spec.kubeletConfiguration.{field}.pid: left out: Bottlerocket has no setting for it"
        for field in kubelet
    )
    assert decode_provisioner(provisioner(kubeletConfiguration=kubelet)).warnings == ()


@pytest.mark.parametrize(
    ("provider", "field", "words"),
    [
        ({"subnetSelectors": {}}, "subnetSelectors", "write subnetSelector"),
        ({"amiFamily": "Custom"}, "amiFamily", "add amiSelector"),
        ({"amiSelector": {"aws-ids": "sg-1"}}, "amiSelector.aws-ids", "begin with ami-"),
        ({"amiSelector": {"aws::owners": "me"}}, "amiSelector.aws::owners", "account numbers"),
        ({"detailedMonitoring": "yes"}, "detailedMonitoring", "true or false"),
        (
            {"amiFamily": "Bottlerocket", "userData": "[settings]\nx"},
            "userData, line 2",
            "is no TOML",
        ),
        ({"userData": "x"}, "userData, line 1", "a script that begins with #!"),
        ({"amiFamily": "Gentoo"}, "amiFamily", "use one of AL2023"),
        ({"instanceProfile": 7}, "instanceProfile", "string"),
        ({"subnetSelector": {"": "b"}}, "subnetSelector.", "tag name"),
        ({"subnetSelector": {"a": ""}}, "subnetSelector.a", "tag name"),
        ({"subnetSelector": {"a": "b,,c"}}, "subnetSelector.a", "tag name"),
        ({"subnetSelector": {"aws-ids": "sg-1"}}, "subnetSelector.aws-ids", "begin with subnet-"),
        (
            {"subnetSelector": {"aws-ids": "subnet-1", "a": "b"}},
            "subnetSelector.aws-ids",
            "remove the other keys",
        ),
        ({"tags": {"": "x"}}, "tags.", "1 to 128"),
        ({"tags": {f"t{number}": "x" for number in range(42)}}, "tags", "at most 41"),
        ({"tags": {"AWS:x": "y"}}, "tags.AWS:x", "another name"),
        ({"tags": {"a": "x" * 257}}, "tags.a", "1 to 128"),
        ({"tags": {"kubernetes.io/cluster/c": "x"}}, "tags.kubernetes.io/cluster/c", "another"),
        ({"tags": {"dovetail.dev/slot": "x"}}, "tags.dovetail.dev/slot", "another name"),
        ({"metadataOptions": {"httpToken": "x"}}, "metadataOptions.httpToken", "httpTokens"),
        ({"metadataOptions": {"httpTokens": "no"}}, "metadataOptions.httpTokens", "required"),
        (
            {"metadataOptions": {"httpPutResponseHopLimit": 65}},
            "metadataOptions.httpPutResponseHopLimit",
            "from 1 to 64",
        ),
        (
            {"blockDeviceMappings": [{"ebs": {"volumeSize": "1Gi"}}]},
            "blockDeviceMappings[0].deviceName",
            "/dev/xvda",
        ),
        (
            {"blockDeviceMappings": [{"deviceName": "", "ebs": {"volumeSize": "1Gi"}}]},
            "blockDeviceMappings[0].deviceName",
            "/dev/xvda",
        ),
        (
            {"blockDeviceMappings": [{"deviceName": "d", "ebs": {"volumeSize": "large"}}]},
            "blockDeviceMappings[0].ebs.volumeSize",
            "from 1Gi to 64Ti",
        ),
        (
            {"blockDeviceMappings": [{"deviceName": "/dev/xvda"}]},
            "blockDeviceMappings[0].ebs",
            "volumeSize",
        ),
        (
            {"blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"snapshotID": "s"}}]},
            "blockDeviceMappings[0].ebs.volumeSize",
            "write a size from 1Gi to 64Ti, also for a snapshot: pods write to this disk",
        ),
        (
            {"blockDeviceMappings": [{"deviceName": "d", "ebs": {"snapshotID": ""}}]},
            "blockDeviceMappings[0].ebs.volumeSize",
            "write a size from 1Gi to 64Ti, or a snapshotID",
        ),
        (
            {"blockDeviceMappings": [{"deviceName": "d", "ebs": {"volumeSize": "65Ti"}}]},
            "blockDeviceMappings[0].ebs.volumeSize",
            "from 1Gi to 64Ti",
        ),
        (
            {
                "blockDeviceMappings": [
                    {"deviceName": "d", "ebs": {"volumeSize": "1Gi", "volumeType": "gp9"}}
                ]
            },
            "blockDeviceMappings[0].ebs.volumeType",
            "gp3",
        ),
    ],
)
def test_a_wrong_provider_is_refused(provider: dict[str, Any], field: str, words: str) -> None:
    one_problem(provisioner(provider=provider), f"spec.provider.{field}", words)
