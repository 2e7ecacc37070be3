"""Which kubeconfig file a command reads, and which context of it."""

import argparse
import os
from pathlib import Path

from shared.runtime.system import environment


def add_kubeconfig(parser: argparse.ArgumentParser, reads: str = "") -> None:
    """Add `--kubeconfig` and `--context`.

    Args:
        reads: For the help, what the command reads of the cluster if one of them is given; empty
            for a command that always reads it.
    """
    of_file = "of the file; by default the current one"
    parser.add_argument("--kubeconfig", metavar="FILE", help="by default as kubectl finds it")
    parser.add_argument("--context", metavar="NAME", help=reads or of_file)


def context_name(kubeconfig: str | None, context: str | None) -> str:
    """Return the name of the context that a command reads; empty where no file names one.

    Of several files the first that names a current context counts.
    """
    # Imported when it runs: `dovetail --help` needs none of it.
    import yaml  # noqa: PLC0415

    from shared.manifests.raw_json import mapping  # noqa: PLC0415

    if context:
        return context
    for name in kubeconfig_of(kubeconfig).split(os.pathsep):
        try:
            found = yaml.safe_load(Path(name).expanduser().read_text(encoding="utf-8"))
        except (OSError, ValueError, yaml.YAMLError):
            continue
        if current := mapping(found).get("current-context"):
            return str(current)
    return ""


def kubeconfig_of(named: str | None) -> str:
    """Return the path of the kubeconfig file that is named, or that kubectl would read.

    Source: https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/
    (2026-11).
    """
    if named:
        return named
    return environment().get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
