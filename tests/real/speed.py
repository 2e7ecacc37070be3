"""How fast this machine is at what scenarios wait for: pods that a kubelet starts."""

import base64
import time
from collections.abc import Callable
from typing import Any, Final

from infra.local.cluster_simulator.world import Timing
from infra.local.demo.children import Children
from infra.local.demo.cluster_client import ClusterClient
from infra.local.demo.node_sizes import node_sizes
from infra.local.demo.problem import Problem, last_words
from tests.real.cluster import Cluster
from tests.real.nodes import kubelet_command, machine_file
from tests.real.user_data import Boot, Instance

PODS: Final = 100
# On a simulated kubelet, for which the time limits were written, the same pods run after this.
REFERENCE_SECONDS: Final = Timing().pod_start_seconds
_LONGEST_SECONDS: Final = 600.0
_LOOK_SECONDS: Final = 0.5
_NAME: Final = "reference"
_PODS: Final = "api/v1/namespaces/default/pods"


def factor_of(seconds: float) -> float:
    """Return by what the time limits of scenarios are multiplied; never less than 1."""
    return round(max(1.0, seconds / REFERENCE_SECONDS), 2)


def measure(cluster: Cluster) -> float:
    """Return the seconds from the creation of 100 pods on one kubelet until all run.

    The cluster is not used for anything else afterwards.

    Raises:
        Problem: They do not run in ten minutes.
    """
    folder = cluster.folder / _NAME
    folder.mkdir()
    children = Children(folder)
    log = folder / f"{_NAME}.log"
    try:
        children.spawn(_NAME, [str(cluster.program), *_command(cluster)])
        client = cluster.client
        _await(lambda: any(_is_ready(entry) for entry in client.items("api/v1/nodes")), log)
        began = time.monotonic()
        for number in range(PODS):
            client.call("POST", _PODS, _pod(number))
        _await(lambda: _running(client) == PODS, log)
        return time.monotonic() - began
    finally:
        children.stop_all()


def _command(cluster: Cluster) -> list[str]:
    instance = Instance(id="i-0", zone="us-east-1a", dns_name=_NAME, cores=16, pods=PODS + 10)
    boot = Boot(
        cluster="",
        endpoint=cluster.url,
        authority=base64.b64encode(cluster.authority.read_bytes()).decode(),
        config={
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "clusterDNS": ["172.20.0.10"],
            "maxPods": instance.pods,
            "serializeImagePulls": False,
        },
        flags=(f"--hostname-override={_NAME}",),
    )
    machine = machine_file(node_sizes()["m5.4xlarge"], instance)
    return kubelet_command(
        boot,
        folder=cluster.folder / _NAME,
        name=_NAME,
        user={"token": cluster.token(_NAME)},
        machine=machine,
    )


def _pod(number: int) -> dict[str, Any]:
    # With a tag: without, each container pulls the image, and the kubelet pulls five a second.
    container = {"name": "pause", "image": "public.ecr.aws/eks-distro/kubernetes/pause:3.2"}
    return {
        "metadata": {"name": f"reference-{number}"},
        "spec": {"nodeName": _NAME, "containers": [container]},
    }


def _running(client: ClusterClient) -> int:
    return sum(entry["status"]["phase"] == "Running" for entry in client.items(_PODS))


def _is_ready(node: dict[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    return any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions
    )


def _await(holds: Callable[[], bool], log: Any) -> None:
    ends = time.monotonic() + _LONGEST_SECONDS
    while not holds():
        if time.monotonic() > ends:
            raise Problem(f"the reference does not run: {last_words(log)}")
        time.sleep(_LOOK_SECONDS)
