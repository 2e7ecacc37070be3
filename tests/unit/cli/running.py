"""Runs commands as the `dovetail` script does, in this process."""

import argparse
import functools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from functions.cli.commands import mount_commands
from functions.cli.plan.reading.documents import Document
from functions.cli.plan.reading.snapshot import OfflineSnapshot, read_snapshot
from shared.instance_types.catalog import Catalog, embedded_text
from tests import builders as make

ROOT = Path(__file__).parents[3]
CATALOG = Catalog(
    region="us-east-1", source="a test", date="2026-01-01", instance_types=(make.instance_type(),)
)
PROVISIONER = {
    "apiVersion": "karpenter.sh/v1alpha5",
    "kind": "Provisioner",
    "metadata": {"name": "default"},
    "spec": {
        "requirements": [
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
            {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["m5"]},
        ]
    },
}


@functools.cache
def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="dovetail")
    mount_commands(parser.add_subparsers(required=True))
    return parser


def run(*arguments: str) -> int:
    parsed = _parser().parse_args(arguments)
    return int(parsed.run(parsed))


def run_mounted(mount: Callable[[Any], object], *arguments: str) -> int:
    """Run the command that is mounted."""
    parser = argparse.ArgumentParser(prog="dovetail")
    mount(parser.add_subparsers())
    parsed = parser.parse_args(arguments)
    return int(parsed.run(parsed))


def read(*raws: Mapping[str, object]) -> OfflineSnapshot:
    """Read documents as `plan` does, with a catalogue of one type."""
    documents = [Document(where=f"a: document {n}", raw=raw) for n, raw in enumerate(raws, 1)]
    return read_snapshot(documents, CATALOG)


def container(cpu: object = "1", memory: object = "1Gi") -> dict[str, object]:
    return {"name": "main", "resources": {"requests": {"cpu": cpu, "memory": memory}}}


def deployment(name: str = "web", replicas: int = 3, **pod: object) -> dict[str, object]:
    spec = {"containers": [container()], **pod}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    }


def cron_job(name: str, schedule: str, pods: int = 1, **spec: object) -> dict[str, object]:
    template = {"spec": {"restartPolicy": "Never", "containers": [container()]}}
    job = {"spec": {"parallelism": pods, "completions": pods, "template": template}}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {"schedule": schedule, "jobTemplate": job, **spec},
    }


def pod(name: str = "a", **spec: object) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container()], **spec},
    }


def node(name: str = "n1", cpu: str = "8", **metadata: object) -> dict[str, object]:
    allocatable = {"cpu": cpu, "memory": "30Gi", "pods": "58"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, **metadata},
        "status": {"allocatable": allocatable},
    }


def written(path: Path, *documents: Mapping[str, object]) -> str:
    """Write a file of YAML documents; return its name."""
    path.write_text(yaml.safe_dump_all(documents))
    return str(path)


def catalogue_of(path: Path, *families: str) -> str:
    """Write the types of some families from the catalogue that ships; return the file's name."""
    document = json.loads(embedded_text())
    types = [row for row in document["types"] if row["name"].partition(".")[0] in families]
    path.write_text(json.dumps({**document, "types": types}))
    return str(path)


def catalogue(path: Path, rows: Sequence[Mapping[str, object]]) -> str:
    document = {"version": 1, "region": "x-1", "source": "a test", "date": "2026-01-01"}
    path.write_text(yaml.safe_dump({**document, "types": list(rows)}, default_flow_style=True))
    return str(path)
