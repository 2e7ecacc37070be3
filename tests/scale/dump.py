"""`dovetail plan` reads a dump of so many pods, as `kubectl get -o json` prints it."""

import argparse
import contextlib
import io
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from functions.cli.commands import mount_commands
from functions.cli.plan.plan_command import PLACED
from tests.scale.manifests import PODS_OF_A_NODE, PROVISIONER, node, pod


def dump(pods: int) -> Mapping[str, float]:
    """Plan for the waiting pods of a dump, one in a hundred; the others run."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "dump.json"
        with file.open("w", encoding="utf-8") as writing:
            for piece in _written(pods):
                writing.write(piece)
        parser = argparse.ArgumentParser()
        mount_commands(parser.add_subparsers(required=True))
        arguments = parser.parse_args(["plan", "-f", str(file)])
        began = time.process_time()
        with contextlib.redirect_stdout(io.StringIO()):
            assert arguments.run(arguments) == PLACED
        return {
            "file, MiB": file.stat().st_size / 2**20,
            "memory, MiB": peak_mib(),
            "CPU s": time.process_time() - began,
        }


def _written(pods: int) -> Iterator[str]:
    yield '{\n    "apiVersion": "v1",\n    "items": [\n        '
    yield _item(PROVISIONER)
    for item in _objects(pods):
        yield f",\n        {_item(item)}"
    yield '\n    ],\n    "kind": "List",\n    "metadata": {\n        "resourceVersion": ""\n    }\n'
    yield "}\n"


def _objects(pods: int) -> Iterator[dict[str, Any]]:
    waiting = max(pods // 100, 1)
    for number in range(pods - waiting):
        if number % PODS_OF_A_NODE == 0:
            yield {"apiVersion": "v1", "kind": "Node", **node(number // PODS_OF_A_NODE)}
        yield {"apiVersion": "v1", "kind": "Pod", **pod(number, number // PODS_OF_A_NODE)}
    for number in range(pods - waiting, pods):
        yield {"apiVersion": "v1", "kind": "Pod", **pod(number, None)}


def _item(item: Mapping[str, Any]) -> str:
    return json.dumps(item, indent=4).replace("\n", "\n        ")


def peak_mib() -> float:
    """Return the most memory that this process had; what getrusage says counts the parent's."""
    lines = Path(f"/proc/{os.getpid()}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
