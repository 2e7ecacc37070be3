"""Karpenter in a world: its controllers run in a Go process, whose virtual time drives the world.

Requests and answers are lines of JSON, see protocol.md.
"""

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from infra.local.ec2.instances import Instance as Model
from shared.model.ec2.instance_types import CapacityType, InstanceType, OfferingKey
from shared.model.errors import EvictionRefusedError
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.values import replace
from tests.fakes.cloud import pool_of, seen
from tests.simulation.aws.machines import Machine
from tests.weeks.cluster import DAEMONSET
from tests.weeks.manifests import pod_manifest, quantities
from tests.weeks.world import NAME, WeeksWorld

Raw = Mapping[str, Any]
_RUNNING: Final = timedelta(seconds=2)
_GONE: Final[Raw] = {"result": "gone"}


class KarpenterWorld(WeeksWorld):
    """A world in which none of Dovetail's functions runs."""

    sweeps = False

    def _call(self, function: str, event: Mapping[str, Any], over: Callable[[Any], None]) -> None:
        over(None)


def play(world: KarpenterWorld, program: Path) -> Raw:
    """Let Karpenter serve a world's trace; return its last words: CPU seconds and reconciles.

    Raises:
        RuntimeError: If the process ends before.
    """
    side = _Side(world)
    with subprocess.Popen(
        [program, "weeks"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{json.dumps(side.beginning())}\n")
        process.stdin.flush()
        for line in process.stdout:
            asked = json.loads(line)
            process.stdin.write(f"{json.dumps(side.answer(asked))}\n")
            process.stdin.flush()
            if asked["do"] == "over":
                world.kernel.end()
                return dict(asked)
    raise RuntimeError("Karpenter's process ended before its time")


class _Side:
    """Carries requests out, and tells what has changed since the last answer."""

    def __init__(self, world: KarpenterWorld) -> None:
        self._world = world
        self._cluster = world.cluster
        self._told = {"Pod": 0, "Node": 0, "storage": 0}
        self._budgets: dict[str, int] = {}

    def beginning(self) -> Raw:
        """Return what the process is told first."""
        world = self._world
        return {
            "start": world.kernel.now().isoformat().replace("+00:00", "Z"),
            "seconds": int(world.trace.seconds),
            "nodePools": [world.pool],
            "daemonSets": [DAEMONSET],
            "types": [_type(kind) for kind in world.types_allowed],
        }

    def answer(self, asked: Raw) -> Raw:
        """Let time pass until a request, carry it out and answer it."""
        kernel = self._world.kernel
        kernel.run_until(max(int(asked["at"]), kernel.time))
        found = getattr(self, f"_{asked['do']}")(asked)
        return {**found, "changes": list(self._changes()), "next": kernel.next_due()}

    # --- requests

    def _wait(self, _: Raw) -> Raw:
        return {}

    _over = _event = _wait

    def _launch(self, asked: Raw) -> Raw:
        wanted = asked["options"][0]
        offering = OfferingKey(
            instance_type=wanted["instanceType"],
            zone=wanted["zone"],
            capacity_type=CapacityType(wanted["capacityType"]),
        )
        world, now = self._world, self._world.kernel.now()
        number = len(world.region.ec2.instances) + 1
        model = Model(
            instance_id=f"i-{number:017x}",
            pool=pool_of(offering),
            subnet_id="",
            launched_at=now,
            private_dns_name=f"ip-10-1-{number // 256}-{number % 256}.ec2.internal",
        )
        model.enter(now, (timedelta(0), "pending"), (_RUNNING, "running"))
        world.region.ec2.instances[model.instance_id] = model
        machine = Machine(NAME, model, seen(world.region.ec2, model), user_data="")
        world.region.machines[model.instance_id] = machine
        taints = [*(asked.get("taints") or ()), *(asked.get("startupTaints") or ())]
        world.kubelets.given[model.instance_id] = (
            dict(asked.get("labels") or {}),
            (*map(_taint, taints), _UNREGISTERED),
        )
        world.kubelets.launched(machine)
        return {"instanceId": model.instance_id, **wanted}

    def _terminate(self, asked: Raw) -> Raw:
        machine = self._world.region.machines[asked["instanceId"]]
        self._world.region.end(machine)
        return self._instance(asked)

    def _instance(self, asked: Raw) -> Raw:
        machine = self._world.region.machines[asked["instanceId"]]
        return {"state": machine.model.state(self._world.kernel.now())}

    def _evict(self, asked: Raw) -> Raw:
        pod = self._cluster.pods.get(asked["pod"])
        if pod is None or pod.uid != asked["uid"] or pod.is_terminating:
            return _GONE
        try:
            self._cluster.evict(pod)
        except EvictionRefusedError:
            return {"result": "refused"}
        return {"result": "evicted"}

    def _delete(self, asked: Raw) -> Raw:
        cluster = self._cluster
        if asked["kind"] == "Node":
            node = cluster.node_values.get(asked["name"])
            if node is None:
                return _GONE
            cluster.delete_node(node)
        else:
            pod = cluster.pods.get(asked["name"])
            if pod is None or pod.uid != asked["uid"]:
                return _GONE
            cluster.delete_pod(pod, asked.get("gracePeriodSeconds"))
        return {"result": "deleted"}

    def _write(self, asked: Raw) -> Raw:
        raw = asked["object"]
        node = self._cluster.node_values.get(raw["metadata"]["name"])
        if asked["kind"] != "Node" or node is None:
            return _GONE
        changed = _written(node, raw)
        if changed.deletion_at is not None and not changed.finalizers:
            del self._cluster.node_values[node.name]
            self._cluster.touch()
        else:
            self._cluster.put_node(changed)
        return {"result": "written"}

    # --- what changed

    def _changes(self) -> Iterator[Raw]:
        cluster = self._cluster
        for raw in cluster.storage.log[self._told["storage"] :]:
            yield {"kind": raw["kind"], "object": raw}
        self._told["storage"] = len(cluster.storage.log)
        for kind, log, key in (
            ("Node", cluster.node_log, "name"),
            ("Pod", cluster.log, "key"),
        ):
            news = log[self._told[kind] :]
            self._told[kind] = len(log)
            last = {getattr(new or old, key): new for _, old, new in news}
            for name, value in last.items():
                if value is None:
                    yield {"kind": kind, "deleted": name}
                elif isinstance(value, Node):
                    yield {"kind": kind, "object": cluster.manifest(value)}
                else:
                    shown = pod_manifest(value, cluster.raws[value.uid])
                    yield {"kind": kind, "object": shown}
        yield from self._changed_budgets()

    def _changed_budgets(self) -> Iterator[Raw]:
        for workload in self._cluster.workloads.values():
            raw = workload.raw_budget
            if raw is None:
                continue
            allowed = self._cluster.allowed(workload)
            if self._budgets.get(workload.name) != allowed:
                self._budgets[workload.name] = allowed
                status = {
                    "disruptionsAllowed": allowed,
                    "currentHealthy": self._cluster.healthy(workload),
                    "expectedPods": workload.replicas,
                }
                yield {"kind": "PodDisruptionBudget", "object": {**raw, "status": status}}


_UNREGISTERED: Final = Taint(key="karpenter.sh/unregistered", effect=Effect.NO_EXECUTE)


def _written(node: Node, raw: Raw) -> Node:
    """Return a Node as a whole new object says it is."""
    metadata, spec = raw["metadata"], raw.get("spec") or {}
    return replace(
        node,
        labels=dict(metadata.get("labels") or {}),
        annotations=dict(metadata.get("annotations") or {}),
        finalizers=tuple(metadata.get("finalizers") or ()),
        taints=tuple(map(_taint, spec.get("taints") or ())),
        unschedulable=bool(spec.get("unschedulable")),
    )


def _taint(raw: Raw) -> Taint:
    return Taint(key=raw["key"], value=raw.get("value") or "", effect=Effect(raw["effect"]))


def _type(kind: InstanceType) -> Raw:
    return {
        "name": kind.name,
        "labels": dict(kind.labels),
        "capacity": quantities(kind.capacity),
        "allocatable": quantities(kind.allocatable),
        "exotic": False,
        "offerings": [
            {
                "zone": way.zone,
                "capacityType": way.capacity_type.value,
                "priceMicros": way.price_micros_per_hour,
            }
            for way in kind.offerings
        ],
    }
