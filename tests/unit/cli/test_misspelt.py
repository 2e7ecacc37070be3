"""Words that nothing knows are answered with the nearest that is known."""

import contextlib
import shutil
import subprocess
from pathlib import Path

import pytest

from functions.cli.main import main
from shared.model.dialect import V1
from tests.unit.cli.running import PROVISIONER, deployment, written

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
CATEGORY = "karpenter.k8s.aws/instance-category"


def node_pool(field: str, key: str) -> dict[str, object]:
    """Return a NodePool with one requirement, under a field that may be misspelt."""
    group, kind = V1.template_version.partition("/")[0], V1.template_kind
    wanted = {"key": key, "operator": "In", "values": ["c"]}
    spec = {"nodeClassRef": {"group": group, "kind": kind, "name": "default"}, field: [wanted]}
    return {
        "apiVersion": V1.owner_version,
        "kind": V1.owner_kind.value,
        "metadata": {"name": "default"},
        "spec": {"template": {"spec": spec}},
    }


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("pln",), "dovetail: pln: unknown; write plan; dovetail --help"),
        (("zzz",), "dovetail: zzz: unknown; known are attach, break, catalog"),
        (("plan", "--explan", "a", "-f", "a"), "dovetail plan: --explan: unknown; write --explain"),
        (
            ("plan", "--region", "x", "-f", "a"),
            "dovetail plan: --region: unknown; dovetail catalog",
        ),
        (
            ("doctor", "--context", "prod"),
            "doctor: --context: unknown; why, report, plan, watch and others read a cluster by it",
        ),
        (("plan", "-f", "a", "--zzz"), "dovetail plan: --zzz: unknown; dovetail plan --help"),
        (("plan", "-f", "a", "--set", "max_nod_vcpus=1"), "unknown setting; write max_node_vcpus"),
        (("plan", "-f", "a", "--set", "max_nodes=3"), "unknown setting; known are density_limited"),
        (
            ("plan", "-f", "a", "--set", "prefix_delegaton=true"),
            "unknown setting; write prefix_delegation",
        ),
    ],
)
def test_words_of_the_command_line(
    words: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with contextlib.suppress(SystemExit):
        assert main(list(words)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line


@pytest.mark.parametrize(
    ("manifest", "told"),
    [
        ({**deployment(), "apiVersion": "extensions/v1beta1"}, "extensions/v1beta1: write apps/v1"),
        ({**deployment(), "apiVersion": "app/v1"}, "app/v1: write apps/v1"),
        ({**deployment(), "kind": "Deploymnet"}, "unknown kind; write Deployment"),
        (node_pool("requirments", CATEGORY), "requirments: unknown field; write requirements"),
        (node_pool("requirements", CATEGORY[:-4] + "ry"), f"unknown key; write {CATEGORY}"),
        (CONFIG_MAP, "document 1: no workload in these files, only ConfigMap; name"),
    ],
)
def test_words_of_manifests(
    manifest: dict[str, object], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "-f", written(tmp_path / "a.yaml", manifest)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line


def test_a_config_map_beside_workloads_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path / "a.yaml", PROVISIONER, deployment(), CONFIG_MAP)
    assert main(["plan", "-f", file]) == 0
    assert "note: left out, of kinds that are not read: 1 ConfigMap" in capsys.readouterr().err


def test_without_a_command_there_is_help_and_the_version_has_an_option(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([]) == 0
    assert "usage: dovetail" in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("dovetail ")


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_shell_completes_the_commands_and_their_options(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)
    assert "what-if" in script
    assert "--explain" in script
