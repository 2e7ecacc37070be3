"""The embedded API server with a large cluster in it, as a process of its own.

Run as `python -m tests.scale.apiserver NODES JOINING WAITING PODS_OF_A_NODE`: prints its URL once
the cluster is there, and ends with its standard input. Its CPU time is none of the functions'.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from infra.local.kube.server import EmbeddedKube, KubeApi
from tests.scale.manifests import PODS_OF_A_NODE, node, pod


def main() -> None:
    """Serve a cluster of so many nodes, each with its pods."""
    with EmbeddedKube() as kube:
        _fill(kube.api, *map(int, sys.argv[1:]))
        sys.stdout.write(f"{kube.url}\n")
        sys.stdout.flush()
        sys.stdin.read()


def _fill(api: KubeApi, nodes: int, joining: int, waiting: int, pods_of_a_node: int) -> None:
    for number in range(nodes):
        _put(api, "nodes", node(number))
        for place in range(pods_of_a_node):
            _put(api, "pods", pod(number * pods_of_a_node + place, number))
    for number in range(nodes, nodes + joining):
        _put(api, "nodes", node(number, joining=True))
    first = nodes * pods_of_a_node
    for number in range(first, first + waiting):
        _put(api, "pods", pod(number, None))


def _put(api: KubeApi, plural: str, manifest: dict[str, Any]) -> None:
    api.store.write(api.kinds.core(plural), manifest, None)


@contextmanager
def large_cluster(
    nodes: int, joining: int = 0, waiting: int = 0, pods_of_a_node: int = PODS_OF_A_NODE
) -> Iterator[str]:
    """Serve such a cluster as long as the block lasts, and yield its URL."""
    amounts = [str(amount) for amount in (nodes, joining, waiting, pods_of_a_node)]
    command = [sys.executable, "-m", "tests.scale.apiserver", *amounts]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.communicate()


if __name__ == "__main__":
    main()
