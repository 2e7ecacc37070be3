import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from aws_cdk import App, Stack
from aws_cdk import aws_lambda as lambda_

from infra.aws import bundling
from infra.aws.bundling import BundlingError, LockedInstall, function_code
from infra.aws.config import ConfigError

LOCK = "requirements/functions.txt"


def _write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small repository."""
    root = tmp_path / "repository"
    _write(
        root,
        {
            "functions/__init__.py": "",
            "functions/bind/handler.py": "def handler(event, context): ...\n",
            "functions/bind/__pycache__/handler.cpython-311.pyc": "stale",
            "functions/cli/main.py": "",
            "functions/forwarder/main.py": "",
            "functions/forwarder/Dockerfile": "",
            "shared/__init__.py": "",
            "shared/instance_types/embedded/us-east-1.json": "{}",
            "shared/notes.md": "",
            "tests/test_bind.py": "",
            "infra/app.py": "",
        },
    )
    monkeypatch.setattr(bundling, "ROOT", root)
    return root


def _asset(outdir: Path, bundle: str = "code") -> Path:
    """Synthesise a stack with one function and return its asset's folder."""
    app = App(outdir=str(outdir))
    stack = Stack(app, "S")
    lambda_.Function(
        stack,
        "F",
        code=function_code("full" if bundle == "full" else "code"),
        handler="functions.bind.handler.handler",
        runtime=lambda_.Runtime.PYTHON_3_13,
    )
    app.synth()
    (found,) = outdir.glob("asset.*")
    return found


def _files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_the_code_asset_carries_what_lambda_runs_and_nothing_else(
    source: Path, tmp_path: Path
) -> None:
    assert _files(_asset(tmp_path / "out")) == [
        "functions/__init__.py",
        "functions/bind/handler.py",
        "shared/__init__.py",
        "shared/instance_types/embedded/us-east-1.json",
    ]


def test_the_asset_changes_with_the_code_and_only_with_it(source: Path, tmp_path: Path) -> None:
    first = _asset(tmp_path / "first").name
    _write(source, {"tests/test_more.py": "", "functions/cli/main.py": "x = 1\n"})
    second = _asset(tmp_path / "second").name
    _write(source, {"functions/bind/handler.py": "changed = True\n"})
    third = _asset(tmp_path / "third").name

    assert first == second
    assert third != second


@pytest.mark.landing
def test_the_full_asset_has_the_locked_packages_beside_the_code(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def install(lock: Path, target: Path) -> None:
        _write(target, {f"{line}/__init__.py": "" for line in lock.read_text().split()})

    monkeypatch.setattr(bundling, "_install", install)
    _write(source, {LOCK: "pydantic\n"})
    first = _asset(tmp_path / "first", "full")
    _write(source, {LOCK: "pydantic\nyaml\n"})
    second = _asset(tmp_path / "second", "full")

    assert "pydantic/__init__.py" in _files(first)
    assert "functions/bind/handler.py" in _files(first)
    assert "yaml/__init__.py" in _files(second)
    assert first.name != second.name


@pytest.mark.landing
def test_the_full_asset_changes_with_what_is_left_out_of_it(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundling, "_install", lambda _lock, target: target.mkdir(exist_ok=True))
    _write(source, {LOCK: ""})
    first = _asset(tmp_path / "first", "full")
    monkeypatch.setattr(bundling, "PRUNED", (*bundling.PRUNED, "more"))
    second = _asset(tmp_path / "second", "full")

    assert first.name != second.name


def test_what_lambda_never_imports_is_pruned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Done:
        returncode = 0
        stdout = ""
        stderr = ""

    monkeypatch.setattr(subprocess, "run", lambda *_words, **_options: Done())
    target = tmp_path / "out"
    _write(
        target,
        {
            "bin/tool": "",
            "boto3/__init__.py": "",
            "boto3/examples/s3.rst": "",
            "botocore/data/endpoints.json": "",
            "botocore/data/ec2/2016-11-15/service-2.json.gz": "",
            "botocore/data/quicksight/2018-04-01/service-2.json.gz": "",
            "six/tests/test_it.py": "",
            "yaml/__init__.pyi": "",
            "yaml/__init__.py": "",
        },
    )
    _write(tmp_path / "source", {LOCK: "", "functions/__init__.py": "", "shared/__init__.py": ""})
    LockedInstall(tmp_path / "source").try_bundle(str(target))

    assert _files(target) == [
        "boto3/__init__.py",
        "botocore/data/ec2/2016-11-15/service-2.json.gz",
        "botocore/data/endpoints.json",
        "functions/__init__.py",
        "shared/__init__.py",
        "yaml/__init__.py",
    ]


def test_a_missing_lock_says_what_to_do(source: Path) -> None:
    with pytest.raises(ConfigError, match=rf"bundle: {LOCK} is missing: run `make lock`"):
        function_code("full")


def test_packages_are_asked_for_the_lambda_runtime_with_hashes_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command: list[str] = []

    class Done:
        returncode = 1
        stderr = "warning\nERROR: no matching distribution\n"

    def run(words: list[str], **_options: object) -> Done:
        command.extend(words)
        return Done()

    monkeypatch.setattr(subprocess, "run", run)
    _write(tmp_path, {LOCK: ""})

    with pytest.raises(BundlingError, match=r"could not be installed: ERROR: no matching"):
        LockedInstall(tmp_path).try_bundle(str(tmp_path / "out"))
    asked = json.dumps(command)
    assert "--require-hashes" in asked
    assert "--no-compile" in asked
    assert "manylinux2014_aarch64" in asked
    assert command[command.index("--python-version") + 1] == "3.13"
