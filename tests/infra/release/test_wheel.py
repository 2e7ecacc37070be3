"""The wheel alone: what comes with it, and its commands without AWS, a cluster or Node.js."""

import signal
import subprocess
import sys
import time
import urllib.request
import venv
import zipfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.unit.cli.dumps import as_list, mixed
from tools.make_sbom import brought_by
from tools.release.make_release import Release, write_wheel

pytestmark = pytest.mark.landing

MOST_BYTES = 160 * 2**20
BLOCK = 4096


@dataclass(frozen=True)
class Alone:
    """A virtual environment with the wheel and what it asks for, and nothing else."""

    wheel: Path
    packages: dict[str, metadata.Distribution]
    python: Path
    folder: Path

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """Start `dovetail` in an empty folder, with an empty home and no program on its path."""
        return subprocess.Popen(
            [self.python.with_name("dovetail"), *words],
            cwd=self.folder,
            env={
                "AWS_EC2_METADATA_DISABLED": "true",
                "HOME": str(self.folder),
                "PATH": str(self.folder),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str) -> tuple[int, str, str]:
        """Return exit code, output and errors of `dovetail`."""
        process = self.begin(*words)
        output, errors = process.communicate()
        return process.returncode, output, errors


@pytest.fixture(scope="module")
def alone(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Alone:
    folder = tmp_path_factory.mktemp("alone")
    write_wheel(release, folder)
    (wheel,) = folder.glob("*.whl")
    environment = folder / "environment"
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    # What is asked for is installed here in its locked versions: nothing is downloaded.
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"),
            *("--no-deps", "--no-index", "--no-compile", str(wheel)),
        ],
        check=True,
    )
    (packages,) = environment.glob("lib/python*/site-packages")
    (own,) = metadata.distributions(name="dovetail-autoscaler", path=[str(packages)])
    found = brought_by(own.requires or ())
    for distribution in found.values():
        for name in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
            (packages / name).symlink_to(Path(str(distribution.locate_file(name))))
    (folder / "empty").mkdir()
    return Alone(wheel=wheel, packages=found, python=python, folder=folder / "empty")


def test_it_brings_no_cdk_no_emulated_aws_and_at_most_160_mib(alone: Alone) -> None:
    assert alone.packages.keys() >= {"aiohttp", "boto3", "kubernetes", "rich"}
    assert not alone.packages.keys() & {"aws-cdk-lib", "constructs", "flask", "jsii", "moto"}
    with zipfile.ZipFile(alone.wheel) as archive:
        sizes = [entry.file_size for entry in archive.infolist()]
    for distribution in alone.packages.values():
        files = [file for file in distribution.files or () if file.suffix != ".pyc"]
        sizes += [file.size or 0 for file in files]
    assert sum(-(-size // BLOCK) * BLOCK for size in sizes) < MOST_BYTES


def test_it_holds_what_its_commands_need_and_no_more(alone: Alone) -> None:
    with zipfile.ZipFile(alone.wheel) as archive:
        names = set(archive.namelist())
    assert {"functions/cli/watch/built/index.html", "infra/cluster/forwarder.yaml"} <= names
    folders = {"/".join(Path(name).parts[:2]) for name in names if not name.startswith("shared/")}
    assert {name for name in folders if ".dist-info" not in name} == {
        "functions/__init__.py",
        "functions/cli",
        "infra/__init__.py",
        "infra/cluster",
    }


def test_plan_replay_and_what_if_decide(alone: Alone) -> None:
    code, output, errors = alone.run(
        "plan", "-f", str(ROOT / "examples" / "big"), "--save", "decision.json.gz"
    )
    assert (code, "new nodes for 110 pods" in output) == (0, True), errors
    code, output, errors = alone.run("replay", "decision.json.gz")
    assert (code, output.startswith("byte-identical")) == (0, True), errors
    code, output, errors = alone.run("what-if", "decision.json.gz", "--set", "max_node_vcpus=16")
    assert (code, "1 decision" in output) == (0, True), errors


def test_report_writes_its_page(alone: Alone) -> None:
    (alone.folder / "dump.json").write_text(as_list(mixed()))

    code, _, errors = alone.run("report", "-f", "dump.json", "--output", "report.html")

    assert code == 0, errors
    assert (alone.folder / "report.html").read_text().startswith("<!doctype html>")


def test_watch_serves_the_page_of_the_wheel(alone: Alone) -> None:
    recording = str(ROOT / "docs" / "recordings" / "demo.jsonl.gz")
    address = alone.folder / "address"
    process = alone.begin("watch", "--recording", recording, "--address-file", str(address))
    try:
        while not address.exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        with urllib.request.urlopen(address.read_text().strip()) as answer:
            assert answer.read() == b"<title>the page</title>"
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("attach prod", "Unable to locate credentials"),
        ("catalog --region eu-west-1", "Unable to locate credentials"),
        ("demo", "needs a checkout"),
        ("detach prod", "Unable to locate credentials"),
        ("doctor", "Unable to locate credentials"),
        ("migrate", "Unable to locate credentials"),
        ("top", "kubeconfig"),
        ("why pod/web-0", "Unable to locate credentials"),
    ],
)
def test_what_needs_more_says_so_in_one_line(alone: Alone, words: str, told: str) -> None:
    code, output, errors = alone.run(*words.split())
    name = words.split(maxsplit=1)[0]

    assert (code, output, errors.count("\n")) == (2, "", 1), errors
    assert errors.startswith(f"dovetail {name}: ")
    assert told in errors
