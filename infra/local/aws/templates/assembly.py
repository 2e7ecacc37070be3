"""A synthesised cloud assembly on disk: its stacks in order, their assets, and how to make one.

Source: https://github.com/aws/aws-cdk-cli, package cloud-assembly-schema (2026-11-21).
"""

import hashlib
import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_STAMP = ".inputs.sha256"
_SKIPPED = frozenset({".git", ".venv", "node_modules", "cdk.out", "__pycache__", ".build", "tests"})


class AssemblyError(RuntimeError):
    """The assembly cannot be made or used; the message says what to change."""


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
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for file in sorted(self.path.rglob("*")):
                if file.is_file():
                    entry = zipfile.ZipInfo(file.relative_to(self.path).as_posix())
                    entry.external_attr = 0o644 << 16
                    archive.writestr(entry, file.read_bytes())
        return buffer.getvalue()


@dataclass(frozen=True, slots=True, kw_only=True)
class StackArtifact:
    """One stack of the assembly."""

    name: str
    template: dict[str, Any]
    parameters: Mapping[str, str]
    assets: tuple[Asset, ...]
    depends_on: tuple[str, ...]


def read_assembly(folder: Path) -> tuple[StackArtifact, ...]:
    """Return the stacks of an assembly, each after those it depends on.

    Raises:
        AssemblyError: `folder` holds no assembly.
    """
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


def synth(app_dir: Path, context: Mapping[str, str], out_dir: Path) -> Path:
    """Synthesise the app of `app_dir/cdk.json` into `out_dir` and return that.

    Python runs the app itself, without the CDK command line (half the time). Nothing is done
    when no input changed since the last time.

    Raises:
        AssemblyError: there is no app, or it failed.
    """
    settings_path = app_dir / "cdk.json"
    if not settings_path.exists():
        raise AssemblyError(f"{settings_path} does not exist: name the folder of a CDK app")
    settings = json.loads(settings_path.read_text(encoding="utf-8"))
    whole_context = dict(settings.get("context") or {}) | dict(context)
    stamp = _digest(app_dir, whole_context, without=out_dir)
    if (out_dir / _STAMP).exists() and (out_dir / _STAMP).read_text(encoding="utf-8") == stamp:
        return out_dir
    environment = dict(os.environ) | {
        "CDK_OUTDIR": str(out_dir.resolve()),
        "CDK_CONTEXT_JSON": json.dumps(whole_context),
        "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "1",
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "PYTHONPATH": os.pathsep.join([str(app_dir), os.environ.get("PYTHONPATH", "")]),
    }
    done = subprocess.run(  # noqa: S602 - a shell command, as for the CDK's own command line
        settings["app"],
        shell=True,
        cwd=app_dir,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise AssemblyError(f"{settings['app']!r} failed in {app_dir}:\n{done.stderr[-4000:]}")
    (out_dir / _STAMP).write_text(stamp, encoding="utf-8")
    return out_dir


def _digest(app_dir: Path, context: Mapping[str, Any], *, without: Path) -> str:
    total = hashlib.sha256(json.dumps(context, sort_keys=True).encode())
    for folder, folders, files in os.walk(app_dir):
        folders[:] = sorted(
            name
            for name in folders
            if name not in _SKIPPED and (Path(folder) / name).resolve() != without.resolve()
        )
        for name in sorted(files):
            if not name.endswith((".pyc", ".md")):
                path = Path(folder) / name
                total.update(path.relative_to(app_dir).as_posix().encode())
                total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()
