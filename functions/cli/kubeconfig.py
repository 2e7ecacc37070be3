"""Which kubeconfig file a command reads."""

from pathlib import Path

from shared.runtime.system import environment


def kubeconfig_of(named: str | None) -> str:
    """Return the path of the kubeconfig file that is named, or that kubectl would read.

    Source: https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/
    (2026-11).
    """
    if named:
        return named
    return environment().get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
