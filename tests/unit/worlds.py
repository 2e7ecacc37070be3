"""A whole world in memory for one cluster: every port is a fake, and time is told to move."""

import itertools
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

from infra.local.cluster_simulator.kubelet.registration import forbidden_labels
from shared.disruption.settings import DisruptionSettings
from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType, OfferingKey
from shared.model.ec2.launches import Instance
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.taints import Effect, Toleration, first_untolerated
from shared.model.policy import LaunchPolicy
from shared.model.resources import Resources
from shared.model.values import replace
from shared.nodes.join.node_binding import Binding, BindReport
from shared.packing.problem import PackingSettings
from shared.ports import ClusterPorts, NodeChange
from shared.ports.cluster import KubernetesEvent
from shared.provisioning.provision import Provisioning
from shared.provisioning.report import ProvisionReport
from shared.provisioning.sweep.sweep import Sweep, SweepPolicy, SweepReport
from tests.builders import CATALOG, pod
from tests.fakes.catalog import FakeCatalog
from tests.fakes.clock import FakeClock
from tests.fakes.cloud import FakeCloud
from tests.fakes.cluster import FakeCluster
from tests.fakes.decisions import FakeDecisions
from tests.fakes.ledger import FakeLedger
from tests.fakes.outbox import FakeOutbox

NAME = "test"
PLUGIN_TOLERATIONS = (
    Toleration(key="CriticalAddonsOnly", operator="Exists"),
    Toleration(key="nvidia.com/gpu", operator="Exists", effect=Effect.NO_SCHEDULE),
    Toleration(key=keys.NODE_NOT_READY_TAINT, operator="Exists", effect=Effect.NO_EXECUTE),
    Toleration(key=keys.NODE_UNREACHABLE_TAINT, operator="Exists", effect=Effect.NO_EXECUTE),
)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)


class World:
    """The fakes of one cluster, and the services that work on them."""

    def __init__(self, *values: Any, types: Iterable[InstanceType] = CATALOG) -> None:
        self.clock = FakeClock()
        self.cluster = FakeCluster(NAME, now=self.clock.now())
        self.cloud = FakeCloud(cluster=NAME, clock=self.clock, metadata_tags=True)
        self.cloud.prices = {
            OfferingKey(
                instance_type=type_.name, zone=way.zone, capacity_type=way.capacity_type
            ): way.price_micros_per_hour
            for type_ in types
            for way in type_.offerings
        }
        self.ledger = FakeLedger()
        self.catalog = FakeCatalog(types)
        self.decisions = FakeDecisions()
        self.outbox = FakeOutbox()
        self.ports = ClusterPorts(
            cluster=self.cluster,
            cloud=self.cloud,
            catalog=self.catalog,
            ledger=self.ledger,
            decisions=self.decisions,
            outbox=self.outbox,
            clock=self.clock,
            instance_profile="nodes",
        )
        self.policy = LaunchPolicy()
        self.disruption = DisruptionSettings()
        self._ids = itertools.count(1)
        self.cluster.add(*values)

    def advance(self, span: timedelta) -> None:
        self.cluster.now = self.clock.advance(span)

    def provisioning(self, ports: ClusterPorts | None = None) -> Provisioning:
        return Provisioning(
            ports or self.ports,
            self.policy,
            PackingSettings(improve_iterations=2),
            lambda: f"plan-{next(self._ids)}",
            self.disruption,
        )

    def provision(
        self,
        *,
        settle: bool = False,
        look: bool = False,
        span: timedelta = 10 * MINUTE,
        ports: ClusterPorts | None = None,
    ) -> ProvisionReport:
        """Run provision once, as one invocation that may take so long."""
        deadline = self.clock.now() + span
        return self.provisioning(ports).run(
            "holder", deadline, wait_for_batch=settle, evaluate=look
        )

    def provision_until_quiet(self, most: int = 12) -> None:
        """Deliver wakes until none is sent any more, each a little later."""
        for _ in range(most):
            sent = len(self.outbox.wakes)
            self.provision()
            if len(self.outbox.wakes) == sent and not self.ledger.open_intents(NAME):
                return
            self.advance(15 * SECOND)
        raise AssertionError("provision never came to rest")

    def sweep(self) -> SweepReport:
        return Sweep(self.ports, SweepPolicy()).run()

    def bind(self, node: str) -> BindReport:
        return Binding(self.ports, self.policy).run(node)

    @property
    def node(self) -> Node:
        """The only node there is."""
        (one,) = self.cluster.nodes()
        return one

    @property
    def alive(self) -> list[Instance]:
        return [instance for instance in self.cloud.all_instances if instance.is_alive]

    @property
    def bound(self) -> dict[str, str]:
        return {bound_pod.name: bound_pod.node_name for bound_pod in self.cluster.bound_pods()}

    def events(self, reason: str, kind: str = "") -> list[KubernetesEvent]:
        """Return the Events of a reason, in order: on any object, or on those of a kind."""
        known = self.cluster.kube_events
        return [e for e in known if e.reason == reason and kind in ("", e.kind)]

    def messages(self, reason: str, kind: str = "") -> list[str]:
        return [event.message for event in self.events(reason, kind)]

    def kubelet_joins(self, name: str, *, ready: bool = True, **changes: Any) -> Node:
        """Let a kubelet speak: capacity shown, taints of the cloud and of not-ready gone."""
        node = self.cluster.node_values[name]
        fields: dict[str, Any] = {
            "ready": ready,
            "capacity": Resources.of(cpu=2000, memory=8 * 2**30, pods=29),
            "allocatable": Resources.of(cpu=1930, memory=7 * 2**30, pods=29),
            "taints": tuple(t for t in node.taints if t.key.startswith("karpenter.sh/")),
            **changes,
        }
        self.cluster.add(replace(node, resource_version="", **fields))
        return self.cluster.node_values[name]

    def kubelet_writes(
        self,
        name: str,
        labels: Mapping[str, str | None],
        annotations: Mapping[str, str | None] | None = None,
        finalizers: tuple[str, ...] | None = None,
    ) -> Node:
        """Let the kubelet of a machine that was taken over write to its own Node; None removes.

        All that NodeRestriction lets it: any annotation and finalizer, no taint, and no label of
        Kubernetes that is not a kubelet's.
        Source: https://github.com/kubernetes/kubernetes/blob/v1.35.4/plugin/pkg/admission/noderestriction/admission.go
        (admitNode; 2026-11).
        """
        assert not forbidden_labels(labels)
        node = self.cluster.node_values[name]
        change = NodeChange(
            set_labels=labels, set_annotations=annotations or {}, finalizers=finalizers
        )
        return self.cluster.change_node(node, change)

    def device_plugin_starts(self, name: str, devices: Resources) -> bool:
        """Let a DaemonSet's pod show devices, if it tolerates the taints of its node.

        A DaemonSet with the tolerations of the NVIDIA chart, and those that the DaemonSet
        controller adds; kubelets show what a plugin registers.
        Source: https://github.com/NVIDIA/k8s-device-plugin/blob/main/deployments/helm/
        nvidia-device-plugin/values.yaml (2026-11).

        Returns:
            Whether the pod runs there.
        """
        node = self.cluster.node_values[name]
        if first_untolerated(node.taints, PLUGIN_TOLERATIONS) is not None:
            return False
        shown = node.allocatable + devices
        self.cluster.add(replace(node, resource_version="", allocatable=shown))
        return True


def moving_in(world: World, name: str = "a", **fields: Any) -> None:
    """Let a pod be bound to node n1 while that is being cordoned."""
    original = world.cluster.change_node

    def change_node(node: Node, change: NodeChange) -> Node:
        if change.unschedulable:
            world.cluster.add(pod(name, node_name="n1", **fields))
        return original(node, change)

    instead(world.cluster, "change_node", change_node)


def failing(error: Exception) -> Callable[..., Any]:
    """Return a method that raises."""

    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


def instead(port: object, method: str, double: Callable[..., Any]) -> None:
    """Let a fake's method do something else."""
    setattr(port, method, double)


class Crash(Exception):  # noqa: N818 - it is no error to handle: the process is gone
    """The process ends here, whatever it was doing."""


class Failures:
    """Lets the n-th call of all ports of one process fail, before or after it is carried out.

    Attributes:
        failed: Name of the method that failed, empty when there were fewer calls.
    """

    def __init__(self, at: int, *, after: bool, error: type[Exception] = Crash) -> None:
        self._calls = itertools.count()
        self._at = at
        self._after = after
        self._error = error
        self.failed = ""

    def ports(self, ports: ClusterPorts) -> ClusterPorts:
        """Return the ports of the process."""
        kinds = ("cluster", "cloud", "catalog", "ledger", "decisions", "outbox")
        wrapped: dict[str, Any] = {kind: _Failing(getattr(ports, kind), self) for kind in kinds}
        return replace(ports, **wrapped)

    def call(self, name: str, method: Callable[[], Any]) -> Any:
        due = next(self._calls) == self._at
        if due:
            self.failed = name
        if due and not self._after:
            raise self._error(name)
        answer = method()
        if due:
            raise self._error(name)
        return answer


class _Failing:
    def __init__(self, port: object, failures: Failures) -> None:
        self._port = port
        self._failures = failures

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if not callable(found):
            return found
        return lambda *args, **more: self._failures.call(name, lambda: found(*args, **more))
