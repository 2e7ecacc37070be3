"""What machines of NodePools are made of, and what they are told at boot."""

from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.values import replace
from tests.builders import CATALOG, GIB, ZONES, instance_type, offering, pod
from tests.karpenter_cases.lifecycle.births import (
    ACCELERATED,
    bought,
    data_of,
    image,
    node_config,
    only_data,
    parts,
    request,
    settings,
    storing,
    text_of,
)
from tests.karpenter_cases.v1.worlds import AMD, changed_class, launched, named_pool, world
from tests.unit.manifests.documents import wants
from tests.unit.worlds import MINUTE

CNI = {"key": "cni", "effect": "NoExecute"}
SCRIPT = "#!/bin/bash\necho before\n"
LARGE = (instance_type("m5.large"),)
SPOT = wants(keys.CAPACITY_TYPE, "In", "spot")


def alias(family: str, **more: Any) -> dict[str, Any]:
    return {"amiSelectorTerms": [{"alias": f"{family}@latest"}], **more}


def test_ours_comes_after_the_users_part_and_tells_all_taints() -> None:
    text = text_of(launched({"startupTaints": [CNI]}, userData=SCRIPT))
    first, last = parts(text)
    assert "echo before" in first
    assert last.strip()
    taints = node_config(text)["spec"]["kubelet"]["config"]["registerWithTaints"]
    found = {(taint["key"], taint["effect"]) for taint in taints}
    assert found == {("cni", "NoExecute"), (keys.UNREGISTERED_TAINT, "NoExecute")}


def test_settings_of_bottlerocket_are_merged_and_broken_ones_launch_nothing() -> None:
    own = '[settings.kubernetes]\ncluster-name = "theirs"\nlog-level = 3\n'
    found = settings(text_of(launched(**alias("bottlerocket", userData=own))))
    assert (found["cluster-name"], found["log-level"]) == ("test", 3)
    broken = launched(**alias("bottlerocket", userData="[settings"))
    assert broken.alive == []


def test_user_data_of_own_images_is_untouched() -> None:
    there = world(
        named_pool(),
        changed_class(amiSelectorTerms=[{"id": "ami-1"}], amiFamily="Custom", userData=SCRIPT),
    )
    there.cloud.images = (image("ami-1"),)
    assert text_of(bought(there)) == SCRIPT


@pytest.mark.parametrize(
    ("family", "words"),
    [
        ("al2023", '"strategy": "RAID0"'),
        ("al2", "--local-disks raid0"),
        ("bottlerocket", "ephemeral-storage"),
    ],
)
def test_local_disks_become_storage_of_pods(family: str, words: str) -> None:
    plain_type = instance_type("m5d.large")
    nvme = replace(plain_type, labels={**plain_type.labels, keys.INSTANCE_LOCAL_NVME: "75"})
    described = changed_class(**alias(family), instanceStorePolicy="RAID0")
    raid = world(named_pool(), described, types=[nvme])
    assert words in text_of(bought(raid, storing("a", 40)))
    plain = world(named_pool(), changed_class(**alias(family)), types=[nvme])
    assert bought(plain, storing("a", 40)).alive == []


def test_a_machine_has_one_hop_and_no_detailed_monitoring() -> None:
    data = only_data(launched())
    assert data["MetadataOptions"]["HttpPutResponseHopLimit"] == 1
    assert "Monitoring" not in data
    assert only_data(launched(detailedMonitoring=True))["Monitoring"] == {"Enabled": True}


def test_tags_are_on_all_that_a_launch_makes() -> None:
    spec = {"requirements": [AMD, SPOT]}
    there = launched(spec, tags={"cost-centre": "7", "Name": "mine"})
    tagged = [*request(there)["TagSpecifications"], *only_data(there)["TagSpecifications"]]
    assert {entry["ResourceType"] for entry in tagged} == {
        "fleet",
        "instance",
        "network-interface",
        "spot-instances-request",
        "volume",
    }
    for entry in tagged:
        tags = {tag["Key"]: tag["Value"] for tag in entry["Tags"]}
        assert (tags["cost-centre"], tags["Name"]) == ("7", "mine")


def test_each_image_has_a_template_for_its_own_types() -> None:
    there = world(named_pool(spec={"requirements": []}), types=(*CATALOG, *ACCELERATED))
    bought(there, pod("a"), pod("gpu", cpu=3800, extra={"nvidia.com/gpu": 1}))
    made = [data["ImageId"] for data in data_of(there)]
    assert len(made) == len(set(made)) > 1
    own = {"amiSelectorTerms": [{"tags": {"team": "red"}}], "amiFamily": "AL2023"}
    newest = world(named_pool(), changed_class(**own), types=LARGE)
    newest.cloud.images = (image("ami-1", team="red"), image("ami-2", days=1, team="red"))
    assert only_data(bought(newest))["ImageId"] == "ami-2"
    none = world(named_pool(), changed_class(**own), types=LARGE)
    none.cloud.images = (image("ami-1"),)
    assert bought(none).alive == []
    assert "amiSelectorTerms finds none" in none.messages("FailedProvisioning")[0]


def test_soft_eviction_takes_no_room() -> None:
    soft = {
        "evictionSoft": {"memory.available": "50%"},
        "evictionSoftGracePeriod": {"memory.available": "1m"},
    }
    there = world(named_pool(), changed_class(kubelet=soft), types=LARGE)
    assert len(bought(there, pod("a", memory=6 * GIB)).alive) == 1
    hard = {"evictionHard": {"memory.available": "50%"}}
    full = world(named_pool(), changed_class(kubelet=hard), types=LARGE)
    assert bought(full, pod("a", memory=6 * GIB)).alive == []


@pytest.mark.parametrize(("family", "count"), [("al2023", 0), ("al2", 1)])
def test_the_first_arm_machines_do_not_boot_the_new_image(family: str, count: int) -> None:
    first = instance_type("a1.large", arch="arm64")
    there = world(
        named_pool(spec={"requirements": []}), changed_class(**alias(family)), types=[first]
    )
    assert len(bought(there).alive) == count


def test_what_ec2_was_out_of_is_asked_for_again() -> None:
    there = world(named_pool(), types=LARGE)
    there.cloud.run_out_of(*(offering("m5.large", zone) for zone in ZONES))
    bought(there)
    assert there.alive == []
    assert any("EC2 is out of capacity" in event.message for event in there.cluster.kube_events)
    there.cloud.ec2.pools.reset()
    there.advance(30 * MINUTE)
    there.provision()
    assert len(there.alive) == 1
