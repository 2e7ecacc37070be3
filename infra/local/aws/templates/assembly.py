"""A synthesised cloud assembly on disk: its stacks in order, and their assets.

Source: https://github.com/aws/aws-cdk-cli, package cloud-assembly-schema (2026-11-21).
"""

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The CDK's own validation of the templates takes twice as long as all else. It has a place in tests
# and in `cdk synth`; here the embedded API tells what a template lacks.
# Source: https://github.com/aws/aws-cdk/blob/main/packages/aws-cdk-lib/README.md (2026-11-28).
_SYNTH = """import json, os, sys
os.environ["CDK_VALIDATION"] = "false"
from infra.aws.app import build_app
build_app(json.loads(sys.argv[1]), outdir=sys.argv[2]).synth()
"""


class AssemblyError(RuntimeError):
    """The assembly cannot be used; the message says what to change."""


def zip_of(folder: Path) -> bytes:
    """Return a folder as a zip with fixed times."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                entry = zipfile.ZipInfo(file.relative_to(folder).as_posix())
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, file.read_bytes())
    return buffer.getvalue()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """One file asset: what to upload where (the bucket name may hold placeholders)."""

    path: Path
    zipped: bool
    bucket: str
    key: str

    def content(self) -> bytes:
        """Return the bytes to upload; a folder becomes a zip with fixed times."""
        if not self.zipped:
            return self.path.read_bytes()
        return zip_of(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class StackArtifact:
    """One stack of the assembly."""

    name: str
    template: dict[str, Any]
    parameters: Mapping[str, str]
    assets: tuple[Asset, ...]
    depends_on: tuple[str, ...]


def read_assembly(folder: Path) -> tuple[StackArtifact, ...]:
    """Return the stacks of an assembly, each after those it depends on."""
    manifest_path = folder / "manifest.json"
    if not manifest_path.exists():
        raise AssemblyError(f"{manifest_path} does not exist: synthesise the app into it first")
    artifacts = json.loads(manifest_path.read_text(encoding="utf-8"))["artifacts"]
    stacks = {
        key: _stack(folder, key, row, artifacts)
        for key, row in sorted(artifacts.items())
        if row["type"] == "aws:cloudformation:stack"
    }
    ordered: list[StackArtifact] = []
    done: set[str] = set()
    while len(done) < len(stacks):
        ready = [
            key
            for key in sorted(stacks)
            if key not in done and set(stacks[key].depends_on) & set(stacks) <= done
        ]
        if not ready:
            raise AssemblyError(f"the stacks of {folder} depend on each other in a circle")
        ordered += [stacks[key] for key in ready]
        done.update(ready)
    return tuple(ordered)


def _stack(
    folder: Path, key: str, row: Mapping[str, Any], artifacts: Mapping[str, Any]
) -> StackArtifact:
    properties = row["properties"]
    dependencies = tuple(row.get("dependencies") or ())
    assets: list[Asset] = []
    for name in dependencies:
        artifact = artifacts[name]
        if artifact["type"] == "cdk:asset-manifest":
            assets += _assets(folder, folder / artifact["properties"]["file"])
    template = json.loads((folder / properties["templateFile"]).read_text(encoding="utf-8"))
    return StackArtifact(
        name=properties.get("stackName", key),
        template=template,
        parameters=properties.get("parameters") or {},
        assets=tuple(assets),
        depends_on=dependencies,
    )


def _assets(folder: Path, manifest: Path) -> list[Asset]:
    files = json.loads(manifest.read_text(encoding="utf-8")).get("files") or {}
    return [
        Asset(
            path=folder / row["source"]["path"],
            zipped=row["source"].get("packaging") == "zip",
            bucket=destination["bucketName"],
            key=destination["objectKey"],
        )
        for _, row in sorted(files.items())
        for _, destination in sorted(row["destinations"].items())
    ]


def synth_command(context: Mapping[str, Any], folder: Path) -> list[str]:
    """Return the arguments of Python that write the product's assembly into a folder.

    Python runs the app itself, without the CDK command line (half the time).
    """
    return ["-c", _SYNTH, json.dumps(context), str(folder)]
