"""Events about a plan: unschedulable pods, nodes of shadow mode, cheaper Provisioners."""

from collections.abc import Iterable, Mapping
from typing import Final

from shared.model.digest import digest
from shared.model.dollars_and_counts import counted, hourly
from shared.model.ec2.launches import PlannedNode, PodRef
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.pods import Pod
from shared.model.plan import Plan, Unschedulable
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


def record_unschedulable(
    ports: ClusterPorts,
    left: Iterable[Unschedulable],
    over: Iterable[OverCeiling],
    pending: Mapping[str, Pod],
) -> None:
    """Record on pods, and on controllers with many pods, why no node is planned for them.

    Args:
        left: Those that still run, on an interrupted instance, are left out.
        pending: The pending pods, by UID.
    """
    found: list[tuple[Pod | PodRef, str]] = [
        (pending[one.pod.uid], "; ".join(one.reasons)) for one in left if one.pod.uid in pending
    ]
    found += [
        (pending.get(ref.uid) or ref, over_ceiling.reason)
        for over_ceiling in over
        for ref in over_ceiling.node.pods
    ]
    EventRecorder(ports).record(each_workload(found, "FailedProvisioning"))


def record_left_out(ports: ClusterPorts, gathered: Gathered) -> None:
    """Record on DaemonSets, and on pods on nodes, that they do not count, or not in full."""
    each = by_kind_and_namespace(gathered.left_out).values()
    EventRecorder(ports).record(
        event_on(
            subject,
            "DaemonSetLeftOut" if isinstance(subject, DaemonSet) else RULES_WIDENED,
            reason,
        )
        for some in each
        for subject, reason in some[:MOST_OF_WORKLOAD]
    )


def record_wider(ports: ClusterPorts, plan: Plan) -> None:
    """Record on namespaces that the anti-affinity of their pods on nodes is simplified."""
    EventRecorder(ports).record(
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


def record_shadow_plan(
    ports: ClusterPorts, nodes: Iterable[PlannedNode], provisioners: Mapping[str, Provisioner]
) -> None:
    """Record on Provisioners what would have been launched."""
    of_owner: dict[str, list[PlannedNode]] = {}
    for node in nodes:
        of_owner.setdefault(node.provisioner, []).append(node)
    EventRecorder(ports).record(
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


def record_cheaper(
    ports: ClusterPorts, snapshot: ClusterSnapshot, plan: Plan, settings: PackingSettings
) -> None:
    """Record on Provisioners that another of the same weight would run their pods for less.

    The comparison takes as long as a plan, so each pair is compared once in some minutes.
    """
    pairs = {digest(_CHEAPER, *pair): pair for pair in same_weight(snapshot, plan)}
    if not pairs:
        return
    name, now = ports.cluster.name, ports.clock.now()
    recorded = recently_recorded(ports.ledger, name, now)
    fresh = {mark: pair for mark, pair in pairs.items() if mark not in recorded}
    owners = {owner.name: owner for owner in snapshot.provisioners}
    for used, other in fresh.values():
        found = cheaper_provisioner(snapshot, plan, used, other, settings)
        if found is not None:
            EventRecorder(ports).record_each(
                event_on(owners[used], _CHEAPER, found.text, severity=Severity.NORMAL)
            )
    if fresh:
        save_recorded(ports.ledger, name, frozenset(fresh), now)


def record_cannot_launch(ports: ClusterPorts, provisioner: Provisioner, text: str) -> None:
    """Record on a Provisioner that nothing can be launched for it."""
    EventRecorder(ports).record([event_on(provisioner, "CannotLaunch", text)])
