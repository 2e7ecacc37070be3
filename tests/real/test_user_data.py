"""What machines are told at boot, judged by the programs that read it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from shared.instance_types.ami_families import FAMILIES, BootstrapOptions
from shared.manifests.custom_resources.provisioners import decode_provisioner
from shared.manifests.problems import InvalidProvisionerError
from shared.model.provisioner import KubeletConfiguration
from shared.model.resources import Resources
from tests.real.judges import (
    bash_arguments,
    bash_verdict,
    cloud_config_verdict,
    cloud_init,
    cloud_init_parts,
    kubelet_verdicts,
)
from tests.real.user_data import Boot, Instance, boot_of
from tests.unit.instance_types.ami_families.joinings import BATCH, BATCH_TOO, KUBELET, WAIT, joining
from tests.unit.manifests.documents import provisioner

MIME = sorted({"AL2", "AL2023", "Ubuntu"} & set(FAMILIES))
WITH_USER_DATA = sorted(set(FAMILIES) - {"Custom"})
INSTANCE = Instance(id="i-0", zone="us-east-1a", dns_name="node-0", cores=2, pods=29)
JOININGS = {
    "plain": joining(),
    "all": joining(KUBELET, taints=(BATCH, BATCH_TOO, WAIT)),
    "nothing": joining(labels={}, taints=()),
    "zeros": joining(KubeletConfiguration(max_pods=0, pods_per_core=0, kube_reserved=Resources())),
    "no-network": joining(service_cidr=""),
    "ipv6": joining(service_cidr="fd4b:121b:812b::/108"),
    "labels": joining(
        labels={
            "team": "",
            "example.com/a_b.c": "A-1.x_y",
            "a.kubelet.kubernetes.io/x": "1",
            "node.kubernetes.io/role": "web",
            "topology.kubernetes.io/zone": "us-east-1a",
            "kops.k8s.io/instancegroup": "g",
            "karpenter.sh/capacity-type": "spot",
        }
    ),
}
SCRIPT = '#!/bin/bash\necho "it\'s $((1 + 1)) <5%" é €\n'
CLOUD_CONFIG = "#cloud-config\nruncmd:\n  - [systemctl, restart, chrony]\ntimezone: UTC\n"
SEVERAL = f"""\
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="B"

--B
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/sh
echo one é €

--B
Content-Type: text/cloud-config

{CLOUD_CONFIG}
--B--
"""
CUSTOM = {"none": "", "script": SCRIPT, "cloud-config": CLOUD_CONFIG, "several": SEVERAL}
TYPES = {
    "none": [],
    "script": [("text/x-shellscript", SCRIPT)],
    "cloud-config": [("text/cloud-config", CLOUD_CONFIG)],
    "several": [
        ("text/x-shellscript", "#!/bin/sh\necho one é €\n"),
        ("text/cloud-config", CLOUD_CONFIG),
    ],
}


def boots(told: BootstrapOptions) -> list[Boot]:
    """Return how a machine of each family starts its kubelet."""
    return [
        boot_of(FAMILIES[family].user_data(told).encode(), INSTANCE) for family in WITH_USER_DATA
    ]


# -- the kubelet -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [value for value in JOININGS if value != "no-network"])
def test_kubelet_starts_with_the_settings_of_each_family(
    program: Path, tmp_path: Path, name: str
) -> None:
    assert kubelet_verdicts(program, tmp_path, boots(JOININGS[name])) == [""] * 4


def test_kubelet_refuses_what_it_cannot_use(program: Path, tmp_path: Path) -> None:
    (good, *_) = boots(joining())
    wrong: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
        "unknown field": ({"maxPod": 3}, ()),
        "cannot unmarshal": ({"maxPods": 2**31}, ()),
        "must be less than imageGCHighThresholdPercent": ({"imageGCHighThresholdPercent": 80}, ()),
        "must be positive": ({"evictionHard": {"memory.available": "0"}}, ()),
        "grace period must be specified": ({"evictionSoft": {"memory.available": "5%"}}, ()),
        "unknown 'kubernetes.io'": ({}, ("--node-labels=kubernetes.io/role=x",)),
        "invalid taint": ({}, ("--register-with-taints=a=b",)),
        "unknown flag": ({}, ("--max-pod=3",)),
    }
    lines = [
        Boot(
            cluster=good.cluster,
            endpoint=good.endpoint,
            authority=good.authority,
            config={**good.config, **config},
            flags=(*good.flags, *flags),
        )
        for config, flags in wrong.values()
    ]
    for words, verdict in zip(wrong, kubelet_verdicts(program, tmp_path, lines), strict=True):
        assert words in verdict


SIGNALS = st.sampled_from(["memory.available", "nodefs.available", "nodefs.inodesFree"])
AMOUNTS = st.sampled_from(
    [
        "0",
        "0%",
        "0.0%",
        "5%",
        "33.3%",
        "100%",
        "1",
        "100Mi",
        "1.5Gi",
        "1e3",
        "5E",
        "0.1",
        "+1",
        "1.",
    ]
)
RESERVED = st.dictionaries(
    st.sampled_from(["cpu", "memory", "ephemeral-storage", "pid"]),
    st.sampled_from(["0", "1", "100m", "1.5", "0.0005", "1Gi", "100M", "12e6", "1E"]),
)
SPANS = st.sampled_from(["0s", "90s", "1m30s", "1.5h", "500ms", "999999999h"])
COUNTS = st.sampled_from([0, 1, 30, 250, 2**31 - 1, 2**31])
PERCENTS = st.sampled_from([0, 1, 50, 79, 80, 81, 84, 85, 86, 100])
BLOCKS = st.fixed_dictionaries(
    {},
    optional={
        "clusterDNS": st.lists(st.sampled_from(["10.0.0.10", "fd00::a"]), max_size=2),
        "maxPods": COUNTS,
        "podsPerCore": COUNTS,
        "systemReserved": RESERVED,
        "kubeReserved": RESERVED,
        "evictionHard": st.dictionaries(SIGNALS, AMOUNTS),
        "evictionSoft": st.dictionaries(SIGNALS, AMOUNTS),
        "evictionSoftGracePeriod": st.dictionaries(SIGNALS, SPANS),
        "evictionMaxPodGracePeriod": COUNTS,
        "imageGCHighThresholdPercent": PERCENTS,
        "imageGCLowThresholdPercent": PERCENTS,
        "cpuCFSQuota": st.booleans(),
    },
)


@settings(
    max_examples=10,
    deadline=None,
    phases=(Phase.generate,),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(blocks=st.lists(BLOCKS, min_size=60, max_size=60))
def test_kubelet_starts_with_each_configuration_that_a_provisioner_may_have(
    program: Path, tmp_path: Path, blocks: Sequence[dict[str, Any]]
) -> None:
    accepted = [(block, found) for block in blocks if (found := kubelet_of(block)) is not None]
    lines = [(block, boot) for block, found in accepted for boot in boots(joining(found))]
    verdicts = kubelet_verdicts(program, tmp_path, [boot for _, boot in lines])
    refused = [(why, block) for why, (block, _) in zip(verdicts, lines, strict=True) if why]
    assert refused == []


def kubelet_of(block: dict[str, Any]) -> KubeletConfiguration | None:
    """Return what is read from a kubeletConfiguration; None if it is refused."""
    soft = block.get("evictionSoft")
    if soft:
        grace = block.get("evictionSoftGracePeriod") or {}
        block["evictionSoftGracePeriod"] = {key: grace.get(key, "90s") for key in soft}
    else:
        block.pop("evictionSoftGracePeriod", None)
    try:
        return decode_provisioner(provisioner(kubeletConfiguration=block)).kubelet
    except InvalidProvisionerError:
        return None


# -- cloud-init and bash -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def installed() -> Path:
    found = cloud_init()
    if found is None:
        # A judge that is missing is reported by name, and never counts as a pass.
        pytest.skip("cloud-init is not installed: it did not judge user data")
    return found


@pytest.mark.parametrize("custom", CUSTOM)
@pytest.mark.parametrize("family", MIME)
def test_cloud_init_reads_the_users_parts_first_and_ours_last(
    installed: Path, family: str, custom: str
) -> None:
    told = [
        FAMILIES[family].user_data(other_joining, CUSTOM[custom])
        for other_joining in JOININGS.values()
    ]
    ours = "application/node.eks.aws" if family == "AL2023" else "text/x-shellscript"
    for parts in cloud_init_parts(installed, told):
        *theirs, (kind, _) = parts
        assert theirs == TYPES[custom]
        assert kind == ours


def test_cloud_init_accepts_the_cloud_config_as_it_arrives(installed: Path, tmp_path: Path) -> None:
    for family in MIME:
        (parts,) = cloud_init_parts(installed, [FAMILIES[family].user_data(joining(), SEVERAL)])
        (config,) = [text for kind, text in parts if kind == "text/cloud-config"]
        assert cloud_config_verdict(installed, tmp_path, config) == ""
    assert "runcmd" in cloud_config_verdict(installed, tmp_path, "#cloud-config\nruncmd: 3\n")


@pytest.mark.parametrize("name", JOININGS)
def test_bash_runs_the_script_of_older_images_with_the_arguments_that_were_meant(name: str) -> None:
    (mime, *_) = MIME
    assert mime == "AL2"
    data = FAMILIES[mime].user_data(JOININGS[name])
    script = data.partition("#!")[2].rpartition("\n--")[0]
    assert bash_verdict(f"#!{script}") == ""
    arguments = bash_arguments(script, "/etc/eks/bootstrap.sh")
    assert arguments[:3] == ["test", "--apiserver-endpoint", "https://test.example"]
    *_, name_of_last, last = arguments
    assert name_of_last == "--kubelet-extra-args"
    flags = boot_of(data.encode(), INSTANCE).flags
    assert tuple(last.split()) == flags[2:]


def test_bash_notices_what_is_no_script() -> None:
    assert "unexpected" in bash_verdict("#!/bin/bash\nif then\n")
