import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.running import PROVISIONER, ROOT, pod, run, written


def test_ten_megabytes_in_one_text_are_read_in_no_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long = {**pod(), "metadata": {"name": "a", "annotations": {"note": "y" * 10 * 2**20}}}
    file = tmp_path / "long.json"
    file.write_text(json.dumps(long))
    provisioner = written(tmp_path / "provisioner.yaml", PROVISIONER)
    assert run("plan", "-f", str(file), "-f", provisioner) == 0
    assert "for 1 pod" in capsys.readouterr().out


@pytest.mark.slow
def test_ten_megabytes_of_small_pods_are_planned_in_bounded_time_and_memory(tmp_path: Path) -> None:
    one = "apiVersion: v1\nkind: Pod\nmetadata: {name: p%d}\nspec: {containers: [{name: a}]}\n"
    file = tmp_path / "many.yaml"
    file.write_text("---\n".join(one % number for number in range(10 * 2**20 // 87)))
    assert file.stat().st_size > 9 * 2**20
    provisioner = written(tmp_path / "provisioner.yaml", PROVISIONER)
    program = (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (60, 60))\n"
        "from tests.unit.cli.running import run\n"
        f"files = ['-f', {str(file)!r}, '-f', {provisioner!r}]\n"
        "raise SystemExit(run('plan', *files, '--zones', 'us-east-1a'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "new nodes for 1" in done.stdout
