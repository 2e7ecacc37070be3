"""The commands of getting started, by the real `cdk` command line, on the embedded AWS API."""

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from infra.aws.forwarder_image import PLATFORMS
from infra.local.aws.embedded import EmbeddedAws
from tests.docs.pages import ROOT, steps

pytestmark = [pytest.mark.slow, pytest.mark.timeout(500)]

PAGE = ROOT / "docs" / "getting-started.md"
# What the embedded API asks for, a bundle without packages, and no question at a terminal.
DIFFERENT = ("--method=direct", "--require-approval", "never", "-c", "bundle=code")
# Writes down what it is asked for; no image is in the engine yet.
DOCKER = """#!/bin/sh
printf '%s\\n' "$PWD docker $*" >> "$DOCKER_CALLS"
case "$1" in
  inspect) exit 1 ;;
  login) cat > /dev/null ;;
esac
"""


@pytest.fixture
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws() as server:
        cluster = {"name": "prod", "endpoint": "https://127.0.0.1:1", "ca_data": "QQ=="}
        server.control("seed", {"clusters": [cluster]})
        yield server


@pytest.fixture
def environment(aws: EmbeddedAws, tmp_path: Path) -> Mapping[str, str]:
    """As a deployer has it, with a stand-in for Docker before any other program."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "docker").write_text(DOCKER)
    (programs / "docker").chmod(0o755)
    return {
        **os.environ,
        **aws.access.environment,
        "CI": "1",
        "DOCKER_CALLS": str(tmp_path / "calls"),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }


@pytest.mark.skipif(
    shutil.which("npx") is None or not (ROOT / "node_modules" / "aws-cdk").exists(),
    reason="make setup installs the command line of the CDK",
)
def test_the_image_is_built_for_both_architectures_and_pushed_once(
    aws: EmbeddedAws, environment: Mapping[str, str], tmp_path: Path
) -> None:
    _, bootstrap, _, deploy, _ = map(shlex.split, steps(PAGE, "2. Dovetail"))
    for words in (bootstrap, [*deploy, *DIFFERENT, "--output", str(tmp_path / "out")]):
        done = subprocess.run(
            words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    calls = (tmp_path / "calls").read_text().splitlines()
    (build,) = [call for call in calls if " docker build " in call]
    (push,) = [call for call in calls if " docker push " in call]
    folder, _, given = build.partition(" docker build ")

    assert f"--platform {','.join(PLATFORMS)}" in given
    assert "--file functions/forwarder/Dockerfile" in given
    assert (Path(folder) / "functions" / "forwarder" / "Dockerfile").is_file()
    found = aws.client("ssm").get_parameter(Name="/dovetail/clusters/prod")["Parameter"]["Value"]
    assert push.endswith(f" docker push {json.loads(found)['forwarder_image']}")
