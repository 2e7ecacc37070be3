"""Which kubeconfig file a command reads, and which context of it."""

import argparse
from pathlib import Path

from shared.runtime.system import environment


def add_kubeconfig(parser: argparse.ArgumentParser) -> None:
    """Add `--kubeconfig` and `--context`."""
    parser.add_argument("--kubeconfig", metavar="FILE", help="by default as kubectl finds it")
    parser.add_argument("--context", metavar="NAME", help="of the file; by default the current one")


def kubeconfig_of(named: str | None) -> str:
    """Return the path of the kubeconfig file that is named, or that kubectl would read.

    Source: https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/
    (2026-11).
    """
    if named:
        return named
    return environment().get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
