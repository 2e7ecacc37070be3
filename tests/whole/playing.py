"""Plays one trace with one autoscaler on real components."""

import contextlib
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from infra.local.cluster_simulator.client import Server
from infra.local.demo.cluster_client import ClusterClient, Refused
from infra.local.demo.problem import Problem
from infra.local.demo.world import CLUSTER, REGION, World, WorldOptions
from shared.instance_types.catalog import embedded_catalog
from shared.model.ec2.instance_types import CapacityType
from tests.real.build import say
from tests.real.nodes import HollowNodes
from tests.real.play import BOOT_SECONDS
from tests.weeks.bound import Bounds
from tests.weeks.meter import Played, is_young, most_at_once, waits_of
from tests.weeks.spending import Life, spending_of
from tests.weeks.traces import HOUR, Change, Trace
from tests.whole.booting import DrawnNodes
from tests.whole.manifests import changes_of, foundation, objects_of, patch_of
from tests.whole.measuring import Measured, asked_of, differences, evicted_of, restarted_of
from tests.whole.observing import Observer, now_micros
from tests.whole.worlds import KARPENTER_ROLE, AuditedCluster, KarpenterWorld

DOVETAIL: Final = "dovetail"
KARPENTER: Final = "karpenter"
SYSTEMS: Final = (KARPENTER, DOVETAIL)
_NODE_ROLE: Final = f"DovetailNode-{CLUSTER}"
_READY_SECONDS: Final = 180.0
_PAUSE_SECONDS: Final = 20.0
_TOLD_SECONDS: Final = 30.0
_SECOND: Final = 1_000_000
_KINDS: Final = {"StatefulSet": "statefulsets", "Deployment": "deployments"}
# What runs for an autoscaler, beside the functions.
_PARTS: Final = ("karpenter", "forwarder")
_CONTROL_PLANE: Final = ("apiserver", "scheduler", "controller-manager")


class Play(NamedTuple):
    """What is played.

    Attributes:
        state: Of the checkout.
        after: consolidateAfter of the NodePool.
        seed: Instances boot as this seed of virtual time says; without, each for 20 seconds.
        logs: Folder for all logs; emptied before.
    """

    state: str
    trace: Trace
    system: str
    run: int
    after: str
    bounds: Bounds
    logs: Path
    seed: int | None = None


def play(asked: Play, program: Path, controller: Path) -> Measured:
    """Play a trace on a cluster of its own, and return what came of it.

    Args:
        program: With the parts of the cluster.
        controller: Karpenter's.
    """
    shutil.rmtree(asked.logs, ignore_errors=True)
    with AuditedCluster(program) as cluster:
        options = WorldOptions(
            kubeconfig=cluster.kubeconfig(), keep_logs=asked.logs / "world", kubelets=False
        )
        world = (
            KarpenterWorld(options, _say, controller, cluster)
            if asked.system == KARPENTER
            else World(options, _say)
        )
        with world, _left_as_it_is(world):
            measured = _play(asked, cluster, world, program)
        cluster.keep_logs(asked.logs / "cluster")
    return measured


@contextlib.contextmanager
def _left_as_it_is(world: World) -> Iterator[None]:
    """Leave the objects where they are: the whole cluster goes."""
    try:
        yield
    finally:
        world.foreign = None


def _play(asked: Play, cluster: AuditedCluster, world: World, program: Path) -> Measured:
    player = ClusterClient(
        cluster.url, token=cluster.token("player"), ca_file=str(cluster.authority)
    )
    if isinstance(world, KarpenterWorld):
        identity = {"instanceProfile": _NODE_ROLE}
    else:
        identity = {"role": f"{_NODE_ROLE}-{REGION}"}
    kinds = {}
    for document in foundation(asked.trace.families, asked.after, identity):
        world.cluster.apply(dict(document))
    for workload in asked.trace.workloads:
        for document in objects_of(workload):
            player.apply(dict(document))
            if document["kind"] in _KINDS:
                kinds[workload.name] = _KINDS[document["kind"]]
    if isinstance(world, KarpenterWorld):
        world.start_karpenter()
    server = Server(url=cluster.url, token=cluster.token("player"), ca_file=str(cluster.authority))
    logs = asked.logs / "nodes"
    nodes = (
        HollowNodes(program, world, boot_seconds=BOOT_SECONDS, logs=logs)
        if asked.seed is None
        else DrawnNodes(program, world, seed=asked.seed, logs=logs)
    )
    observer = Observer(server, world.client("ec2"), partial(_processes, world, cluster))
    with nodes, observer:
        _await_ready(player)
        time.sleep(_PAUSE_SECONDS)
        observer.memory.clear()
        before = _calls(world), observer.cpu_seconds()
        begun = now_micros()
        if isinstance(nodes, DrawnNodes):
            nodes.begun = begun / _SECOND
        _say(f"the trace begins: {asked.trace.said}")
        changes = _change(asked.trace, kinds, player, observer)
        ended = now_micros()
        after = _calls(world), observer.cpu_seconds()
    calls = differences(before[0], after[0])
    cpu_seconds = differences(before[1], after[1])
    return _measured(
        asked,
        observer,
        changes,
        cluster.audit,
        (begun, ended),
        calls,
        {group: round(seconds, 1) for group, seconds in cpu_seconds.items()},
        tuple(nodes.problems),
    )


def _say(text: str) -> None:
    say(f"  {time.strftime('%H:%M:%S')} {text}")


def _processes(world: World, cluster: AuditedCluster) -> dict[str, list[int]]:
    """Return process ids: of the autoscaler, and of what it makes work."""
    children = world.children
    found = {name: [children.pid(name)] for name in _PARTS if children.alive(name)}
    found |= {name: [cluster.pid(name)] for name in _CONTROL_PLANE if cluster.alive(name)}
    if not isinstance(world, KarpenterWorld):
        found["functions"] = world.control("status")["workers"]
    return found


def _calls(world: World) -> dict[str, int]:
    """Return how often each action was asked for by the autoscaler's roles.

    CreateFleet needs the right of RunInstances besides, and makes one call.
    """
    found: Counter[str] = Counter()
    ours = isinstance(world, KarpenterWorld)
    for row in world.control("permissions/asked")["asked"]:
        mine = row["role"] == KARPENTER_ROLE if ours else not row["role"].startswith(_NODE_ROLE)
        if mine and row["action"] != "ec2:RunInstances":
            found[row["action"]] += row["count"]
    return dict(found)


def _await_ready(player: ClusterClient) -> None:
    """Wait until the autoscaler says that it will serve the NodePool.

    Raises:
        Problem: It does not in three minutes.
    """
    said: Any = None
    ends = time.monotonic() + _READY_SECONDS
    while time.monotonic() < ends:
        with contextlib.suppress(Refused):
            pool = player.call("GET", "apis/karpenter.sh/v1/nodepools/default")
            said = (pool.get("status") or {}).get("conditions") or []
            if any(one["type"] == "Ready" and one["status"] == "True" for one in said):
                return
        time.sleep(1)
    raise Problem(f"the NodePool is not ready: {said}")


def _change(
    trace: Trace, kinds: Mapping[str, str], player: ClusterClient, observer: Observer
) -> list[tuple[int, Change]]:
    """Do what users do, at its time; return what was done when."""
    done: list[tuple[int, Change]] = []
    left = changes_of(trace)[::-1]
    begun = told = time.monotonic()
    while (now := time.monotonic() - begun) < trace.seconds:
        while left and left[-1].second <= now:
            change = left.pop()
            done.append((now_micros(), change))
            kind = kinds[change.workload]
            path = f"apis/apps/v1/namespaces/default/{kind}/{change.workload}"
            player.merge(path, dict(patch_of(change)))
        if time.monotonic() - told > _TOLD_SECONDS:
            told = time.monotonic()
            pods = observer.present
            _say(
                f"{now:.0f} s: {len(pods)} pods, {sum(not pod.node_name for pod in pods)} wait, "
                f"{sum(pod.ready for pod in pods)} are Ready, {len(observer.alive)} instances"
            )
        time.sleep(0.1)
    return done


def _measured(
    asked: Play,
    observer: Observer,
    changes: list[tuple[int, Change]],
    audit: Path,
    span: tuple[int, int],
    calls: dict[str, int],
    cpu_seconds: dict[str, float],
    problems: tuple[str, ...],
) -> Measured:
    begun, ended = span
    lives = _lives(observer, begun, ended)
    said = asked_of(audit, asked.system, begun, ended)
    pods = [entry for entry in observer.pods if entry[0] < ended]
    node_log = [entry for entry in observer.nodes if entry[0] < ended]
    restarted = restarted_of(changes, pods)
    evicted = evicted_of(said.removed, pods, node_log, observer.causes)
    bound, running, again = waits_of(pods, restarted)
    spent = spending_of(lives, node_log, pods)
    left = [life for life in lives if life.ended == ended]
    mine = [seconds for group, seconds in cpu_seconds.items() if group not in _CONTROL_PLANE]
    return Measured(
        state=asked.state,
        trace=asked.trace.name,
        system=asked.system,
        run=asked.run,
        seconds=asked.trace.seconds,
        load=round(os.getloadavg()[2], 1),
        bounds=asked.bounds,
        played=Played(
            dollars=spent.total,
            node_hours=sum(life.ended - life.born for life in lives) / _SECOND / HOUR,
            most_nodes=most_at_once(lives),
            launched=len(lives),
            bound=bound,
            running=running,
            again=again,
            evicted=len(evicted),
            young=sum(is_young(restarted, time, pod) for time, pod, _ in evicted),
            waiting=sum(not pod.node_name for pod in observer.present),
            calls=calls,
            cpu_seconds=round(sum(mine), 1),
            spent=spent,
        ),
        kube_calls=said.calls,
        evictions=dict(
            Counter(f"{pod.labels['app']}: {cause}" for _, pod, cause in evicted).most_common()
        ),
        cpu_seconds=cpu_seconds,
        memory_mib={group: round(max(seen)) for group, seen in observer.memory.items()},
        left_nodes=len(left),
        left_dollars_per_hour=sum(life.micros_per_hour for life in left) / 1e6,
        problems=problems,
    )


def _lives(observer: Observer, begun: int, ended: int) -> list[Life]:
    """Return the instances of a run, at the prices of the embedded catalogue."""
    prices = {
        kind.name: way.price_micros_per_hour
        for kind in embedded_catalog().instance_types
        for way in kind.offerings
        if way.capacity_type is CapacityType.ON_DEMAND
    }
    lives = []
    for key, instance in observer.instances.items():
        # LaunchTime has whole seconds.
        born = max(int(instance["LaunchTime"].timestamp() * _SECOND), begun)
        if born < ended:
            end = min(observer.ended.get(key, ended), ended)
            price = prices[instance["InstanceType"]]
            lives.append(Life(instance["PrivateDnsName"], price, born, max(end, born)))
    return lives
