"""User data that cannot be understood: which line or part, and what to write."""

import base64

import pytest

from shared.instance_types.ami_families import FAMILIES
from shared.model.errors import InvalidManifestError
from shared.model.provisioner import KubeletConfiguration
from tests.unit.instance_types.ami_families.joinings import joining

HEAD = 'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="B"\n\n'
SCRIPT = "--B\nContent-Type: text/x-shellscript\n\n#!/bin/sh\n\n"
NESTED = '--B\nContent-Type: multipart/mixed; boundary="C"\n\n--C\n\nx\n--C--\n'


def refused(family: str, custom: str) -> InvalidManifestError:
    with pytest.raises(InvalidManifestError) as caught:
        FAMILIES[family].refuse_wrong(custom)
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("custom", "field", "value", "words"),
    [
        ("echo hello\n", "userData, line 1", "echo hello", "begins with #!"),
        ("MIME-Version: 1.0\n\nx", "userData, line 1", "MIME-Version: 1.0", "multipart/mixed"),
        (HEAD + SCRIPT, "userData", "MIME-Version: 1.0", "end the MIME document with --B--"),
        (
            f"{HEAD.strip()}\n{SCRIPT}--B--\n",
            "userData",
            "MIME-Version: 1.0",
            "an empty line between the headers and the first --B",
        ),
        (
            f"{HEAD.strip()}\nContent-Transfer-Encoding: base64\n\n{SCRIPT}--B--\n",
            "userData",
            "MIME-Version: 1.0",
            "An invalid content transfer encoding",
        ),
        (HEAD + "--B\nno header\n--B--\n", "userData, part 1", "no header", "an empty line"),
        (HEAD + NESTED + "--B--\n", "userData, part 1", "Content-Type", "one by one"),
        (
            HEAD + SCRIPT + "--B\nContent-Type: text/x-shellscript\n\nls\n--B--\n",
            "userData, part 2",
            "ls",
            "begin a script with #!",
        ),
        (
            HEAD + SCRIPT + "--B\nContent-Type: text/cloud-config\n\na: 1\nb: [\n\n--B--\n",
            "userData, part 2, line 3",
            "",
            "is no YAML",
        ),
        ("#cloud-config\n- 1\n", "userData", "#cloud-config", "named settings"),
        ("#cloud-config\na: 1\n  b: 2\n", "userData, line 3", "b: 2", "is no YAML"),
        ("#cloud-config\na: 2024-13-45\n", "userData", "#cloud-config", "is no YAML: month must"),
        ("#cloud-config\na: !!bool x\n", "userData", "#cloud-config", "not what its tag says"),
        ("#cloud-config\na: !!int ''\n", "userData", "#cloud-config", "not what its tag says"),
        ("#cloud-config\na: !!timestamp x\n", "userData", "#cloud-config", "what its tag says"),
    ],
)
@pytest.mark.parametrize("family", ["AL2023", "AL2", "Ubuntu"])
def test_mime_says_where_it_is_wrong(
    family: str, custom: str, field: str, value: str, words: str
) -> None:
    if family == "AL2023" and custom.startswith("echo"):
        words = "NodeConfig"
    found = refused(family, custom)
    assert found.field == field
    assert str(found.value).startswith(value)
    assert words in found.remedy


@pytest.mark.parametrize(
    ("custom", "field", "words"),
    [
        ("kind: NodeConfig\n", "userData, line 1", "NodeConfig of node.eks.aws/v1alpha1"),
        ("apiVersion: node.eks.aws/v1alpha1\nkind: Node\n", "userData, line 1", "NodeConfig"),
        (
            "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: 3\n",
            "userData",
            "must be an object",
        ),
        ("a: 1\nb: [1\n", "userData, line 3", "is no YAML"),
        ("[" * 3000, "userData", "nested too deeply"),
        ("a: \x07", "userData", "not text, or not what its tag says"),
    ],
)
def test_a_node_config_says_where_it_is_wrong(custom: str, field: str, words: str) -> None:
    found = refused("AL2023", custom)
    assert found.field == field
    assert words in found.remedy


@pytest.mark.parametrize(
    ("custom", "field", "value", "words"),
    [
        ("[settings]\na = \n", "userData, line 2", "a =", "is no TOML: Invalid value"),
        ("[settings", "userData, line 1", "[settings", "is no TOML"),
        ("settings = 3", "userData", "settings = 3", "settings must be a table"),
        ("[settings]\nkubernetes = 3", "userData", "[settings]", "kubernetes must be a table"),
        (f"a = {'[' * 4000}", "userData", "a = [", "nested too deeply"),
    ],
)
def test_toml_says_where_it_is_wrong(custom: str, field: str, value: str, words: str) -> None:
    found = refused("Bottlerocket", custom)
    assert found.field == field
    assert str(found.value).startswith(value)
    assert words in found.remedy


@pytest.mark.parametrize(
    "kubelet",
    [
        KubeletConfiguration(eviction_soft_grace_period={"memory.available": "1s --v=9"}),
        KubeletConfiguration(eviction_hard={"memory.available": "5%n"}),
        KubeletConfiguration(eviction_hard={"memory.available": "1\nExecStartPre=/bin/true"}),
        KubeletConfiguration(cluster_dns=("fe80::1%$(reboot)",)),
    ],
)
def test_a_value_that_systemd_or_a_shell_would_change_is_written_into_no_flag(
    kubelet: KubeletConfiguration,
) -> None:
    with pytest.raises(InvalidManifestError, match="it ends in a flag of the kubelet"):
        FAMILIES["AL2"].user_data(joining(kubelet))


NODE_CONFIG = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n"


@pytest.mark.parametrize(
    ("custom", "words"),
    [
        ("---", "write a NodeConfig"),
        ("# nothing", "write a NodeConfig"),
        (f"---\n---\n{NODE_CONFIG}", "write a NodeConfig"),
        (f"{NODE_CONFIG}---\n{NODE_CONFIG}", "a part of its own"),
    ],
)
def test_nodeadm_reads_the_first_document_of_a_part_alone(custom: str, words: str) -> None:
    assert words in refused("AL2023", custom).remedy


@pytest.mark.parametrize("family", sorted(set(FAMILIES) - {"Custom"}))
def test_blank_user_data_is_none(family: str) -> None:
    alone, blank = joining(), " \u2028\n"
    FAMILIES[family].refuse_wrong(blank)
    assert FAMILIES[family].user_data(alone, blank) == FAMILIES[family].user_data(alone)


def test_half_a_character_is_refused_when_it_is_written() -> None:
    kubelet = KubeletConfiguration(eviction_soft_grace_period={"\ud800": "5%"})
    with pytest.raises(InvalidManifestError, match="half of a surrogate pair"):
        FAMILIES["Bottlerocket"].user_data(joining(kubelet))


def test_too_much_is_refused_whatever_it_is() -> None:
    found = refused("Custom", "é" * 8193)
    assert found.field == "userData"
    assert found.remedy == "is 16386 bytes long, EC2 takes 16384; fetch the rest at boot"
    assert len(str(found.value)) == 60


def test_tables_too_deep_to_be_written_again_are_refused() -> None:
    assert refused("Bottlerocket", f"[{'.'.join('a' * 2000)}]").remedy == "is nested too deeply"


def test_parts_written_as_base64_are_read() -> None:
    body = base64.b64encode(b"#!/bin/sh\nls\n").decode()
    head = "--B\nContent-Type: text/x-shellscript\nContent-Transfer-Encoding: base64\n\n"
    FAMILIES["AL2"].refuse_wrong(f"{HEAD}{head}{body}\n--B--\n")


TEMPLATE = "## template: jinja\n#cloud-config\nruncmd: [echo {{ v1.instance_id }}]\n"


@pytest.mark.parametrize("family", ["AL2023", "AL2"])
@pytest.mark.parametrize(
    "custom",
    [TEMPLATE, f"{HEAD}--B\nContent-Type: text/x-shellscript\n\n{TEMPLATE}--B--\n"],
    ids=["alone", "in a part"],
)
def test_a_template_is_left_to_cloud_init(family: str, custom: str) -> None:
    written = FAMILIES[family].user_data(joining(), custom)
    assert f"Content-Type: text/jinja2\n\n{TEMPLATE.strip()}\n" in written
