import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from infra.aws.app import main
from infra.aws.config import ConfigError
from tests.infra.templates import Template, walk

ROOT = Path(__file__).resolve().parents[3]


def test_no_finding_of_the_security_rules_is_unexplained(
    security_report: Mapping[str, Any],
) -> None:
    reports = security_report["pluginReports"]

    assert [report["pluginName"] for report in reports] == ["AwsSolutions"]
    assert [violation["ruleName"] for violation in reports[0]["violations"]] == []


def test_synthesis_needs_no_account_region_or_lookups(assembly: Path) -> None:
    manifest = json.loads((assembly / "manifest.json").read_text())
    stacks = {
        name: artifact
        for name, artifact in manifest["artifacts"].items()
        if artifact["type"] == "aws:cloudformation:stack"
    }

    assert sorted(stacks) == [
        "DovetailCluster-demo",
        "DovetailCluster-prod",
        "DovetailCluster-staging",
        "DovetailControlPlane",
    ]
    assert {stack["environment"] for stack in stacks.values()} == {
        "aws://unknown-account/unknown-region"
    }
    assert "missing" not in manifest


def test_the_partition_of_every_arn_comes_from_the_environment(
    control_plane: Template, clusters: Mapping[str, Template]
) -> None:
    for template in (control_plane, *clusters.values()):
        fixed = [
            text
            for text in walk(template.raw)
            if isinstance(text, str) and text.startswith("arn:") and text != "arn:"
        ]
        assert fixed == []


def test_without_the_packages_one_line_says_what_to_do() -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-m", "infra.aws.app"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == "dovetail: No module named 'aws_cdk'; run `make setup` first\n"


@pytest.mark.landing
def test_the_command_in_cdk_json_synthesises_without_credentials(tmp_path: Path) -> None:
    settings = json.loads((ROOT / "cdk.json").read_text())
    environment = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    context = {"bundle": "code", "clusters": "prod", "max_price_per_hour": "prod:25"}
    done = subprocess.run(
        settings["app"],
        shell=True,
        cwd=ROOT,
        env={
            **environment,
            "HOME": str(tmp_path),
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "CDK_CONTEXT_JSON": json.dumps({**settings["context"], **context}),
            "CDK_OUTDIR": str(tmp_path / "out"),
        },
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "DovetailCluster-prod.template.json").is_file()


def test_a_wrong_context_value_ends_in_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise ConfigError("bundle: 'zip': give full or code")

    monkeypatch.setattr("infra.aws.app.build_app", refuse)

    assert main() == 2
    assert capsys.readouterr().err == "dovetail: bundle: 'zip': give full or code\n"
