"""What machines of each family are told at boot."""

import base64
import gzip
import json
import shlex
import tomllib
from email import message_from_string
from email.message import Message
from typing import Any

import pytest

from shared.instance_types.ami_families import FAMILIES
from shared.model import labels as keys
from shared.model.errors import InvalidManifestError
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.provisioner import KubeletConfiguration
from shared.model.resources import Resources
from tests.unit.instance_types.ami_families.joinings import (
    BATCH,
    BATCH_TOO,
    KUBELET,
    PLAIN,
    WAIT,
    joining,
)

MULTI = """\
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="BOUND"

--BOUND
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/bash
echo one

--BOUND
Content-Type: text/cloud-config

runcmd: [two]

--BOUND--
"""


def parts(text: str) -> list[tuple[str, str]]:
    message = message_from_string(text)
    assert message.is_multipart()
    assert not message.defects
    found = []
    for other_message in message.get_payload():
        assert not isinstance(other_message, str)
        found.append((other_message.get_content_type(), str(other_message.get_payload())))
    return found


def node_config(text: str) -> dict[str, Any]:
    kind, body = parts(text)[-1]
    assert kind == "application/node.eks.aws"
    found: dict[str, Any] = json.loads(body)
    return found


def script_arguments(text: str) -> list[str]:
    kind, body = parts(text)[-1]
    assert kind == "text/x-shellscript"
    (line,) = [value for value in body.splitlines() if value.startswith("/etc/eks/bootstrap.sh")]
    return shlex.split(line)


def settings(text: str) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(text)["settings"]
    return found


def test_user_data_of_al2023_says_how_to_join() -> None:
    spec = node_config(FAMILIES["AL2023"].user_data(joining(KUBELET)))["spec"]
    assert spec["cluster"] == {
        "name": "test",
        "apiServerEndpoint": "https://test.example",
        "certificateAuthority": "Q0E=",
        "cidr": "172.20.0.0/16",
    }
    assert spec["kubelet"]["config"] == {
        "registerWithTaints": [{"key": "batch", "value": "yes", "effect": "NoSchedule"}],
        "clusterDNS": ["10.0.0.10"],
        "maxPods": 30,
        "podsPerCore": 4,
        "systemReserved": {"cpu": "100m"},
        "kubeReserved": {"cpu": "200m", "memory": "256Mi"},
        "evictionHard": {"memory.available": "5%", "nodefs.available": "10%"},
        "evictionSoft": {"memory.available": "500Mi"},
        "evictionSoftGracePeriod": {"memory.available": "1m30s"},
        "evictionMaxPodGracePeriod": 60,
        "imageGCHighThresholdPercent": 80,
        "imageGCLowThresholdPercent": 0,
        "cpuCFSQuota": False,
    }


def test_a_kubelet_gets_no_labels_it_may_not_set_on_its_node() -> None:
    labels = {
        "team": "red",
        "example.com/x": "1",
        "node.kubernetes.io/role": "web",
        "a.kubelet.kubernetes.io/x": "1",
        keys.ZONE: "z",
        "node-restriction.kubernetes.io/x": "1",
        "kops.k8s.io/instancegroup": "g",
    }
    text = FAMILIES["AL2023"].user_data(joining(labels=labels))
    (flag,) = node_config(text)["spec"]["kubelet"]["flags"]
    assert flag == (
        "--node-labels=a.kubelet.kubernetes.io/x=1,example.com/x=1,"
        "node.kubernetes.io/role=web,team=red,topology.kubernetes.io/zone=z"
    )


@pytest.mark.parametrize(
    ("custom", "kind"),
    [
        ("#!/bin/sh\nls", "text/x-shellscript"),
        ("#cloud-config\nruncmd: [ls]", "text/cloud-config"),
        ("#cloud-boothook\nls", "text/cloud-boothook"),
        ("#include\nhttps://x.example/", "text/x-include-url"),
        (
            "---\napiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n---\n",
            "application/node.eks.aws",
        ),
    ],
)
def test_one_thing_by_itself_needs_no_mime(custom: str, kind: str) -> None:
    found = parts(FAMILIES["AL2023"].user_data(joining(), custom))
    assert len(found) == 2
    assert found[0] == (kind, custom)


@pytest.mark.parametrize("custom", ["#!/bin/sh\necho é €\n", MULTI.replace("echo one", "echo é €")])
def test_text_that_is_not_ascii_arrives_as_it_was_written(custom: str) -> None:
    message = message_from_string(FAMILIES["AL2"].user_data(joining(), custom))
    first = message.get_payload(0)
    assert isinstance(first, Message)
    text = first.get_payload(decode=True)
    assert isinstance(text, bytes)
    assert text.decode().splitlines()[1] == "echo é €"


def test_text_that_is_not_ascii_is_left_to_nodeadm_as_it_is() -> None:
    custom = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n# é\n"
    assert custom in FAMILIES["AL2023"].user_data(joining(), custom)


@pytest.mark.parametrize("family", ["AL2", "Ubuntu"])
def test_scripted_images_get_their_settings_as_arguments(family: str) -> None:
    text = FAMILIES[family].user_data(joining(KUBELET, taints=(BATCH, WAIT)), MULTI)
    assert [kind for kind, _ in parts(text)][:2] == ["text/x-shellscript", "text/cloud-config"]
    found = script_arguments(text)
    assert found[:10] == [
        "/etc/eks/bootstrap.sh",
        "test",
        "--apiserver-endpoint",
        "https://test.example",
        "--b64-cluster-ca",
        "Q0E=",
        "--dns-cluster-ip",
        "10.0.0.10",
        "--use-max-pods",
        "false",
    ]
    assert found[10] == "--kubelet-extra-args"
    assert found[11].split() == [
        "--node-labels=karpenter.sh/provisioner-name=default,team=red",
        "--register-with-taints=batch=yes:NoSchedule,cilium=:NoExecute",
        "--cpu-cfs-quota=false",
        "--eviction-hard=memory.available<5%,nodefs.available<10%",
        "--eviction-max-pod-grace-period=60",
        "--eviction-soft-grace-period=memory.available=1m30s",
        "--eviction-soft=memory.available<500Mi",
        "--image-gc-high-threshold=80",
        "--image-gc-low-threshold=0",
        "--kube-reserved=cpu=200m,memory=256Mi",
        "--max-pods=30",
        "--pods-per-core=4",
        "--system-reserved=cpu=100m",
    ]


def test_a_script_gets_no_argument_for_what_is_not_set() -> None:
    nothing = KubeletConfiguration(kube_reserved=Resources())
    found = script_arguments(FAMILIES["AL2"].user_data(joining(nothing)))
    assert "--kube-reserved" not in found[-1]
    assert "--use-max-pods" not in found
    assert found[6:8] == ["--dns-cluster-ip", "172.20.0.10"]
    unknown = script_arguments(FAMILIES["AL2"].user_data(joining(service_cidr="")))
    assert "--dns-cluster-ip" not in unknown


def test_a_script_gets_the_ip_family_ipv6() -> None:
    found = script_arguments(
        FAMILIES["AL2"].user_data(joining(service_cidr="fd4b:121b:812b::/108"))
    )
    assert found[6:12] == [
        "--dns-cluster-ip",
        "fd4b:121b:812b::a",
        "--ip-family",
        "ipv6",
        "--service-ipv6-cidr",
        "fd4b:121b:812b::/108",
    ]


@pytest.mark.parametrize(
    ("kubelet", "theirs", "expected"),
    [
        (PLAIN, "", ["172.20.0.10"]),
        (PLAIN, '[settings.kubernetes]\ncluster-dns-ip = "10.9.9.9"', "10.9.9.9"),
        (KUBELET, '[settings.kubernetes]\ncluster-dns-ip = "10.9.9.9"', ["10.0.0.10"]),
    ],
)
def test_bottlerocket_gets_the_address_of_dns(
    kubelet: KubeletConfiguration, theirs: str, expected: object
) -> None:
    found = settings(FAMILIES["Bottlerocket"].user_data(joining(kubelet), theirs))
    assert found["kubernetes"]["cluster-dns-ip"] == expected


def test_bottlerocket_gets_its_settings_in_toml() -> None:
    text = FAMILIES["Bottlerocket"].user_data(joining(KUBELET, taints=(BATCH, BATCH_TOO, WAIT)))
    assert settings(text)["kubernetes"] == {
        "api-server": "https://test.example",
        "cluster-certificate": "Q0E=",
        "cluster-name": "test",
        "cluster-dns-ip": ["10.0.0.10"],
        "node-labels": {"karpenter.sh/provisioner-name": "default", "team": "red"},
        "node-taints": {"batch": ["yes:NoSchedule", "yes:NoExecute"], "cilium": [":NoExecute"]},
        "max-pods": 30,
        "system-reserved": {"cpu": "100m"},
        "kube-reserved": {"cpu": "200m", "memory": "256Mi"},
        "eviction-hard": {"memory.available": "5%", "nodefs.available": "10%"},
        "eviction-soft": {"memory.available": "500Mi"},
        "eviction-soft-grace-period": {"memory.available": "1m30s"},
        "eviction-max-pod-grace-period": 60,
        "image-gc-high-threshold-percent": "80",
        "image-gc-low-threshold-percent": "0",
        "cpu-cfs-quota-enforced": False,
    }


def test_bottlerocket_is_told_nothing_that_it_refuses() -> None:
    kubelet = KubeletConfiguration(
        system_reserved=Resources.of(cpu=100, pid=1000),
        kube_reserved=Resources.of(pid=1000),
        eviction_hard={"memory.available": "100Mi", "nodefs.available": "100%"},
        eviction_soft={"memory.available": "100.0%", "nodefs.available": "10.5%"},
        eviction_soft_grace_period={"memory.available": "20us5ns", "nodefs.available": "1m5ms9us"},
    )
    found = settings(FAMILIES["Bottlerocket"].user_data(joining(kubelet)))["kubernetes"]
    assert found["system-reserved"] == {"cpu": "100m"}
    assert found["kube-reserved"] == {}
    assert found["eviction-hard"] == {"memory.available": "100Mi", "nodefs.available": "0%"}
    assert found["eviction-soft"] == {"memory.available": "0%", "nodefs.available": "10.5%"}
    assert found["eviction-soft-grace-period"] == {
        "memory.available": "0s",
        "nodefs.available": "1m5ms",
    }


def test_settings_of_bottlerocket_are_merged_at_every_depth_and_those_of_dovetail_win() -> None:
    custom = """
[settings.host-containers.admin]
enabled = true
[settings.kubernetes]
cluster-name = "theirs"
allowed-unsafe-sysctls = ["net.core.somaxconn"]
[settings.kubernetes.node-labels]
team = "blue"
own = "kept"
"""
    found = settings(FAMILIES["Bottlerocket"].user_data(joining(), custom))
    assert found["host-containers"] == {"admin": {"enabled": True}}
    assert found["kubernetes"]["cluster-name"] == "test"
    assert found["kubernetes"]["allowed-unsafe-sysctls"] == ["net.core.somaxconn"]
    assert found["kubernetes"]["node-labels"]["team"] == "red"
    assert found["kubernetes"]["node-labels"]["own"] == "kept"


def test_the_boundary_is_never_a_line_of_the_text() -> None:
    custom = "#!/bin/sh\n--//\n--//1--\n"
    found = parts(FAMILIES["AL2"].user_data(joining(), custom))
    assert found[0] == ("text/x-shellscript", custom)


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_the_same_facts_give_the_same_text(family: str) -> None:
    one, other = (FAMILIES[family].user_data(joining(KUBELET)) for _ in range(2))
    assert one == other


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_no_user_data_of_their_own_is_fine(family: str) -> None:
    FAMILIES[family].refuse_wrong("")
    FAMILIES[family].refuse_wrong(" \n")


def test_both_together_must_not_be_too_long_for_ec2() -> None:
    custom = "#!/bin/sh\n" + "#" * 16_000
    with pytest.raises(InvalidManifestError, match="is 17918 bytes long together"):
        FAMILIES["AL2023"].refuse_wrong(custom)
    fitting = "#!/bin/sh\n" + "#" * 14_000
    FAMILIES["AL2023"].refuse_wrong(fitting)
    with pytest.raises(InvalidManifestError, match="EC2 takes 16384; fetch the rest at boot"):
        FAMILIES["AL2023"].user_data(joining(certificate_authority="A" * 2000), fitting)


@pytest.mark.parametrize(
    "value", ["x --anonymous-auth=true", "x,role=boss", "x\nExecStartPre=/bin/sh", "-x", "a" * 64]
)
def test_label_or_taint_that_kubernetes_refuses_reaches_no_command_line(value: str) -> None:
    with pytest.raises(InvalidManifestError, match="label or taint 'team'"):
        joining(labels={"team": value})
    with pytest.raises(InvalidManifestError, match="label or taint 'team'"):
        joining(taints=(Taint(key="team", value=value, effect=Effect.NO_SCHEDULE),))
    with pytest.raises(InvalidManifestError):
        joining(labels={f"a {value}": "x"})


def test_the_instance_store_is_what_pods_of_al2023_write_to() -> None:
    spec = node_config(FAMILIES["AL2023"].user_data(joining(instance_store=True)))["spec"]
    assert spec["instance"] == {"localStorage": {"strategy": "RAID0"}}
    assert "instance" not in node_config(FAMILIES["AL2023"].user_data(joining()))["spec"]


def test_the_instance_store_is_what_pods_of_al2_write_to() -> None:
    found = script_arguments(FAMILIES["AL2"].user_data(joining(instance_store=True)))
    assert found[found.index("--local-disks") + 1] == "raid0"


def test_the_instance_store_is_what_pods_of_bottlerocket_write_to() -> None:
    custom = '[settings.bootstrap-commands.mine]\nmode = "once"'
    text = FAMILIES["Bottlerocket"].user_data(joining(instance_store=True), custom)
    commands = settings(text)["bootstrap-commands"]
    assert sorted(commands) == ["000-mount-instance-storage", "mine"]
    assert commands["000-mount-instance-storage"]["commands"][0] == [
        *("apiclient", "ephemeral-storage", "init"),
    ]


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("application/gzip", gzip.compress(b"#!/bin/sh\nls\n", mtime=0)),
        ('text/x-shellscript; charset="iso-8859-1"', "#!/bin/sh\necho café\n".encode("latin-1")),
    ],
    ids=["compressed", "latin-1"],
)
def test_a_part_that_is_not_utf_8_stays_as_it_is(kind: str, content: bytes) -> None:
    body = base64.encodebytes(content).decode()
    head, _, _ = MULTI.partition("--BOUND\n")
    part = f"Content-Type: {kind}\nContent-Transfer-Encoding: base64\n\n{body}"
    custom = f"{head}--BOUND\n{part}--BOUND--\n"
    message = message_from_string(FAMILIES["AL2023"].user_data(joining(), custom))
    assert message.get_payload(0).get_payload(decode=True) == content  # type: ignore[union-attr]


def test_a_boundary_that_nothing_follows_ends_the_document() -> None:
    ended = MULTI.rstrip().removesuffix("--")
    assert not ended.endswith("--")
    both = [FAMILIES["AL2023"].user_data(joining(), custom) for custom in (MULTI, ended)]
    assert both[0] == both[1]


@pytest.mark.parametrize("family", ["AL2023", "AL2"])
def test_a_script_from_windows_is_run(family: str) -> None:
    """The kernel finds no interpreter whose name ends in a carriage return, and none in line 2."""
    custom = "\n#!/bin/sh\r\necho {}\r\n"
    for word, written in (("one", "#!/bin/sh\necho one\n"), ("é", "base64")):
        assert written in FAMILIES[family].user_data(joining(), custom.format(word))
        assert "\r" not in FAMILIES[family].user_data(joining(), custom.format(word))
