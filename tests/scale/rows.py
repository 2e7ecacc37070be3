"""What is measured: each row is a function of a size, run in a process of its own."""

import statistics
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing import get_context
from typing import Final

from shared.model.ec2.instance_types import CapacityType, OfferingKey
from shared.model.ec2.launches import Slot
from shared.model.resources import Resources
from tests.scale import manifests
from tests.scale.apiserver import large_cluster
from tests.scale.burst import burst
from tests.scale.consolidation import consolidation
from tests.scale.decisions import decisions_of_an_hour
from tests.scale.dump import dump, peak_mib
from tests.scale.forwarder import forwarder
from tests.scale.launches import beside, launches
from tests.scale.life import life
from tests.scale.virtual import WAKE_WINDOW
from tests.scale.world import BIND_CONCURRENCY, LargeCluster

Values = Mapping[str, float]
_WARM_RUNS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One kind of measurement.

    Attributes:
        sizes: What it is measured at.
        bars: Of its values, each (largest value, at the largest size; or one for each size).
        exponents: Bars of how values may grow, between the first size and the last.
    """

    what: str
    measure: Callable[[int], Values]
    sizes: tuple[int, ...]
    bars: Mapping[str, float | tuple[float, ...]]
    exponents: Mapping[str, float]


def plan(nodes: int) -> Values:
    """Plan for ten new pods among so many nodes: cold, then warm with others.

    Sweep has left copies a minute before: a fifth of the kubelets have reported since.
    """
    with large_cluster(nodes) as url:
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            copies, left = pool.submit(_left_by_sweep, url).result()
        cluster = LargeCluster(url, "provision", copies)
        cluster.kubelets_report(range(0, nodes, 5))
        cold, to_fleet = _planned(cluster)
        warm, waits = [], []
        for _ in range(_WARM_RUNS):
            spent, waited = _planned(cluster)
            warm.append(spent)
            waits.append(waited)
        return {
            "cold, CPU s": cold,
            "warm, CPU s": statistics.median(warm),
            "event to CreateFleet cold, s": to_fleet,
            "event to CreateFleet warm p50, s": statistics.median(waits),
            "event to CreateFleet warm most, s": max(waits),
            "memory, MiB": peak_mib(),
            "decision, KB": _decision_bytes(cluster) / 1000,
            **left,
        }


def _left_by_sweep(url: str) -> tuple[Mapping[str, bytes], Values]:
    """Return the copies that a new process of sweep leaves, and what they take."""
    cluster = LargeCluster(url, "sweep")
    port = cluster.ports.cluster
    cluster.clock.begin()
    port.nodes()
    port.bound_pods()
    listed = cluster.clock.spent().cpu_seconds
    port.leave_copies()
    both = cluster.clock.spent().cpu_seconds
    copies = cluster.copies.documents
    return copies, {
        "all listed by sweep, CPU s": listed,
        "copies written, CPU s": both - listed,
        "copies, KB": max(sum(map(len, copies.values())) / 1000, 0.001),
    }


def _decision_bytes(cluster: LargeCluster) -> int:
    """Return the size of the last decision."""
    found = cluster.decisions.documents.items()
    return [len(text) for key, text in found if key.startswith("decisions/")][-1]


def _planned(cluster: LargeCluster) -> tuple[float, float]:
    """Return CPU seconds of a plan, and seconds from the event to CreateFleet."""
    fleets = len(cluster.cloud.fleets)
    cluster.pods_arrive(10)
    spent = cluster.provision()
    launched = cluster.clock.marks.get("create_fleet")
    waited = (WAKE_WINDOW + launched).total_seconds() if launched else float("inf")
    assert launched is None or len(cluster.cloud.fleets) > fleets
    # The machines show themselves: their Nodes are made.
    cluster.clock.sleep(timedelta(seconds=40))
    cluster.provision()
    return spent.cpu_seconds, waited


def sweep(nodes: int) -> Values:
    """Sweep one cluster of so many nodes, the second time."""
    with large_cluster(nodes) as url:
        cluster = LargeCluster(url, "sweep")
        cluster.stands(nodes)
        cluster.clock.sleep(timedelta(minutes=30))
        cluster.sweep()
        spent = cluster.sweep()
        return {
            "CPU s": spent.cpu_seconds,
            "took, s": spent.took.total_seconds(),
            "memory, MiB": peak_mib(),
        }


def joins(nodes: int) -> Values:
    """Let so many nodes join at once: what bind asks of the ledger."""
    with large_cluster(0, joining=nodes) as url:
        cluster = LargeCluster(url, "bind")
        ledger = cluster.ports.ledger
        lease = ledger.acquire(manifests.CLUSTER, "holder", cluster.clock.now())
        assert lease is not None
        for number in range(nodes):
            assert ledger.fill_slot(lease, _slot(number, cluster))
        cluster.table.reads.clear()
        cluster.table.writes.clear()
        names = [manifests.node_name(number) for number in range(nodes)]
        spent = [cluster.bind(*names[start : start + 20]) for start in range(0, nodes, 20)]
        assert not ledger.slots(manifests.CLUSTER), "a node is not initialized"
        side_by_side = min(BIND_CONCURRENCY, len(spent))
        took = sum(run.took.total_seconds() for run in spent) / side_by_side
        read, written = max(cluster.table.reads.values()), max(cluster.table.writes.values())
        return {
            "RCU": cluster.table.reads.total(),
            "RCU a second of the fullest partition, mean": read / took,
            "WCU": cluster.table.writes.total(),
            "WCU a second of the fullest partition, mean": written / took,
            "all initialized, s": took,
            "CPU s": sum(run.cpu_seconds for run in spent),
        }


def many_clusters(nodes: int) -> Values:
    """Sweep a hundred clusters of so many nodes: each has an invocation of its own."""
    values = sweep(nodes)
    started = 100 * 0.02
    return {"all swept after, s": started + values["took, s"], "CPU s": 100 * values["CPU s"]}


def _slot(number: int, cluster: LargeCluster) -> Slot:
    room = Resources.of(cpu=7910, memory=28 << 30, pods=58)
    offering = OfferingKey(
        instance_type="m5.2xlarge",
        zone=manifests.zone_of(number),
        capacity_type=CapacityType.ON_DEMAND,
    )
    return Slot(
        cluster=manifests.CLUSTER,
        plan_id="plan-0001",
        group=0,
        number=number,
        provisioner="default",
        instance_id=manifests.instance_id(number),
        offering=offering,
        price_micros_per_hour=384_000,
        capacity=room,
        allocatable=room,
        labels=manifests.node(number)["metadata"]["labels"],
        node_name=manifests.node_name(number),
        bound=True,
        launched_at=cluster.clock.now(),
    )


ROWS: Final[Mapping[str, Row]] = {
    "plan": Row(
        what="plan of 10 new pods among so many nodes",
        measure=plan,
        sizes=(100, 1_000, 10_000),
        bars={
            "cold, CPU s": 3,
            "warm, CPU s": (0.2, 0.4, 1.5),
            "event to CreateFleet warm p50, s": 4,
            "event to CreateFleet warm most, s": 8,
            "memory, MiB": 512,
        },
        exponents={"warm, CPU s": 0.5},
    ),
    "decisions": Row(
        what="decisions of a plan every 10 s among so many nodes",
        measure=decisions_of_an_hour,
        sizes=(1_000, 10_000),
        bars={"a day, GB": 1},
        exponents={},
    ),
    "sweep": Row(
        what="sweep of one cluster of so many nodes",
        measure=sweep,
        sizes=(100, 1_000, 10_000),
        bars={"CPU s": 4, "took, s": 60},
        exponents={},
    ),
    "clusters": Row(
        what="sweep of 100 clusters of so many nodes",
        measure=many_clusters,
        sizes=(100,),
        bars={"all swept after, s": 60},
        exponents={},
    ),
    "joins": Row(
        what="so many nodes join at once, 20 an event",
        measure=joins,
        sizes=(100, 1_000, 10_000),
        bars={
            # DynamoDB's limits of a partition: docs/evidence/scale.md.
            "RCU a second of the fullest partition, mean": 3_000,
            "WCU a second of the fullest partition, mean": 1_000,
        },
        exponents={"RCU": 1.1},
    ),
    "burst": Row(
        what="burst of so many pods into an empty cluster",
        measure=burst,
        sizes=(10_000, 30_000, 100_000),
        bars={"all bound, s": (60, 150, 500), "longest invocation, s": 120},
        exponents={},
    ),
    "consolidation": Row(
        what="consolidation of so many half-empty nodes, for ten minutes",
        measure=consolidation,
        sizes=(1_000, 10_000),
        bars={
            # Of 1,000 nodes the budget lets 100 go in ten minutes.
            "seconds a node": (6, 1.8),
            "longest step of a replacement, s": 20,
            "longest step of a drain, s": 20,
            "nodes cordoned and not drained": 0,
        },
        exponents={},
    ),
    "dump": Row(
        what="dovetail plan of a dump of so many pods",
        measure=dump,
        sizes=(10_000, 100_000),
        bars={"memory, MiB": 1024},
        exponents={"CPU s": 1.1},
    ),
    "forwarder": Row(
        what="forwarder lists so many pods",
        measure=forwarder,
        sizes=(10_000, 100_000),
        bars={"memory, MiB": 120, "CPU s": 10},
        exponents={},
    ),
    "launches": Row(
        what="100 clusters launch at once, three groups each, at so many request tokens a second",
        measure=launches,
        sizes=(2, 20),
        bars={
            "median launched, s": 20,
            "last launched, s": 60,
            "last, of the token limit": (1.1, 1.1),
        },
        exponents={},
    ),
    "beside": Row(
        what="20 clusters launch beside one with nine groups, at so many request tokens a second",
        measure=beside,
        sizes=(2, 20),
        bars={"beside it, of alone": (1.1, 1.1)},
        exponents={},
    ),
    "life": Row(
        what="ledger of each of so many nodes, one after the other, from launch to end",
        measure=life,
        sizes=(1, 100),
        bars={"WCU of one": 33},
        exponents={"WCU of one": 0.01},
    ),
}
