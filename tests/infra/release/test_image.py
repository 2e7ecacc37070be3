"""The forwarder's image: what is installed into it, what that weighs, and that it is enough."""

import compileall
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from infra.aws.forwarder_image import staged
from shared.model.codec import from_json
from shared.settings import ClusterAttachment
from tests.infra.templates import Template, cluster_stack, synthesized
from tools import forwarder_files
from tools.forwarder_files import LEFT_OUT, LIMIT_BYTES, kept, size

ROOT = Path(__file__).resolve().parents[3]
LOCK = ROOT / "requirements" / "forwarder.txt"
DOCKERFILE = ROOT / "functions" / "forwarder" / "Dockerfile"
IMPORTS = """
import functions.forwarder.main
from shared.aws.event_bus import _make_client
_make_client("us-east-1", 3)
from kubernetes.client.api_client import ApiClient
ApiClient().sanitize_for_serialization({"a": [1]})
"""
BLOCKED = sorted({value.replace("-", "_") for value in LEFT_OUT} - {"attrs"} | {"attr", "attrs"})
# Of the functions' lock alone.
OF_FUNCTIONS = ("aws_lambda_powertools", "boto3", "cronsim", "s3transfer", "tomli_w")
WITHOUT = f"""
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        blocked = {[*BLOCKED, *OF_FUNCTIONS, "kubernetes.aio"]!r}
        if any(name == one or name.startswith(one + ".") for one in blocked):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
{IMPORTS}
"""


def run(program: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    kept_variables = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    return subprocess.run(
        [sys.executable, "-S", "-c", program] if environment else [sys.executable, "-c", program],
        cwd=ROOT,
        env={**kept_variables, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("image", "accepted"),
    [
        (f"python:3.13-slim@sha256:{'0' * 64}", True),
        ("python:3.13-slim", False),
        ("python@sha512:0", False),
        ("", False),
    ],
)
def test_the_image_is_built_on_a_base_named_by_digest(image: str, *, accepted: bool) -> None:
    """The step of the build that checks it is run as Docker runs it."""
    text = DOCKERFILE.read_text()
    (step,) = re.findall(r"^RUN (case .*?esac)$", text, re.MULTILINE | re.DOTALL)
    shell = shutil.which("sh")
    assert shell is not None

    done = subprocess.run(
        [shell, "-c", step.replace("\\\n", "")], env={"PYTHON_IMAGE": image}, check=False
    )

    assert (done.returncode == 0) == accepted


def test_the_build_has_a_base_and_runs_nothing_of_another_architecture() -> None:
    text = DOCKERFILE.read_text()
    build, image = text.split("\nFROM ")[1:]

    (base,) = re.findall(r"^ARG PYTHON_IMAGE=(\S+)$", text, re.MULTILINE)
    assert re.fullmatch(r"python:3\.13-slim@sha256:[0-9a-f]{64}", base)
    assert build.startswith("--platform=$BUILDPLATFORM ${PYTHON_IMAGE} AS build\n")
    assert '"${TARGETARCH}"' in build
    assert image.startswith("${PYTHON_IMAGE}\n")
    assert "\nRUN " not in image


def test_the_asset_is_what_the_build_copies_and_no_more(tmp_path: Path) -> None:
    folder = staged()
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE.read_text(), re.MULTILINE)
    wanted = [source for line in copied for source in line.split()]

    assert "functions/forwarder/Dockerfile" in found
    for source in wanted:
        assert (folder / source).exists(), source
    allowed = (*wanted, "functions/forwarder")
    assert [path for path in sorted(found) if not path.startswith(allowed)] == []
    assert not any("__pycache__" in path or path.endswith(".pyc") for path in found)


def test_the_deployment_builds_one_image_for_both_architectures(
    assembly: Path, clusters: Mapping[str, Template]
) -> None:
    names = set()
    for name, template in clusters.items():
        manifest = json.loads((assembly / f"{cluster_stack(name)}.assets.json").read_text())
        ((digest, asset),) = manifest["dockerImages"].items()
        source = asset["source"]
        assert source["platform"] == "linux/amd64,linux/arm64"
        assert (assembly / source["directory"] / source["dockerFile"]).is_file()
        ((_, destination),) = asset["destinations"].items()
        assert destination["imageTag"] == digest
        (parameter,) = template.of("AWS::SSM::Parameter")
        image = from_json(ClusterAttachment, parameter.properties["Value"]).forwarder_image
        assert image.startswith("123456789012.dkr.ecr.eu-west-1.amazonaws.com/cdk-")
        assert image.endswith(f":{digest}")
        names.add(image)
    assert len(names) == 1


@pytest.mark.landing
def test_an_image_that_exists_is_taken_without_docker(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    named = "registry.example/dovetail/forwarder:1"
    folder = synthesized(
        tmp_path_factory,
        "image",
        clusters="prod",
        max_price_per_hour="prod:25",
        forwarder_image=named,
    )
    template = Template(folder / f"{cluster_stack('prod')}.template.json")
    (parameter,) = template.of("AWS::SSM::Parameter")

    assert json.loads(parameter.properties["Value"])["forwarder_image"] == named
    for path in folder.glob("*.assets.json"):
        assert not json.loads(path.read_text()).get("dockerImages")


def test_the_forwarder_runs_without_the_packages_that_are_left_out() -> None:
    done = run(WITHOUT)

    assert done.returncode == 0, done.stderr


def test_a_package_is_left_out_with_its_hashes_and_the_rest_stays_as_it_is() -> None:
    lock = LOCK.read_text()
    names = {entry.lower() for entry in re.findall(r"^([A-Za-z0-9._-]+)==", lock, re.MULTILINE)}
    rest = {
        entry.lower() for entry in re.findall(r"^([A-Za-z0-9._-]+)==", kept(lock), re.MULTILINE)
    }

    assert names >= LEFT_OUT
    assert rest == names - LEFT_OUT
    assert {"botocore", "kubernetes", "pydantic", "urllib3"} <= rest
    assert set(kept(lock).splitlines()) <= set(lock.splitlines()) | {""}


def test_the_image_is_built_by_the_tool_that_is_weighed_here() -> None:
    written = DOCKERFILE.read_text()
    ignored = (DOCKERFILE.parent / "Dockerfile.dockerignore").read_text().splitlines()

    assert "python /build/forwarder_files.py /build/forwarder.txt" in written
    assert "!tools/forwarder_files.py" in ignored
    assert re.search(r"^USER 65532:65532$", written, re.MULTILINE)


def test_what_the_pod_asks_for_is_what_was_measured() -> None:
    """docs/evidence/benchmarks.md has the forwarder's peak with 10,000 pods and 500 nodes."""
    documents = yaml.safe_load_all((ROOT / "infra" / "cluster" / "forwarder.yaml").read_text())
    (deployment,) = [document for document in documents if document["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    page = (ROOT / "docs" / "evidence" / "benchmarks.md").read_text()
    (peak,) = re.findall(r"^## Forwarder\n\n.*?peak ([\d.]+) MiB", page, re.MULTILINE)
    memory = container["resources"]

    # A quarter more, for clusters that differ from the measured one.
    assert 1.25 * float(peak) <= int(memory["requests"]["memory"].removesuffix("Mi"))
    assert memory["limits"]["memory"] == "192Mi"


@pytest.mark.slow
def test_the_installed_files_are_small_enough_and_enough(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Packages from the index for this interpreter, bytecode and code, as the image has them."""
    packages, code = tmp_path / "packages", tmp_path / "app"
    assert forwarder_files.main([str(LOCK), str(packages)]) == 0
    assert " MB of packages" in capsys.readouterr().out
    for name in ("shared", "functions/forwarder"):
        unwanted = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, code / name, ignore=unwanted)
    shutil.copy(ROOT / "functions" / "__init__.py", code / "functions" / "__init__.py")
    compileall.compile_dir(tmp_path, quiet=2)

    assert size(tmp_path) <= LIMIT_BYTES
    done = run(f"import os; os.chdir({str(code)!r})\n{IMPORTS}", PYTHONPATH=f"{code}:{packages}")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("architecture", sorted(forwarder_files.MACHINES))
def test_the_packages_are_those_of_the_image_s_architecture(
    architecture: str, tmp_path: Path
) -> None:
    assert forwarder_files.main([str(LOCK), str(tmp_path), architecture]) == 0
    built = {path.name for path in tmp_path.rglob("*.so")}
    machine = forwarder_files.MACHINES[architecture]
    assert any(name.endswith(f".cpython-313-{machine}-linux-gnu.so") for name in built)
    assert [name for name in built if "linux-gnu" in name and machine not in name] == []
