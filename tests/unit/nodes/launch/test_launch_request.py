"""The exact requests of a launch, and the body that carries them."""

import base64
import json
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.dialect import OwnerKind
from shared.model.ec2.image_table import ImageTable
from shared.model.ec2.instance_types import CapacityType
from shared.model.ec2.launches import LaunchOption, SlotOwner
from shared.model.errors import PermanentError
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.provisioner import (
    BlockDevice,
    KubeletConfiguration,
    MetadataBound,
    MetadataOptions,
    NodeTemplate,
    Provisioner,
)
from shared.model.resources import Resources
from shared.model.values import replace
from shared.nodes.launch.launch_request import (
    LaunchContext,
    launch_body,
    launch_groups,
)
from shared.ports import ClusterEndpoint, Site, Subnet
from shared.snapshot.launch_body import LaunchAttempt, LaunchBody, PromisedSlot
from tests.builders import CATALOG, SHAPES, ZONES, option, planned, pod, provisioner, ref

AMD = "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/standard/recommended/image_id"
ARM = AMD.replace("x86_64", "arm64")
ENDPOINT = ClusterEndpoint(
    name="test",
    endpoint="https://test.example",
    certificate_authority="Q0E=",
    version="1.33",
    service_cidr="172.20.0.0/16",
)
BATCH = Taint(key="batch", value="yes", effect=Effect.NO_SCHEDULE)
WAIT = Taint(key="cilium", effect=Effect.NO_EXECUTE)


def context(owner: Provisioner | None = None, **changes: Any) -> LaunchContext:
    subnets = tuple(
        Subnet(subnet_id=f"subnet-{zone[-1]}", zone=zone, free_addresses=9) for zone in ZONES[:2]
    )
    fields: dict[str, Any] = {
        "cluster": "test",
        "provisioner": owner or provisioner(),
        "endpoint": ENDPOINT,
        "site": Site(subnets=subnets, security_groups=("sg-1",)),
        "images": ImageTable(
            kinds={
                instance_type.name: AMD if instance_type.labels[keys.ARCH] == "amd64" else ARM
                for instance_type in CATALOG
            },
            ids={AMD: "ami-amd", ARM: "ami-arm"},
        ),
        "profile": "nodes",
        **changes,
    }
    return LaunchContext(**fields)


_OWNER = SlotOwner(
    kind=OwnerKind.NODE_POOL,
    uid="u",
    taints=(Taint(key="a", value="b", effect=Effect.NO_EXECUTE),),
)


def attempt(*options: LaunchOption, **changes: Any) -> LaunchAttempt:
    slot = PromisedSlot(number=0, pods=(ref(pod()),), daemon_requests=Resources.of(cpu=100))
    fields: dict[str, Any] = {
        "cluster": "test",
        "plan_id": "p",
        "group": 1,
        "number": 0,
        "provisioner": "default",
        "labels": {keys.PROVISIONER_NAME: "default"},
        "slots": (slot, replace(slot, number=1)),
        "options": options or (option(),),
        "stamp": {keys.PROVISIONER_HASH: "ab12"},
        "owner": _OWNER,
        **changes,
    }
    return LaunchAttempt(**fields)


def node_config(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text[text.index("{") : text.rindex("}") + 1])
    return found


def test_nodes_that_one_fleet_can_launch_are_grouped() -> None:
    dear = option(200_000, name="m5.2xlarge")
    nodes = (
        planned(pod("a")),
        planned(pod("b"), options=(dear,)),
        planned(pod("c")),
        planned(pod("d"), labels={"team": "red"}),
        planned(pod("e"), fallback=(dear,)),
        planned(pod("f"), provisioner="other"),
    )
    grouped = [[ref.name for node in group for ref in node.pods] for group in launch_groups(nodes)]
    assert grouped == [["a", "c"], ["b"], ["d"], ["e"], ["f"]]


def test_the_request_names_each_option_in_its_zone_and_asks_for_all_nodes_at_once() -> None:
    options = (
        option(68_000, name="c6g.large"),
        option(96_000),
        option(96_001, zone=ZONES[1]),
        option(96_002, zone=ZONES[2]),
        option(96_002, name="x9.unknown"),
    )
    body = launch_body(context(), attempt(*options))
    request = body.request
    assert request["Type"] == "instant"
    assert request["TargetCapacitySpecification"] == {
        "TotalTargetCapacity": 2,
        "DefaultTargetCapacityType": "on-demand",
    }
    assert request["OnDemandOptions"] == {"AllocationStrategy": "lowest-price"}
    asked = {
        body.templates[config["LaunchTemplateSpecification"]["LaunchTemplateName"]]["ImageId"]: [
            (override["InstanceType"], override["SubnetId"]) for override in config["Overrides"]
        ]
        for config in request["LaunchTemplateConfigs"]
    }
    assert asked == {
        "ami-arm": [("c6g.large", "subnet-a")],
        "ami-amd": [("m5.large", "subnet-a"), ("m5.large", "subnet-b")],
    }


def test_spot_is_bought_where_it_is_cheap_and_lasts() -> None:
    body = launch_body(context(), attempt(option(capacity_type=CapacityType.SPOT)))
    assert body.request["SpotOptions"] == {"AllocationStrategy": "price-capacity-optimized"}
    assert "OnDemandOptions" not in body.request


def test_tags_prove_whose_it_is_and_ours_win() -> None:
    template = replace(provisioner().template, tags={"Name": "mine", keys.TAG_PLAN: "forged"})
    body = launch_body(context(provisioner(template=template)), attempt())
    by_kind = {
        tag_specification["ResourceType"]: {
            tag["Key"]: tag["Value"] for tag in tag_specification["Tags"]
        }
        for tag_specification in body.request["TagSpecifications"]
    }
    assert set(by_kind) == {"instance", "volume", "fleet"}
    assert by_kind["instance"] == {
        "Name": "mine",
        keys.PROVISIONER_NAME: "default",
        "kubernetes.io/cluster/test": "owned",
        keys.TAG_CLUSTER: "test",
        keys.TAG_PLAN: "p",
        keys.TAG_GROUP: "1",
        keys.TAG_ATTEMPT: "0",
    }


def test_the_client_token_is_of_plan_group_and_attempt() -> None:
    same = [launch_body(context(), attempt()).request["ClientToken"] for _ in range(2)]
    others = [
        launch_body(context(), attempt(**change)).request["ClientToken"]
        for change in ({"number": 1}, {"group": 2}, {"plan_id": "q"}, {"cluster": "other"})
    ]
    assert len({*same, *others}) == 5
    assert len(same[0]) == 64


def test_the_template_carries_how_machines_are_made() -> None:
    disk = BlockDevice(device_name="/dev/xvdb", volume_size_gib=50, iops=4000, kms_key_id="key")
    copied = BlockDevice(device_name="/dev/xvdc", volume_size_gib=None, snapshot_id="snap-1")
    template = replace(provisioner().template, block_devices=(disk, copied))
    (data,) = launch_body(context(provisioner(template=template)), attempt()).templates.values()
    assert data["BlockDeviceMappings"] == [
        {
            "DeviceName": "/dev/xvdb",
            "Ebs": {
                "VolumeSize": 50,
                "VolumeType": "gp3",
                "Encrypted": True,
                "DeleteOnTermination": True,
                "Iops": 4000,
                "KmsKeyId": "key",
            },
        },
        {
            "DeviceName": "/dev/xvdc",
            "Ebs": {
                "VolumeType": "gp3",
                "Encrypted": True,
                "DeleteOnTermination": True,
                "SnapshotId": "snap-1",
            },
        },
    ]
    (plain,) = launch_body(context(), attempt()).templates.values()
    config = node_config(base64.b64decode(plain["UserData"]).decode())
    flags = config["spec"]["kubelet"]["flags"]
    assert flags == [
        "--node-labels=karpenter.sh/capacity-type=on-demand,karpenter.sh/provisioner-name=default"
    ]


def test_templates_are_named_by_what_is_in_them() -> None:
    (one,) = launch_body(context(), attempt()).templates
    (again,) = launch_body(context(), attempt(number=5)).templates
    (other,) = launch_body(context(), attempt(labels={"team": "red"})).templates
    assert one == again != other
    assert one.startswith("Dovetail-test-")


def test_a_launch_template_of_the_users_own_is_taken_as_it_is() -> None:
    owner = provisioner(template=NodeTemplate(launch_template="mine"))
    body = launch_body(context(owner, images=ImageTable()), attempt())
    assert body.templates == {}
    (config,) = body.request["LaunchTemplateConfigs"]
    assert config["LaunchTemplateSpecification"] == {
        "LaunchTemplateName": "mine",
        "Version": "$Latest",
    }
    assert config["Overrides"] == [{"InstanceType": "m5.large", "SubnetId": "subnet-a"}]


@pytest.mark.parametrize(
    "changes", [{"images": ImageTable()}, {"site": Site(subnets=(), security_groups=())}]
)
def test_a_launch_without_subnet_or_image_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(PermanentError, match="provisioner default: no subnet and image for m5"):
        launch_body(context(**changes), attempt())


@pytest.mark.parametrize(
    ("family", "devices"),
    [
        ("AL2023", [("/dev/xvda", 20)]),
        ("AL2", [("/dev/xvda", 20)]),
        ("Bottlerocket", [("/dev/xvda", 4), ("/dev/xvdb", 20)]),
        ("Ubuntu", [("/dev/sda1", 20)]),
        ("Custom", None),
    ],
)
def test_each_family_has_its_own_disks(family: str, devices: list[tuple[str, int]] | None) -> None:
    template = replace(provisioner().template, ami_family=family)
    (data,) = launch_body(context(provisioner(template=template)), attempt()).templates.values()
    found = data.get("BlockDeviceMappings")
    if devices is None:
        assert found is None
    else:
        assert [(entry["DeviceName"], entry["Ebs"]["VolumeSize"]) for entry in found] == devices
        assert all(entry["Ebs"]["Encrypted"] for entry in found)


def pod_limits(body: LaunchBody) -> dict[str, int | None]:
    """Return the maxPods of the user data each instance type boots with."""
    return {
        override["InstanceType"]: node_config(
            base64.b64decode(
                body.templates[config["LaunchTemplateSpecification"]["LaunchTemplateName"]][
                    "UserData"
                ]
            ).decode()
        )["spec"]["kubelet"]["config"].get("maxPods")
        for config in body.request["LaunchTemplateConfigs"]
        for override in config["Overrides"]
    }


@pytest.mark.parametrize(
    ("of_the_user", "expected"),
    [
        (None, {"c6g.large": None, "m5.large": 110, "m5.2xlarge": 234}),
        (20, {"c6g.large": 20, "m5.large": 20, "m5.2xlarge": 20}),
    ],
)
def test_kubelet_gets_the_pod_limit_that_its_image_would_not_compute(
    of_the_user: int | None, expected: dict[str, int | None]
) -> None:
    known = dict(SHAPES)
    for name, limit in (("m5.large", 110), ("m5.2xlarge", 234)):
        capacity = Resources.from_mapping({**dict(known[name].capacity.items), "pods": limit})
        known[name] = replace(known[name], capacity=capacity, image_max_pods=29)
    owner = provisioner(kubelet=KubeletConfiguration(max_pods=of_the_user))
    options = (option(name="c6g.large"), option(), option(name="m5.2xlarge"))
    body = launch_body(context(owner, instance_types=known), attempt(*options))
    assert pod_limits(body) == expected


def test_a_body_is_read_back_as_it_was_written() -> None:
    later = (option(capacity_type=CapacityType.SPOT),)
    body = launch_body(context(), attempt(fallback=later))
    again = LaunchBody.from_bytes(body.to_bytes())
    assert again.to_bytes() == body.to_bytes()
    assert again.attempt == body.attempt
    assert again.request == body.request
    assert again.sha256() == body.sha256()
    assert len(body.sha256()) == 64
    assert body.attempt.key == "launches/test/p/1-0.json"


def test_the_stricter_of_attachment_and_provisioner_decides_about_metadata() -> None:
    asked = provisioner(
        template=NodeTemplate(
            metadata_options=MetadataOptions(http_put_response_hop_limit=3, http_tokens="optional")
        )
    )
    strict = MetadataBound(hop_limit=1, tokens_required=True)

    def made(owner: Provisioner, bound: MetadataBound) -> tuple[int, str]:
        (data,) = launch_body(context(owner, metadata=bound), attempt()).templates.values()
        options = data["MetadataOptions"]
        return options["HttpPutResponseHopLimit"], options["HttpTokens"]

    assert made(asked, MetadataBound()) == (3, "optional")
    assert made(asked, strict) == (1, "required")
    assert made(provisioner(), MetadataBound()) == (2, "required")
    assert made(provisioner(), MetadataBound(hop_limit=5)) == (2, "required")


def test_a_public_address_is_asked_for_on_the_interface_that_has_the_groups() -> None:
    wanted = replace(provisioner().template, public_ip=False)
    (data,) = launch_body(context(provisioner(template=wanted)), attempt()).templates.values()
    assert data["NetworkInterfaces"] == [
        {"AssociatePublicIpAddress": False, "DeviceIndex": 0, "Groups": ["sg-1"]}
    ]
    assert "SecurityGroupIds" not in data


def test_an_instance_of_an_ipv6_cluster_has_an_ipv6_address_that_it_keeps() -> None:
    (data,) = launch_body(
        context(endpoint=replace(ENDPOINT, service_cidr="fd30::/108")), attempt()
    ).templates.values()
    (interface,) = data["NetworkInterfaces"]
    assert interface == {
        "DeviceIndex": 0,
        "Groups": ["sg-1"],
        "Ipv6AddressCount": 1,
        "PrimaryIpv6": True,
    }
