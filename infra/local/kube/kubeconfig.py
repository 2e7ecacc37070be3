"""Kubeconfigs with one cluster and one user."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from functions.cli.private_file import write_private_file

_NAME: Final = "dovetail"


def write_kubeconfig(
    path: Path, server: str, authority: Mapping[str, str], user: Mapping[str, str]
) -> None:
    """Write a kubeconfig that only its owner reads.

    Args:
        authority: The field of the cluster that names its certificate authority, or nothing.
    """
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": {"server": server, **authority}}],
        "users": [{"name": _NAME, "user": dict(user)}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME}}],
        "current-context": _NAME,
    }
    # JSON is YAML; kubectl takes it.
    write_private_file(path, json.dumps(document, indent=2) + "\n")
