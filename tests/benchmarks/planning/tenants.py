"""What a hostile tenant costs the other namespaces of its cluster by pods on nodes and DaemonSets.

Run as `python -m tests.benchmarks.planning.tenants`. Seven pairs of plans for the same pods of
other namespaces, without the tenant and beside it; what the most expensive pods on nodes and
DaemonSets cost one plan; and one invocation of provision on the whole path, over HTTP from the
embedded API server through the adapter, with pods as large as it takes them.
"""

import argparse
import dataclasses
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

from shared.kube.cluster import KubeCluster
from shared.kube.connection import connect_endpoint
from shared.manifests.daemonsets import decode_daemonsets
from shared.manifests.pods import PodDecoder
from shared.model import labels as keys
from shared.model.errors import ThrottledError
from shared.model.plan import Plan
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.planning.decide import decide
from shared.planning.rules.provided_daemonsets import provided_daemonsets
from tests import builders as make
from tests.benchmarks.planning import clusters
from tests.benchmarks.planning.bounded import (
    INNOCENTS,
    MEBIBYTES,
    SECONDS,
    every_type,
    expressions,
    innocents,
    placed,
    raw_pod,
    snapshot,
)
from tests.benchmarks.report import markdown
from tests.benchmarks.timing import cpu_time
from tests.contract.kube.worlds import OverHttp
from tests.unit.worlds import NAME, World

PAIRS: Final = 7
MORE_PERCENT: Final = 10
_ROOT: Final = Path(__file__).parents[3]
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_NODES: Final = 100
Raw = dict[str, Any]


def standing(pods: int, terms: int, term: Callable[[int], Raw]) -> list[Raw]:
    """Return pods on nodes with so many terms of required anti-affinity each, all different."""
    return [
        raw_pod(
            f"standing-{pod}",
            {"podAntiAffinity": {_REQUIRED: [term(pod * terms + n) for n in range(terms)]}},
            cpu="10m",
            memory="16Mi",
            nodeName=f"n{pod % _NODES}",
        )
        for pod in range(pods)
    ]


def of_key(number: int) -> Raw:
    """Return a term over a topology key that no node has."""
    return {"topologyKey": f"example.com/t{number}", "labelSelector": {"matchLabels": {"k": "v"}}}


def over(key: str) -> Callable[[int], Raw]:
    """Return what makes terms over a key, each about a label that no pod has."""
    return lambda number: {
        "topologyKey": key,
        "labelSelector": {"matchLabels": {f"k{number}": "v"}},
    }


def wide(number: int) -> Raw:
    """Return a term that must be asked about each pod, of any namespace."""
    return {
        "topologyKey": keys.ZONE,
        "labelSelector": expressions("app", "In", f"x{number}"),
        "namespaceSelector": {},
    }


def daemonset(name: str, cpu: str, terms: int = 0, namespace: str = "tenant") -> Raw:
    """Return a DaemonSet whose node affinity has so many terms, none of which holds."""
    alternatives = [
        {
            "matchExpressions": [
                *expressions(keys.INSTANCE_TYPE, "NotIn", f"{name}-{n}")["matchExpressions"],
                *expressions("team", "In", "x")["matchExpressions"],
            ]
        }
        for n in range(terms)
    ]
    affinity = {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": alternatives}}} if terms else {}
    spec = {
        "containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}],
        "affinity": affinity,
    }
    labels = {"app": name}
    return {
        "metadata": {"namespace": namespace, "name": name, "uid": f"{namespace}/{name}"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


@dataclasses.dataclass(frozen=True, slots=True)
class Tenant:
    """What a tenant has: pods on nodes, and DaemonSets."""

    pods: Sequence[Raw] = ()
    daemonsets: Sequence[Raw] = ()


TENANT: Final = Tenant(
    standing(10, 3_000, over(keys.ZONE)) + standing(10, 3_000, of_key),
    [daemonset(f"huge-{n}", "1000") for n in range(20)]
    + [daemonset(f"one-of-many-{n}", "10m", 20) for n in range(280)],
)
CASES: Final[dict[str, Callable[[], Tenant]]] = {
    "7 pods of 10,000 topology keys": lambda: Tenant(standing(7, 10_000, of_key)),
    "200 pods of 1,000 terms over hosts": lambda: Tenant(standing(200, 1_000, over(keys.HOSTNAME))),
    "200 pods of 100 terms over zones": lambda: Tenant(standing(200, 100, over(keys.ZONE))),
    "200 pods of 100 terms that ask each pod": lambda: Tenant(standing(200, 100, wide)),
    "40 DaemonSets of 250 terms": lambda: Tenant(
        (), [daemonset(f"d{n}", "1m", 250) for n in range(40)]
    ),
    "200 DaemonSets of 250 terms": lambda: Tenant(
        (), [daemonset(f"d{n}", "1m", 250) for n in range(200)]
    ),
    "one DaemonSet of 1,000 CPUs": lambda: Tenant((), [daemonset("huge", "1000")]),
}


def nodes() -> tuple[Any, ...]:
    """Return nodes of three zones that are full, or nearly."""
    return tuple(
        make.node(
            f"n{number}",
            labels={keys.HOSTNAME: f"n{number}", keys.ZONE: make.ZONES[number % 3]},
            allocatable=Resources.of(cpu=4000, memory=16 * make.GIB, pods=110),
        )
        for number in range(_NODES)
    )


def beside(world: ClusterSnapshot, tenant: Tenant) -> ClusterSnapshot:
    """Return the cluster with what a tenant has, decoded anew."""
    decoder = PodDecoder()
    pods = [decoder.decode(raw) for raw in tenant.pods]
    daemonsets = decode_daemonsets(tenant.daemonsets)
    return replace(
        world,
        bound=tuple(sorted((*world.bound, *pods), key=lambda pod: pod.key)),
        daemonsets=(*world.daemonsets, *daemonsets),
    )


def plan_of(world: ClusterSnapshot) -> Plan:
    """Return the plan of a cluster, the DaemonSets chosen that nodes are chosen for."""
    chosen = provided_daemonsets(world.daemonsets, world.provisioners, world.instance_types)
    return decide(replace(world, daemonsets=chosen.daemonsets))


def pairs() -> list[str]:
    """Return what a plan for others costs alone and beside the tenant, pair by pair."""
    world = clusters.topo(2_000)
    bound = tuple(
        replace(pod, name=f"on-{pod.name}", uid=f"on-{pod.uid}", node_name=f"n{n % 100}")
        for n, pod in enumerate(world.pending[::2])
    )
    alone = replace(world, nodes=nodes(), bound=bound)
    both = beside(alone, TENANT)
    prices = {plan_of(some).cost_micros_per_hour for some in (alone, both)}
    rows, ratios = [], []
    for pair in range(PAIRS):
        order = (alone, both) if pair % 2 else (both, alone)
        millis = {id(some): cpu_time(partial(plan_of, some))[1] for some in order}
        ratios.append(millis[id(both)] / millis[id(alone)])
        rows.append((f"{millis[id(alone)]:.0f}", f"{millis[id(both)]:.0f}", f"{ratios[-1]:.3f}"))
    met = median(ratios) <= 1 + MORE_PERCENT / 100 and len(prices) == 1
    told = ", ".join(f"${micros / 1e6:,.4f}" for micros in sorted(prices))
    return [
        "A plan for 2,000 pods of other namespaces, alone and beside a tenant with 20 pods on",
        "nodes of 3,000 anti-affinity terms each and 300 DaemonSets, 20 of 1,000 CPUs. Bars:",
        f"median of {PAIRS} ratios of CPU time at most {1 + MORE_PERCENT / 100}, the same price.",
        "",
        *markdown(("alone, CPU ms", "beside, CPU ms", "ratio"), rows),
        "",
        f"Median {median(ratios):.3f}; price an hour {told}: {'met' if met else '**not met**'}.",
    ]


def measure(case: str) -> dict[str, float]:
    """Return what one tenant costs this process, in which nothing large was decided before."""
    every_type()
    tenant = CASES[case]()
    # No two objects share a part, as those that are read.
    tenant = Tenant(*json.loads(json.dumps(dataclasses.astuple(tenant))))
    world = replace(snapshot(innocents()), nodes=nodes())
    before = _peak_mebibytes()
    began = time.process_time()
    plan = plan_of(beside(world, tenant))
    seconds = time.process_time() - began
    found = {"seconds": seconds, "mebibytes": _peak_mebibytes() - before}
    return {**found, "others": placed(plan, "shop")}


def whole_path(pods: int = 7, terms: int = 10_000) -> dict[str, float]:
    """Return what an invocation of provision costs that reads such pods over HTTP."""
    environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
    command = [sys.executable, "-m", "infra.local.kube"]
    with subprocess.Popen(
        command, cwd=_ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            url = json.loads(server.stdout.readline())["url"]
            # In a process of its own, so that what is made there is not in the memory of this one.
            apply = [sys.executable, "-m", __spec__.name, "--apply", url]
            subprocess.run([*apply, str(pods), str(terms)], check=True, cwd=_ROOT)
            world = World(types=every_type())
            api = connect_endpoint(url, "", lambda: "token")
            cluster = KubeCluster(NAME, api, now=world.clock.now)
            world.ports = replace(world.ports, cluster=cluster)
            _wait_until_served(cluster)
            before = _peak_mebibytes()
            began = time.process_time()
            report = world.provision()
            return {
                "seconds": time.process_time() - began,
                "mebibytes": _peak_mebibytes() - before,
                "others": report.pods_planned,
            }
        finally:
            server.kill()


def _wait_until_served(cluster: KubeCluster) -> None:
    """Wait until lists of what was just defined are no longer refused."""
    while True:
        try:
            cluster.provisioners()
        except ThrottledError:
            time.sleep(0.2)
        else:
            return


def _objects(pods: int, terms: int) -> Iterator[Raw]:
    yield {
        "apiVersion": "karpenter.sh/v1alpha5",
        "kind": "Provisioner",
        "metadata": {"name": "default"},
        "spec": {
            "requirements": [{"key": keys.INSTANCE_TYPE, "operator": "Exists"}],
            "provider": {"subnetSelector": {"a": "b"}, "securityGroupSelector": {"a": "b"}},
        },
    }
    room = {"cpu": "1", "memory": "1Gi", "pods": "100"}
    ready = [{"type": "Ready", "status": "True"}]
    yield {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n0", "labels": {keys.HOSTNAME: "n0"}},
        "spec": {"providerID": "aws:///us-east-1a/i-0123"},
        "status": {"allocatable": room, "capacity": room, "conditions": ready},
    }
    for raw in (*standing(pods, terms, of_key), raw_pod("innocent", namespace="shop")):
        bound = "nodeName" in raw["spec"]
        metadata = {**raw["metadata"], "namespace": "shop"}
        spec = {**raw["spec"], **({"nodeName": "n0"} if bound else {})}
        spec["containers"] = [{**spec["containers"][0], "image": "pause"}]
        status = {"phase": "Running"} if bound else raw["status"]
        kind = {"apiVersion": "v1", "kind": "Pod"}
        yield {**kind, "metadata": metadata, "spec": spec, "status": status}


def _peak_mebibytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def rows() -> Iterator[Sequence[str]]:
    """Yield a row for each case, and for the whole path, each in a process of its own."""
    for case, others in (*dict.fromkeys(CASES, INNOCENTS).items(), (_WHOLE, 1)):
        command = [sys.executable, "-m", __spec__.name, case]
        ended = subprocess.run(command, capture_output=True, text=True, check=True, cwd=_ROOT)
        found = json.loads(ended.stdout)
        met = found["seconds"] < SECONDS and found["mebibytes"] < MEBIBYTES
        yield (
            case,
            f"{found['seconds']:.2f}",
            f"{found['mebibytes']:.0f}",
            f"{found['others']} of {others}",
            "yes" if met and found["others"] == others else "**no**",
        )


_WHOLE: Final = "whole path: 7 pods of 10,000 topology keys"


def table() -> list[str]:
    """Return both tables as Markdown, with what they show."""
    return [
        *pairs(),
        "",
        "The most expensive pods on nodes and DaemonSets, as above; the last row is one invocation",
        "of provision that reads them over HTTP.",
        "",
        *markdown(("case", "CPU s", "MiB", "others planned", "met"), rows()),
    ]


def main() -> None:
    """Measure one case, or all of them one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", choices=[*CASES, _WHOLE], nargs="?")
    parser.add_argument("--apply", nargs=3, metavar=("URL", "PODS", "TERMS"), help="for the last")
    chosen = parser.parse_args()
    if chosen.apply:
        url, pods, terms = chosen.apply
        there = OverHttp(url)
        for raw in _objects(int(pods), int(terms)):
            there.apply(raw)
    elif chosen.case:
        found = whole_path() if chosen.case == _WHOLE else measure(chosen.case)
        sys.stdout.write(json.dumps(found) + "\n")
    else:
        sys.stdout.write("\n".join(table()) + "\n")


if __name__ == "__main__":
    main()
