"""Machines as the cluster sees them: kubelets, the cloud controller and the pods' own life."""

import contextlib
import functools
from collections.abc import Callable
from typing import Any, Final

from infra.local.cluster_simulator.kubelet.user_data import read_user_data
from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType
from shared.model.errors import ConflictError, PermanentError
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.resources import Resources
from shared.model.values import replace
from tests.simulation.aws.machines import Machine
from tests.simulation.aws.region import Region
from tests.simulation.cluster.apiserver import ApiServer
from tests.simulation.cluster.cloud_controller import CloudController
from tests.simulation.cluster.volumes import Volumes
from tests.simulation.cluster.workloads import (
    JOB,
    ended,
    finishes,
    fits,
    room_on,
    used_on,
    wanted_by,
)
from tests.simulation.laws.launches import fail
from tests.simulation.schedule.faults import Action, CallFaults, Site
from tests.simulation.schedule.kernel import Kernel
from tests.simulation.schedule.seeded_random import between, chosen, draw

_UNREACHABLE: Final = Taint(key=keys.NODE_UNREACHABLE_TAINT, effect=Effect.NO_EXECUTE)
_OF_READINESS: Final = frozenset({keys.NODE_NOT_READY_TAINT, keys.NODE_UNREACHABLE_TAINT})
_TOLERATED: Final = 300
# A kubelet that is silent for so long makes its Node Unknown.
# Source: NodeMonitorGracePeriod of the node lifecycle controller,
# https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/controller/nodelifecycle/config/v1alpha1/defaults.go
# (2026-11).
_GRACE: Final = 50
# Pods of a Node that is gone: for how long its name is in quarantine, and how often is looked.
# Source: gcOrphaned of the pod garbage collector,
# https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/controller/podgc/gc_controller.go
# (2026-11).
_QUARANTINE: Final = 40
_COLLECTED_EVERY: Final = 20
_REGISTRATION: Final = 3.0
_STATUS: Final = 10.0
CLOUD_TAINT: Final = Taint(
    key=keys.CLOUD_UNINITIALIZED_TAINT, value="true", effect=Effect.NO_SCHEDULE
)
_AGENT: Final = Taint(key="agent.example.com/not-ready", effect=Effect.NO_SCHEDULE)
# Machines of a launch template have the same.
_flags_of: Final = functools.lru_cache(64)(read_user_data)


class NodeSide:
    """Everything that happens on the machines of one cluster.

    Attributes:
        kubelets: Node name to machine, for the kubelets that live, registered or not.
        tainted: Ids of the machines that an agent taints.
        always_smaller: Whether every machine has less room than was said of its type.
        never_joins: Whether no kubelet ever comes.
        sweeps: Whether sweep runs: only it sees that the pods of a node leave and none ends, and
            puts right what a machine that was taken over writes on its Node.
        notices: Called with each state a machine takes and each warning.
        released: Nodes whose finalizer a user removed, with the Node.
    """

    def __init__(
        self, kernel: Kernel, faults: CallFaults, api: ApiServer, types: dict[str, InstanceType]
    ) -> None:
        self.kernel = kernel
        self.faults = faults
        self.api = api
        self.types = types
        self.kubelets: dict[str, Machine] = {}
        self.smaller: set[str] = set()
        self.tainted: set[str] = set()
        self.always_smaller = False
        self.never_joins = False
        self.sweeps = True
        self.released = 0
        self.startup_taints: frozenset[str] = frozenset()
        self.region: Region | None = None
        self.cloud: CloudController | None = None
        self.notices: Callable[[Machine, str], None] = lambda machine, what: None
        self.volumes = Volumes(kernel, api, self.kubelets)
        self._registered: set[str] = set()
        self._reporting: set[str] = set()
        self._already_tainted: set[str] = set()
        self._starting: set[str] = set()
        self._stopping: set[str] = set()
        self._missing: set[str] = set()
        api.watched.insert(0, self.look)

    # --- machines

    def launched(self, machine: Machine) -> None:
        name, seed = machine.instance.instance_id, self.faults.seed
        fate = self.faults.event(
            Site("machine", "boot", self.api.name),
            self.kernel.time,
            (Action.DIES, 0.03),
            (Action.NEVER, 0.03),
            (Action.LATE, 0.02),
            (Action.FIRST, 0.06),
            (Action.SMALLER, 0.02),
            (Action.INTERRUPTED, 0.04),
            (Action.DELETED, 0.02),
            (Action.STOPPED, 0.025),
            (Action.UNKNOWN, 0.025),
            (Action.RELEASED, 0.02),
            (Action.TAINTED, 0.03),
        )
        boot = between(8, 24, seed, "boot", name)
        deeds: dict[Action | None, tuple[float, float, str, Callable[[Machine], None]]] = {
            Action.DIES: (1, 20, "dies", self._end),
            Action.DELETED: (4, 40, "deleted", self._delete),
            Action.RELEASED: (30, 250, "released", self._release),
            Action.STOPPED: (1, 250, "stopped", self._halt),
            Action.UNKNOWN: (3, 25, "unknown to", self._miss),
        }
        if fate in deeds:
            soonest, latest, what, deed = deeds[fate]
            self.kernel.after(between(soonest, latest, seed, what, name), lambda: deed(machine))
        elif fate is Action.LATE:
            boot = between(290, 400, seed, "late", name)
        elif fate is Action.FIRST:
            boot = 0.5
        elif fate is Action.TAINTED:
            self.tainted.add(name)
        elif fate is Action.SMALLER or self.always_smaller:
            self.smaller.add(name)
        elif fate is Action.INTERRUPTED:
            warned = between(5, 200, seed, "warned", name)
            self.kernel.after(warned, lambda: self._interrupt(machine))
            self.kernel.after(
                warned * draw(seed, "recommended", name), lambda: self._recommend(machine)
            )
        if fate is not Action.NEVER and not self.never_joins:
            # It admits pods before the API server has answered its registration.
            registers = machine.running + int(boot * 1e6)
            starts = max(registers - int(_REGISTRATION * 1e6), machine.running)
            self.kernel.at(starts, lambda: self._start(machine))
            self.kernel.at(registers, lambda: self._join(machine))

    def meet(self, machine: Machine, node: Node) -> None:
        """Let a machine and its Node stand that nobody launched here: its kubelet runs pods."""
        self._registered.add(machine.instance.instance_id)
        self.kubelets[node.name] = machine
        self.api.post_node(node)
        self._report(machine)
        self._untaint(node.name, frozenset({keys.NODE_NOT_READY_TAINT}))

    def ending(self, machine: Machine) -> None:
        """Let EC2 say so, the kubelet die in the end, and the cloud controller notice.

        While EC2 shuts a machine down its kubelet still runs pods: systemd waits for it.

        Source: shutdownGracePeriod, which nodeadm sets, in
        https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/ (2026-11).
        """
        self.kernel.after(1, lambda: self.notices(machine, "shutting-down"))
        self.kernel.at(machine.gone, lambda: self._die(machine))
        self.kernel.at(machine.gone + 500_000, lambda: self.notices(machine, "terminated"))
        self.kernel.at(machine.gone + _GRACE * 1_000_000, lambda: self._silent(machine))

    def stopping(self, machine: Machine) -> None:
        """Let EC2 say so, and the kubelet die when the machine is stopped."""
        off = machine.off
        self.kernel.after(1, lambda: self.notices(machine, "stopping"))
        self.kernel.at(off, lambda: self._die(machine))
        self.kernel.at(off + 500_000, lambda: self._halted(machine))
        self.kernel.at(off + _GRACE * 1_000_000, lambda: self._silent(machine))

    def stop_kubelet(self, machine: Machine, *, for_ever: bool) -> None:
        """Let a kubelet stop while its machine and the containers go on; it may come back.

        One comes back where nothing would remove its node: its pods could not move for ever.
        """
        if self.kubelets.get(machine.instance.private_dns_name) is not machine:
            return
        self._die(machine)
        self.kernel.after(_GRACE, lambda: self._silent(machine))
        node, seed = self._node(machine), self.faults.seed
        owner = self.api.provisioner_values.get(node.provisioner) if node is not None else None
        if not (for_ever and self.sweeps and owner is not None and owner.ttl_after_empty):
            span = between(10, 500, seed, "mute for", machine.instance.instance_id)
            self.kernel.after(span, lambda: self._return(machine))

    def _return(self, machine: Machine) -> None:
        """Let a kubelet start again: it reports its node, and runs and ends pods as before."""
        if machine.leaves:
            return
        name = machine.instance.private_dns_name
        self.kubelets[name] = machine
        for pod in self.api.pods_of_node(name):
            if pod.phase == "Running":
                self.api.put(pod, ready=True)
                self._finish_later(pod)
        self.api.touch()

    def _miss(self, machine: Machine) -> None:
        assert self.cloud is not None
        self.cloud.miss(machine.instance.instance_id)

    def _halt(self, machine: Machine) -> None:
        assert self.region is not None
        machine.spared = True
        self.region.stop(machine)

    def _halted(self, machine: Machine) -> None:
        if machine.ended is None:
            self.notices(machine, "stopped")

    def _die(self, machine: Machine) -> None:
        name = machine.instance.private_dns_name
        if self.kubelets.get(name) is machine:
            del self.kubelets[name]

    def _end(self, machine: Machine) -> None:
        assert self.region is not None
        machine.taken = machine.taken or machine.ended is None
        self.region.end(machine)

    def _recommend(self, machine: Machine) -> None:
        if machine.ended is None:
            self.notices(machine, "recommended")

    def _interrupt(self, machine: Machine) -> None:
        if machine.ended is None:
            self.notices(machine, "interrupted")
            self.kernel.after(45, lambda: self._end(machine))

    def _node(self, machine: Machine) -> Node | None:
        node = self.api.node_values.get(machine.instance.private_dns_name)
        return node if node and node.instance_id == machine.instance.instance_id else None

    def _delete(self, machine: Machine) -> None:
        """Delete a Node as a user would."""
        node = self._node(machine)
        if node is not None and node.deletion_at is None:
            machine.spared = True
            self.api.delete_node(node)

    def _release(self, machine: Machine) -> None:
        """Delete a Node and remove its finalizer, as a user would who wants it to be gone."""
        node = self._node(machine)
        if node is not None:
            machine.spared = machine.released = True
            self.released += 1
            del self.api.node_values[node.name]
            self.api.touch()

    def _silent(self, machine: Machine) -> None:
        node = self._node(machine)
        if node is not None and self.kubelets.get(node.name) is not machine:
            self.api.put_node(
                replace(node, ready=None, taints=tuple(dict.fromkeys((*node.taints, _UNREACHABLE))))
            )
            for pod in self.api.pods_of_node(node.name):
                self.api.put(pod, ready=False)
            self.kernel.after(_TOLERATED, lambda: self._evict(machine))

    def _evict(self, machine: Machine) -> None:
        """Let the taint manager delete the pods of a node that stays away."""
        node = self._node(machine)
        if node is not None and node.ready is not True:
            for pod in self.api.pods_of_node(node.name):
                self.api.stop(pod)

    # --- kubelets

    def _start(self, machine: Machine) -> None:
        """Let the kubelet begin to admit the pods that are bound to its Node."""
        if not machine.leaves:
            self.kubelets[machine.instance.private_dns_name] = machine
            self.api.touch()

    def _join(self, machine: Machine) -> None:
        """Let the kubelet register, as often as it takes, and report its first status."""
        if machine.leaves:
            return
        if self.kernel.time < self.api.away_until:
            self.kernel.at(self.api.away_until + 2_000_000, lambda: self._join(machine))
            return
        try:
            self._register(machine)
        except PermanentError as refused:
            fail("register", str(refused))
        self._registered.add(machine.instance.instance_id)
        self._report(machine)
        site, name = Site("machine", "writes", self.api.name), machine.instance.instance_id
        lies = self.faults.event(site, self.kernel.time, (Action.LIES, 0.08))
        if lies is Action.LIES and self.sweeps:
            wait = between(1, 90, self.faults.seed, "lies", name)
            self.kernel.after(wait, lambda: self._lie(machine))
        site = Site("kubelet", "stop", self.api.name)
        fate = self.faults.event(site, self.kernel.time, (Action.DEAD, 0.03), (Action.MUTE, 0.04))
        if fate is not None:
            begin = between(5, 200, self.faults.seed, "mute from", machine.instance.instance_id)
            self.kernel.after(
                begin, lambda: self.stop_kubelet(machine, for_ever=fate is Action.DEAD)
            )

    def _lie(self, machine: Machine) -> None:
        """Let a machine that was taken over write on its own Node all that it may."""
        node, name = self._node(machine), machine.instance.instance_id
        if node is None or node.deletion_at is not None or machine.leaves:
            return
        machine.lied = True
        lies: tuple[dict[str, Any], ...] = (
            {"labels": {**node.labels, keys.INSTANCE_TYPE: "x1.none"}},
            {"labels": {**node.labels, keys.INSTANCE_TYPE: max(self.types)}},
            {"labels": {k: v for k, v in node.labels.items() if k not in keys.OWNER_LABELS}},
            {"annotations": {k: v for k, v in node.annotations.items() if k != keys.SLOT}},
        )
        self.api.put_node(replace(node, **chosen(lies, self.faults.seed, "lie", name)))

    def _report(self, machine: Machine) -> None:
        """Let a registered kubelet write its status into the Node of its name, of any creator."""
        name, instance = machine.instance.private_dns_name, machine.instance
        self._reporting.discard(instance.instance_id)
        node = self.api.node_values.get(name)
        if node is None or self.kubelets.get(name) is not machine or node.ready is True:
            return
        instance_type = self.types[instance.offering.instance_type]
        allocatable = instance_type.allocatable
        if instance.instance_id in self.smaller:
            allocatable = allocatable - Resources.of(cpu=400)
        taints = tuple(taint for taint in node.taints if taint.key not in _OF_READINESS)
        self.api.put_node(
            replace(
                node,
                ready=True,
                capacity=instance_type.capacity,
                allocatable=allocatable,
                taints=taints,
            )
        )
        if instance.instance_id in self.tainted - self._already_tainted:
            self._taint(machine)
        wait = between(0.5, 4, self.faults.seed, "initialize", name)
        self.kernel.after(
            wait, lambda: self._untaint(name, frozenset({keys.CLOUD_UNINITIALIZED_TAINT}))
        )
        self.kernel.after(2 * wait, lambda: self._untaint(name, self.startup_taints))

    def _taint(self, machine: Machine) -> None:
        """Let an agent taint a new node, which it takes back after a while, perhaps too late."""
        name, seed = machine.instance.private_dns_name, self.faults.seed
        node = self.api.node_values[name]
        self._already_tainted.add(machine.instance.instance_id)
        self.api.put_node(replace(node, taints=(*node.taints, _AGENT)))
        stays = between(10, 300, seed, "tainted", machine.instance.instance_id)
        self.kernel.after(stays, lambda: self._untaint(name, frozenset({_AGENT.key})))

    def _report_soon(self, machine: Machine) -> None:
        """Let the next status update come: a Node may have been made again."""
        if machine.instance.instance_id not in self._reporting:
            self._reporting.add(machine.instance.instance_id)
            self.kernel.after(_STATUS, lambda: self._report(machine))

    def _untaint(self, name: str, gone: frozenset[str]) -> None:
        node = self.api.node_values.get(name)
        if node is not None and any(taint.key in gone for taint in node.taints):
            taints = tuple(taint for taint in node.taints if taint.key not in gone)
            self.api.put_node(replace(node, taints=taints))

    def _register(self, machine: Machine) -> None:
        """Post the Node that the flags in the user data lead to; one that exists stays as it is.

        Raises:
            PermanentError: If the API server refuses it; a kubelet would try for ever.
        """
        flags = _flags_of(machine.user_data)
        offering, name = machine.instance.offering, machine.instance.private_dns_name
        labels = {
            **flags.labels,
            keys.INSTANCE_TYPE: offering.instance_type,
            keys.ZONE: offering.zone,
            keys.HOSTNAME: name,
        }
        taints = [
            Taint(key=taint["key"], value=taint["value"], effect=Effect(taint["effect"]))
            for taint in flags.taints
        ]
        node = Node(
            name=name,
            uid=f"uid-kubelet-{machine.instance.instance_id}",
            labels=labels,
            taints=(*taints, CLOUD_TAINT),
            provider_id=machine.instance.provider_id,
        )
        with contextlib.suppress(ConflictError):
            self.api.post_node(node)
        self.api.touch()

    # --- pods

    def look(self) -> None:
        """Start, reject and end pods where a kubelet lives; collect those of lost nodes."""
        for name, machine in self.kubelets.items():
            node, identity = self.api.node_values.get(name), machine.instance.instance_id
            if node is not None and node.ready is not True and identity in self._registered:
                self._report_soon(machine)
        for pod in list(self.api.pods.values()):
            if not pod.node_name:
                continue
            if pod.node_name in self.kubelets:
                if pod.is_terminating:
                    self._stop(pod)
                elif pod.phase == "Pending":
                    self._admit(pod)
            if pod.node_name not in self.api.node_values and pod.uid not in self._missing:
                self._missing.add(pod.uid)
                every = _COLLECTED_EVERY * 1_000_000
                free = self.kernel.time + _QUARANTINE * 1_000_000
                when = (free // every + 1) * every
                self.kernel.at(when, lambda pod=pod: self._collect(pod))  # type: ignore[misc]

    def _collect(self, pod: Pod) -> None:
        self._missing.discard(pod.uid)
        if pod.node_name not in self.api.node_values:
            self.api.remove(pod)

    def _stop(self, pod: Pod) -> None:
        if pod.uid not in self._stopping:
            self._stopping.add(pod.uid)
            wait = between(0.5, 4, self.faults.seed, "stop", pod.uid)
            self.kernel.after(wait, lambda: self._stopped(pod))

    def _stopped(self, pod: Pod) -> None:
        """Let a kubelet that still lives say that it has ended a pod."""
        self._stopping.discard(pod.uid)
        if pod.node_name in self.kubelets:
            self.api.remove(pod)

    def _admit(self, pod: Pod) -> None:
        if pod.uid in self._starting:
            return
        node = self.api.node_values.get(pod.node_name)
        if node is None:
            return
        if self.kubelets[pod.node_name].leaves:
            # A kubelet that shuts down takes no pod any more.
            return
        self._starting.add(pod.uid)
        others = [
            other_pod
            for other_pod in self.api.pods_of_node(node.name)
            if other_pod.uid in self._starting - {pod.uid}
        ]
        rejected = self.faults.event(
            Site("kubelet", "admit", self.api.name), self.kernel.time, (Action.REJECTS, 0.015)
        )
        fitting = fits(wanted_by(pod), used_on(others), room_on(node))
        # One with less room than was said may stop before it runs what it was given.
        if not fitting and node.ready is None and node.instance_id not in self.smaller:
            fail("refused", f"{pod.key} by the kubelet of {node.name}, which is not Ready yet")
        if rejected is not None or not fitting:
            self.kernel.after(0.3, lambda: self._change(pod, phase="Failed"))
            return
        self.kernel.after(1, lambda: self._run(pod))

    def _run(self, pod: Pod) -> None:
        """Let an admitted pod run as soon as its volume is mounted."""
        known = self.api.pods.get(pod.key)
        is_here = known is not None and known.uid == pod.uid and pod.node_name in self.kubelets
        if is_here and not self.volumes.mounted(pod):
            self.kernel.after(1, lambda: self._run(pod))
        else:
            self._change(pod, phase="Running")

    def _change(self, pod: Pod, *, phase: str) -> None:
        known = self.api.pods.get(pod.key)
        if known is None or known.uid != pod.uid or known.node_name not in self.kubelets:
            self._starting.discard(pod.uid)
            return
        self.api.put(known, phase=phase, ready=phase == "Running")
        name, machine = pod.labels.get("app", ""), self.kubelets[known.node_name]
        node = self.api.node_values.get(known.node_name)
        if phase != "Running" or (node is not None and node.deletion_at is None):
            (machine.ran if phase == "Running" else machine.rejected).add(name)
        if phase == "Running":
            self._finish_later(pod)

    def _finish_later(self, pod: Pod) -> None:
        """Let the pod of a Job end in its time."""
        workload = self.api.workloads.get(pod.labels.get("app", ""))
        if workload is not None and workload.kind == JOB:
            self.kernel.after(finishes(workload, pod).total_seconds(), lambda: self._finish(pod))

    def _finish(self, pod: Pod) -> None:
        known = self.api.pods.get(pod.key)
        if known is None or known.uid != pod.uid or known.phase != "Running":
            return
        if known.node_name in self.kubelets:
            self.api.workloads[pod.labels["app"]].finished += 1
            self.api.put(ended(known))
            self.kernel.after(5, lambda: self.api.remove(pod))
