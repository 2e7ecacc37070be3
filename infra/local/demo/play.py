"""Plays a scenario: does each step and waits until its expectations hold."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from infra.local.cluster_simulator.kubelet.kubelet import STOPPED
from infra.local.demo.cluster_client import ClusterClient, Refused
from infra.local.demo.drains import NODE_POOLS, conditions_of
from infra.local.demo.expectations import Situation, check
from infra.local.demo.fault_injection import FaultInjection
from infra.local.demo.karpenter import Karpenter
from infra.local.demo.observer import Observer
from infra.local.demo.prices import bound_of, price_of
from infra.local.demo.problem import Problem
from infra.local.demo.scenario import Scenario, Step, manifests, whole_minute_after, within_schedule
from infra.local.demo.timeline import NodeTrack
from infra.local.patience import Patience, awaited

_LOOK_SECONDS = 0.2
_STAND_SECONDS = 60.0
# What is expected of Events.
_OF_EVENTS = frozenset({"drain_blocked", "event", "stopped_nodes_told"})


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """How a step ended."""

    title: str
    seconds: float
    failures: tuple[tuple[str, str], ...]
    nodes: int = 0
    price_micros_per_hour: int = 0


class Player:
    """Plays scenarios against one cluster."""

    karpenter: Karpenter | None = None

    def __init__(
        self,
        cluster: ClusterClient,
        observer: Observer,
        speed: float,
        say: Callable[[str], None],
        faults: FaultInjection | None = None,
    ) -> None:
        """Prepare; nodes that stand now are not Dovetail's work."""
        self._faults = faults
        self._cluster = cluster
        self._observer = observer
        self._speed = speed
        self._say = say
        self._known = frozenset(node.name for node in observer.timeline.living_nodes())
        self._bound = 0
        self._closed_until: float | None = None
        self._patience = Patience()

    def play(self, scenario: Scenario) -> tuple[StepResult, ...]:
        """Play all steps; after a step that failed the rest is not played."""
        results: list[StepResult] = []
        for step in scenario.steps:
            self._say(step.title)
            began = time.monotonic()
            try:
                self._do(scenario, step)
            except Refused as refused:
                raise Problem(f"step {step.title!r}: the cluster answers {refused}") from refused
            failures = self._await(step)
            with self._observer.lock:
                nodes = [node for node in self._observer.timeline.living_nodes() if node.ours]
            results.append(
                StepResult(
                    title=step.title,
                    seconds=time.monotonic() - began,
                    failures=failures,
                    nodes=len(nodes),
                    price_micros_per_hour=sum(price_of(node.labels) for node in nodes),
                )
            )
            if failures:
                break
        return tuple(results)

    def _do(self, scenario: Scenario, step: Step) -> None:
        for verb, argument in step.does.items():
            match verb:
                case "apply":
                    for document in manifests(scenario, argument, self._speed):
                        self._cluster.apply(document)
                case "delete":
                    for document in manifests(scenario, argument, self._speed):
                        self._cluster.delete(document)
                case "scale":
                    kind = "deployment" if "deployment" in argument else "statefulset"
                    path = f"apis/apps/v1/namespaces/default/{kind}s/{argument[kind]}"
                    self._cluster.merge(path, {"spec": {"replicas": argument["replicas"]}})
                case "delete_busiest_node":
                    self._delete_busiest(argument.get("owner"))
                case "wait_seconds":
                    # For what must not happen, or to see what stays; scaled like a ttl.
                    time.sleep(argument / self._speed)
                case _:
                    self._do_else(scenario, step, verb, argument)

    def _do_else(self, scenario: Scenario, step: Step, verb: str, argument: Any) -> None:
        match verb:
            case "bound":
                documents = manifests(scenario, argument["files"], self._speed)
                self._bound = bound_of(
                    documents,
                    argument.get("replicas") or {},
                    deep_pools=bool(argument.get("deep_pools")),
                )
            case "stand":
                self._stand(scenario, argument)
            case "apply_within_schedule":
                self._apply_within_schedule(scenario, argument)
            case "launch_as_karpenter" | "migrate" | "karpenter_leads" | "brakes":
                self._of_karpenter(step, verb, argument)
            case _:
                self._go_wrong(step, verb, argument)

    def _of_karpenter(self, step: Step, verb: str, argument: Any) -> None:
        if self.karpenter is None:
            raise Problem(f"step {step.title!r}: verb {verb!r} needs the embedded world")
        match verb:
            case "launch_as_karpenter":
                self.karpenter.launch(argument)
            case "migrate":
                self.karpenter.migrate(argument)
            case "brakes":
                self.karpenter.write_brakes(argument)
            case _:
                self.karpenter.renew_lease("karpenter-0" if argument else "")

    def _go_wrong(self, step: Step, verb: str, argument: Any) -> None:
        if self._faults is None:
            raise Problem(f"step {step.title!r}: verb {verb!r} is not known")
        match verb:
            case "disturb":
                self._faults.disturb(argument)
            case "interrupt_busiest_node":
                warning = float(argument["warning_seconds"])
                self._faults.interrupt(self._busiest().instance_id, warning)
            case "terminate_busiest_instance":
                self._faults.terminate(self._busiest().instance_id)
            case "stop_busiest_kubelets":
                self._stop_kubelets(argument)
            case "api_server_away_seconds":
                # Time-outs of calls run in their own time, whatever the speed.
                self._faults.api_server_away(float(argument))
            case "kill_at_launch":
                self._faults.kill_at_launch(argument)
            case "sweep_after_seconds":
                # A lease runs out in its own time, whatever the speed.
                time.sleep(argument)
                self._faults.sweep_now()
            case _:
                raise Problem(f"step {step.title!r}: verb {verb!r} is not known")

    def _stand(self, scenario: Scenario, names: list[str]) -> None:
        """Apply nodes that Dovetail does not manage, and wait until they are Ready."""
        for document in manifests(scenario, names, self._speed):
            self._cluster.apply(document)

        def ready() -> frozenset[str]:
            with self._observer.lock:
                nodes = self._observer.timeline.living_nodes()
            waits = any(node.ready is None for node in nodes)
            return frozenset() if waits else frozenset(node.name for node in nodes)

        self._known = awaited(ready, _STAND_SECONDS)
        if not self._known:
            raise Problem("the nodes that stand before the scenario did not become ready")

    def _apply_within_schedule(self, scenario: Scenario, argument: Any) -> None:
        """Apply manifests whose budgets' schedules are active from now on, for a while."""
        now = datetime.now(UTC)
        ends = whole_minute_after(now + timedelta(seconds=argument["at_least_seconds"]))
        for document in manifests(scenario, argument["files"], self._speed):
            self._cluster.apply(within_schedule(document, now, ends))
        self._closed_until = self._observer.now() + (ends - now).total_seconds()

    def _delete_busiest(self, owner: str | None) -> None:
        name = self._busiest(owner).name
        self._cluster.delete({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})

    def _stop_kubelets(self, owners: list[str]) -> None:
        """Stop the kubelet of each owner's busiest node, as if its process had ended."""
        for owner in owners:
            path = f"api/v1/nodes/{self._busiest(owner).name}"
            self._cluster.merge(path, {"metadata": {"annotations": {STOPPED: "true"}}})

    def _busiest(self, owner: str | None = None) -> NodeTrack:
        timeline = self._observer.timeline
        with self._observer.lock:
            counts = Counter(pod.node for pod in timeline.living_pods({}))
            nodes = [node for node in timeline.living_nodes() if node.ours]
        if owner is not None:
            nodes = [node for node in nodes if node.owner == owner]
        if not nodes:
            raise Problem(f"there is no Dovetail node{f' of {owner}' if owner else ''}")
        return max(nodes, key=lambda node: (counts[node.name], node.name))

    def _await(self, step: Step) -> tuple[tuple[str, str], ...]:
        """Wait until every expectation of the step holds in one and the same reading."""
        ends = self._patience.served() + step.within_seconds
        while True:
            failures = self._failures(step.expects)
            if not failures or self._patience.served() > ends:
                return failures
            time.sleep(_LOOK_SECONDS)

    def _events(self) -> frozenset[tuple[str, str]]:
        listed = self._cluster.items("api/v1/events")
        return frozenset(
            (entry["reason"], entry["involvedObject"].get("name", "")) for entry in listed
        )

    def _health(self) -> dict[str, str]:
        return conditions_of(self._cluster.items(NODE_POOLS))

    def _failures(self, expects: Any) -> tuple[tuple[str, str], ...]:
        situation = Situation(
            timeline=self._observer.timeline,
            known_nodes=self._known,
            speed=self._speed,
            bound_micros_per_hour=self._bound,
            slowness=self._patience.slowness(),
            events=self._events() if _OF_EVENTS & {*expects} else frozenset(),
            health=self._health() if "stopped_nodes_told" in expects else {},
            hands=self.karpenter.hands() if self.karpenter and "in_hands_of" in expects else {},
            launched=self.karpenter.instance_ids if self.karpenter is not None else (),
            closed_until=self._closed_until,
            harm=self._faults.harm() if self._faults and "killed_at_launch" in expects else {},
        )
        with self._observer.lock:
            found = [(name, check(situation, name, expect)) for name, expect in expects.items()]
        return tuple((name, why) for name, why in found if why)
