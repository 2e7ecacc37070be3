"""The forwarder lists a cluster of so many pods and announces those that wait."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from shared.kube.connection import connect_endpoint
from tests.benchmarks import forwarder_memory as bench
from tests.scale.apiserver import large_cluster
from tests.scale.manifests import PODS_OF_A_NODE

_LONGEST_SECONDS = 900


def forwarder(pods: int) -> Mapping[str, float]:
    """Let the forwarder list so many pods, one in a hundred of them waiting."""
    bus = bench.Bus()
    waiting = max(pods // 100, 1)
    with (
        large_cluster(pods // PODS_OF_A_NODE, waiting=waiting) as url,
        tempfile.TemporaryDirectory() as folder,
    ):
        bench.prepare(connect_endpoint(url, "", lambda: "t"))
        with bench.forwarder(url, bus.url, Path(folder)) as process:
            bench.wait_for(lambda: bus.count("pod-pending") >= waiting, _LONGEST_SECONDS)
            found = {
                "memory, MiB": bench.resident_mib(process.pid, "VmHWM"),
                "CPU s": bench.cpu_seconds(process.pid),
                "calls of the bus": bus.calls,
            }
            process.terminate()
            process.wait(30)
    bus.close()
    return found
