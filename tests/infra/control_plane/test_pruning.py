"""The functions run with the packages of their lock alone; bytecode is the same."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from infra.aws import bundling
from infra.aws.app import build_app
from infra.aws.bundling import (
    LOCK,
    SERVICES,
    BundlingError,
    LockedInstall,
    target_interpreter,
)
from infra.aws.names import CONTROL_PLANE_STACK

ROOT = Path(__file__).resolve().parents[3]
LOCKED = sorted(re.findall(r"^([a-z0-9-]+)==", (ROOT / LOCK).read_text(), re.MULTILINE))
PROGRAM = f"""
import importlib, importlib.metadata, pathlib, sys

brought = importlib.metadata.packages_distributions()

class Missing:
    def find_spec(self, name, path=None, target=None):
        owners = brought.get(name.partition(".")[0], ())
        allowed = {[*LOCKED, "dovetail-autoscaler"]!r}
        if owners and not any(one.lower().replace("_", "-") in allowed for one in owners):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
for path in sorted(pathlib.Path("functions").glob("*/handler.py")):
    importlib.import_module(".".join(path.with_suffix("").parts))
"""


def test_functions_run_with_the_packages_of_their_lock_alone() -> None:
    assert "boto3" in LOCKED
    assert "kubernetes" not in LOCKED
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr


def test_the_bundle_has_a_description_of_every_service_that_functions_call() -> None:
    # Of `dovetail doctor --prerequisites` and of the forwarder.
    elsewhere = ("account.py", "event_bus.py")
    text = "".join(
        path.read_text()
        for path in (ROOT / "shared" / "aws").rglob("*.py")
        if path.name not in elsewhere
    )
    called = set(re.findall(r'(?:client|_pages)\(\s*"([a-z0-9-]+)"', text))

    assert called == set(SERVICES)


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(bundling, "_install", lambda _lock, target: target.mkdir(exist_ok=True))
    for package in ("functions", "shared"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("VALUE = 1\n")
    return tmp_path


def test_bytecode_depends_on_the_source_only(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOVETAIL_BUNDLE_PYTHON", sys.executable)
    written = []
    for name in ("one", "two"):
        assert LockedInstall(source).try_bundle(str(source / name))
        found = sorted((source / name).rglob("*.pyc"))
        written.append([path.read_bytes() for path in found])
        assert len(found) == 2

    assert written[0] == written[1]
    assert str(source).encode() not in b"".join(written[0])


def test_nobody_else_can_write_into_the_bundle(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOVETAIL_BUNDLE_PYTHON", sys.executable)
    # The CDK lets everybody write into it, for a container that bundles as another user.
    out = source / "out"
    out.mkdir()
    out.chmod(0o777)
    assert LockedInstall(source).try_bundle(str(out))
    assert out.stat().st_mode & 0o777 == 0o755


def test_an_interpreter_that_fails_is_named(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOVETAIL_BUNDLE_PYTHON", "/bin/false")
    with pytest.raises(BundlingError, match="/bin/false: the bytecode could not be written"):
        LockedInstall(source).try_bundle(str(source / "out"))


def test_without_an_interpreter_there_is_no_bytecode(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DOVETAIL_BUNDLE_PYTHON", raising=False)
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    assert LockedInstall(source).try_bundle(str(source / "out"))

    assert list((source / "out").rglob("*.pyc")) == []


def test_a_deployment_without_the_runtime_s_python_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("infra.aws.control_plane.target_interpreter", lambda: "")
    # No bundle is made for no stack.
    app = build_app({"clusters": [], "bundle": "full", "aws:cdk:bundling-stacks": []})
    told = app.node.find_child(CONTROL_PLANE_STACK).node.metadata
    (text,) = (str(entry.data) for entry in told if entry.type == "aws:cdk:warning")
    assert text.startswith("no Python 3.13 is found")


@pytest.mark.parametrize("status", [0, 127])
def test_an_interpreter_on_the_path_is_taken_if_it_runs(
    status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DOVETAIL_BUNDLE_PYTHON", raising=False)
    interpreter = tmp_path / "python3.13"
    interpreter.write_text(f"#!/bin/sh\nexit {status}\n")
    interpreter.chmod(0o755)
    monkeypatch.setattr(
        "shutil.which", lambda name, **_: str(interpreter) if name == "python3.13" else None
    )
    assert target_interpreter() == ("" if status else str(interpreter))
