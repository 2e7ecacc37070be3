"""What machines are told at boot."""

from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.kubernetes.taints import Toleration
from tests.builders import CATALOG, pod
from tests.karpenter_cases.lifecycle.births import (
    ACCELERATED,
    AMD,
    ANY_TYPE,
    arguments,
    bought,
    data_of,
    image,
    is_bound,
    launched,
    node_config,
    only_data,
    parts,
    provisioner,
    settings,
    text_of,
    world,
)
from tests.unit.manifests.documents import template
from tests.unit.worlds import World

RESERVED = {"cpu": "500m", "memory": "1Gi", "ephemeral-storage": "2Gi"}
THRESHOLDS = {"memory.available": "10%", "nodefs.available": "15%", "nodefs.inodesFree": "5%"}
GRACE = {"memory.available": "1m", "nodefs.available": "3m", "nodefs.inodesFree": "5m"}
SCRIPT = "#!/bin/bash\necho before\n"
MIXED = f"""\
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="BOUND"

--BOUND
Content-Type: text/x-shellscript

{SCRIPT}
--BOUND--
"""
TYPE_FIRST = MIXED.replace("MIME-Version: 1.0\n", "").replace('BOUND"', 'BOUND"\nMIME-Version: 1.0')
TOML = """\
[settings.kubernetes]
cluster-name = "theirs"
log-level = 3
[settings.kubernetes.node-labels]
"own" = "kept"
[settings.kubernetes.node-taints]
"own" = ["true:NoSchedule"]
[settings.host-containers.admin]
enabled = true
"""
ANYTHING = Toleration(operator="Exists")


def kubelet(family: str, **fields: Any) -> str:
    """Return what a machine of a family is told when its kubelet has these settings."""
    return text_of(launched({"kubeletConfiguration": fields}, amiFamily=family))


def scripted(release: str, **kubelet: Any) -> list[str]:
    """Return the arguments of the script, as told by a `provider` or by an AWSNodeTemplate."""
    fields: dict[str, Any] = {"kubeletConfiguration": kubelet} if kubelet else {}
    if release == "old":
        return arguments(text_of(launched({**fields, "provider": {"amiFamily": "AL2"}})))
    return arguments(text_of(launched(fields, amiFamily="AL2")))


def extra(family: str = "AL2", **fields: Any) -> list[str]:
    """Return the kubelet's flags on an image with a script."""
    return arguments(kubelet(family, **fields))[-1].split()


def flag(flags: list[str], name: str) -> str:
    (one,) = [value for value in flags if value.startswith(f"--{name}=")]
    return one.removeprefix(f"--{name}=")


def each(text: str, sign: str) -> dict[str, str]:
    return dict(part.split(sign) for part in text.split(","))


# --- the script of older images


@pytest.mark.parametrize("release", ["old", "new"])
def test_the_limit_by_network_interfaces_is_left_to_the_image(release: str) -> None:
    found = scripted(release)
    assert "--use-max-pods" not in found
    assert "--max-pods" not in found[-1]


@pytest.mark.parametrize(("release", "most"), [("old", 110), ("new", 110), ("own", 10)])
def test_a_limit_of_the_users_replaces_that_by_network_interfaces(release: str, most: int) -> None:
    found = scripted(release, maxPods=most)
    assert found[found.index("--use-max-pods") + 1] == "false"
    assert flag(found[-1].split(), "max-pods") == str(most)


@pytest.mark.parametrize("release", ["old", "new"])
def test_dns_address_of_the_users_is_reported(release: str) -> None:
    found = scripted(release, clusterDNS=["10.0.10.100"])
    assert found[found.index("--dns-cluster-ip") + 1] == "10.0.10.100"


def test_the_dns_address_of_the_cluster_is_reported() -> None:
    found = arguments(text_of(launched(amiFamily="AL2")))
    assert found[found.index("--dns-cluster-ip") + 1] == "172.20.0.10"


def test_addresses_of_the_sixth_version_are_reported() -> None:
    there = world(provisioner(), template(amiFamily="AL2"))
    there.cloud.service_cidr = "fd4b:121b:812b::/108"
    found = arguments(text_of(bought(there)))
    assert found[found.index("--dns-cluster-ip") + 1] == "fd4b:121b:812b::a"
    assert found[found.index("--ip-family") + 1] == "ipv6"


@pytest.mark.parametrize(
    ("field", "name"), [("systemReserved", "system-reserved"), ("kubeReserved", "kube-reserved")]
)
def test_what_is_reserved_is_reported(field: str, name: str) -> None:
    fields: dict[str, Any] = {field: RESERVED}
    assert each(flag(extra(**fields), name), "=") == RESERVED


def test_hard_thresholds_are_reported() -> None:
    assert each(flag(extra(evictionHard=THRESHOLDS), "eviction-hard"), "<") == THRESHOLDS


def test_soft_thresholds_are_reported() -> None:
    found = extra(evictionSoft=THRESHOLDS, evictionSoftGracePeriod=GRACE)
    assert each(flag(found, "eviction-soft"), "<") == THRESHOLDS


def test_grace_periods_are_reported() -> None:
    found = extra(evictionSoft=THRESHOLDS, evictionSoftGracePeriod=GRACE)
    assert each(flag(found, "eviction-soft-grace-period"), "=") == GRACE


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"evictionMaxPodGracePeriod": 300}, "--eviction-max-pod-grace-period=300"),
        ({"podsPerCore": 2}, "--pods-per-core=2"),
        ({"imageGCHighThresholdPercent": 90}, "--image-gc-high-threshold=90"),
        ({"imageGCLowThresholdPercent": 50}, "--image-gc-low-threshold=50"),
        ({"cpuCFSQuota": False}, "--cpu-cfs-quota=false"),
    ],
    ids=["grace", "per-core", "gc-high", "gc-low", "quota"],
)
def test_setting_of_the_kubelet_is_reported(fields: dict[str, Any], expected: str) -> None:
    assert expected in extra(**fields)


def test_two_limits_on_pods_are_both_reported() -> None:
    assert {"--pods-per-core=2", "--max-pods=100"} <= set(extra(podsPerCore=2, maxPods=100))


@pytest.mark.parametrize("device", ["", "aws.amazon.com/neuron", "nvidia.com/gpu"])
def test_the_runtime_is_containerd_as_the_image_has_it(device: str) -> None:
    there = world(
        provisioner(kubeletConfiguration={"containerRuntime": "containerd"}),
        template(amiFamily="AL2"),
        types=(*CATALOG, *ACCELERATED),
    )
    bought(there, pod("a", extra={device: 1} if device else {}))
    assert len(there.cloud.fleets) == 1
    # The script starts containerd unless it is told another one; later versions know no other.
    assert "--container-runtime" not in text_of(there)


def test_labels_a_kubelet_may_not_set_are_not_passed_to_it() -> None:
    labels = {
        "node-restriction.kubernetes.io/team": "team-1",
        "node-restriction.kubernetes.io/custom-label": "custom-value",
    }
    there = launched({"labels": labels})
    assert "node-restriction" not in text_of(there)
    assert labels.items() <= there.node.labels.items()


# --- Bottlerocket


def tainted(**of_template: Any) -> World:
    taint = {"key": "foo", "value": "bar", "effect": "NoExecute"}
    start = {"key": "baz", "value": "bin", "effect": "NoExecute"}
    there = world(
        provisioner(taints=[taint], startupTaints=[start]),
        template(amiFamily="Bottlerocket", **of_template),
    )
    return bought(there, pod("a", tolerations=(ANYTHING,)))


def test_settings_of_the_user_are_merged_and_ours_win() -> None:
    text = text_of(tainted(userData=TOML))
    found = settings(text)
    assert "[settings.host-containers.admin]" in text
    assert (found["cluster-name"], found["log-level"]) == ("test", 3)
    assert found["node-labels"]["own"] == "kept"
    assert found["node-labels"][keys.PROVISIONER_NAME] == "default"
    assert found["node-taints"]["own"] == ["true:NoSchedule"]
    assert found["node-taints"]["foo"] == ["bar:NoExecute"]
    assert found["node-taints"]["baz"] == ["bin:NoExecute"]


def test_without_settings_of_the_user_ours_are_enough() -> None:
    found = settings(text_of(tainted()))
    assert found["api-server"] == "https://test.example"
    assert found["node-taints"]["foo"] == ["bar:NoExecute"]


def test_where_the_template_is_missing_nothing_is_bought() -> None:
    there = bought(world(provisioner(providerRef={"name": "doesnotexist"})))
    assert not is_bound(there, "a")
    assert there.cloud.fleets == []


def test_where_settings_are_no_toml_nothing_is_bought() -> None:
    there = launched(amiFamily="Bottlerocket", userData="#/bin/bash\n ./not-toml.sh")
    assert not is_bound(there, "a")
    (invalid,) = there.cluster.provisioners()[1]
    assert "userData, line 2: 'not shown': is no TOML" in invalid.reasons[0]


@pytest.mark.parametrize(
    ("fields", "name", "expected"),
    [
        ({"systemReserved": RESERVED}, "system-reserved", RESERVED),
        ({"kubeReserved": RESERVED}, "kube-reserved", RESERVED),
        ({"evictionHard": THRESHOLDS}, "eviction-hard", THRESHOLDS),
        ({"maxPods": 10}, "max-pods", 10),
        ({"imageGCHighThresholdPercent": 90}, "image-gc-high-threshold-percent", "90"),
        ({"imageGCLowThresholdPercent": 50}, "image-gc-low-threshold-percent", "50"),
        ({"cpuCFSQuota": False}, "cpu-cfs-quota-enforced", False),
        ({}, "cluster-dns-ip", ["172.20.0.10"]),
    ],
    ids=["system", "kube", "hard", "pods", "gc-high", "gc-low", "quota", "dns"],
)
def test_bottlerocket_gets_settings_of_its_kubelet(
    fields: dict[str, Any], name: str, expected: object
) -> None:
    assert settings(kubelet("Bottlerocket", **fields))[name] == expected


# --- parts of the user's own


@pytest.mark.parametrize("custom", [MIXED, TYPE_FIRST, SCRIPT], ids=["mime", "type-first", "plain"])
@pytest.mark.parametrize("family", ["AL2", "AL2023", "Ubuntu"])
def test_custom_user_data_runs_before_the_bootstrap(family: str, custom: str) -> None:
    found = parts(text_of(launched(amiFamily=family, userData=custom)))
    assert len(found) == 2
    assert found[0].strip() == SCRIPT.strip()


def test_without_anything_of_the_user_there_is_ours_alone() -> None:
    text = text_of(launched(amiFamily="AL2"))
    assert len(parts(text)) == 1
    assert arguments(text)[1] == "test"


def test_the_default_family_is_documented() -> None:
    spec = node_config(text_of(launched()))["spec"]
    assert spec["cluster"]["name"] == "test"


def test_user_data_of_a_custom_image_is_not_changed() -> None:
    there = world(
        provisioner(),
        template(amiFamily="Custom", amiSelector={"team": "red"}, userData="special user data"),
    )
    there.cloud.images = (image("ami-1", team="red"),)
    assert text_of(bought(there)) == "special user data"


def test_two_provisioners_with_one_wrong_text_are_one_that_is_refused() -> None:
    there = world(
        provisioner("good", requirements=[ANY_TYPE, AMD]),
        provisioner("bad", providerRef={"name": "wrong"}),
        template(),
        template("wrong", userData="echo"),
    )
    bought(there)
    assert is_bound(there, "a")
    assert [
        invalid_provisioner.name for invalid_provisioner in there.cluster.provisioners()[1]
    ] == ["bad"]
    assert len(data_of(there)) == 1
    assert only_data(there)["ImageId"]
