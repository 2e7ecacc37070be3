"""Events about a plan: unschedulable pods, nodes of shadow mode, cheaper Provisioners."""

from collections.abc import Mapping, Sequence
from typing import Final

from shared.model.digest import digest
from shared.model.dollars_and_counts import counted, hourly
from shared.model.ec2.launches import PlannedNode
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.pods import Pod
from shared.model.plan import Plan
from shared.model.provisioner import Provisioner
from shared.model.snapshot import ClusterSnapshot
from shared.nodes.brakes.ceilings import OverCeiling
from shared.nodes.events.node_events import event_on
from shared.nodes.events.recorded import recently_recorded, save_recorded
from shared.nodes.events.recorder import EventRecorder
from shared.nodes.events.workload_events import MOST_OF_WORKLOAD, each_workload
from shared.packing.problem import PackingSettings
from shared.planning.cheaper_provisioners import cheaper_provisioner, same_weight
from shared.ports import ClusterPorts, KubernetesEvent, Severity
from shared.snapshot.gather import Gathered, by_kind_and_namespace

_CHEAPER: Final = "CheaperProvisioner"
RULES_WIDENED: Final = "RulesWidened"
WIDER: Final = (
    "its pods on nodes have more required anti-affinity than one plan weighs: each keeps away all "
    "pods of the namespaces that any of them names; use fewer terms, the same in all pods"
)


class PlanEvents:
    """Records Events about a plan on pods and Provisioners."""

    def __init__(self, ports: ClusterPorts) -> None:
        self._ports = ports
        self._recorder = EventRecorder(ports)

    def unschedulable(
        self, plan: Plan, over: Sequence[OverCeiling], pending: Mapping[str, Pod]
    ) -> None:
        """Record on pods, and on controllers with many pods, why no node is planned for them."""
        reasons = [(pod_left.pod, "; ".join(pod_left.reasons)) for pod_left in plan.unschedulable]
        reasons += [
            (ref, over_ceiling.reason) for over_ceiling in over for ref in over_ceiling.node.pods
        ]
        found = [(pending.get(ref.uid) or ref, text) for ref, text in reasons]
        self._recorder.record(each_workload(found, "FailedProvisioning"))

    def left_out(self, gathered: Gathered) -> None:
        """Record on DaemonSets, and on pods on nodes, that they do not count, or not in full."""
        each = by_kind_and_namespace(gathered.left_out).values()
        self._recorder.record(
            event_on(
                subject,
                "DaemonSetLeftOut" if isinstance(subject, DaemonSet) else RULES_WIDENED,
                reason,
            )
            for some in each
            for subject, reason in some[:MOST_OF_WORKLOAD]
        )

    def wider(self, plan: Plan) -> None:
        """Record on namespaces that the anti-affinity of their pods on nodes is simplified."""
        self._recorder.record(
            KubernetesEvent(
                kind="Namespace",
                namespace="",
                name=name,
                uid="",
                severity=Severity.WARNING,
                reason=RULES_WIDENED,
                message=WIDER,
            )
            for name in plan.wider
        )

    def shadow(self, nodes: Sequence[PlannedNode], provisioners: Mapping[str, Provisioner]) -> None:
        """Record on Provisioners what would have been launched."""
        of_owner: dict[str, list[PlannedNode]] = {}
        for node in nodes:
            of_owner.setdefault(node.provisioner, []).append(node)
        self._recorder.record(
            event_on(
                provisioners[name],
                "ShadowPlan",
                f"would buy {counted(len(planned), 'node')} for "
                f"{counted(sum(len(n.pods) for n in planned), 'pod')} at "
                f"{hourly(sum(n.price_micros_per_hour for n in planned))}",
                severity=Severity.NORMAL,
            )
            for name, planned in sorted(of_owner.items())
        )

    def cheaper(self, snapshot: ClusterSnapshot, plan: Plan, settings: PackingSettings) -> None:
        """Record on Provisioners that another of the same weight would run their pods for less.

        The comparison takes as long as a plan, so each pair is compared once in some minutes.
        """
        pairs = {digest(_CHEAPER, *pair): pair for pair in same_weight(snapshot, plan)}
        if not pairs:
            return
        name, now = self._ports.cluster.name, self._ports.clock.now()
        recorded = recently_recorded(self._ports.ledger, name, now)
        fresh = {mark: pair for mark, pair in pairs.items() if mark not in recorded}
        owners = {owner.name: owner for owner in snapshot.provisioners}
        for used, other in fresh.values():
            found = cheaper_provisioner(snapshot, plan, used, other, settings)
            if found is not None:
                self._recorder.record_each(
                    event_on(owners[used], _CHEAPER, found.text, severity=Severity.NORMAL)
                )
        if fresh:
            save_recorded(self._ports.ledger, name, frozenset(fresh), now)

    def cannot_launch(self, provisioner: Provisioner, text: str) -> None:
        """Record on a Provisioner that nothing can be launched for it."""
        self._recorder.record([event_on(provisioner, "CannotLaunch", text)])
