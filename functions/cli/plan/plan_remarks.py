"""Remarks on a plan: on topology keys that no node has, and on owners dearer than others."""

from collections.abc import Iterator

from functions.cli.plan.unknown_topology_keys import unknown_topology_keys
from shared.model.kubernetes.pods import Pod
from shared.model.plan import Plan
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.planning.cheaper_provisioners import CheaperProvisioner, cheaper_provisioners
from shared.planning.setting_aside import ref_of


def plan_remarks(snapshot: ClusterSnapshot, plan: Plan, settings: PackingSettings) -> Iterator[str]:
    """Yield remarks on a plan for people."""
    least = plan.cost_micros_per_hour
    yield from unknown_topology_keys(snapshot)
    for finding in cheaper_provisioners(snapshot, plan, settings):
        yield _text(finding)
        saved = finding.used_micros_per_hour - finding.cheaper_micros_per_hour
        least = min(least, plan.cost_micros_per_hour - saved)
    if least < plan.lower_bound_micros_per_hour:
        yield "the lower bound and the gap are those of plans with these weights"


def pod_remarks(snapshot: ClusterSnapshot, plan: Plan, pod: Pod) -> Iterator[str]:
    """Yield the remarks on a plan that concern one pending pod, or the new node that it goes to."""
    ref = ref_of(pod)
    nodes = tuple(node for node in plan.nodes if ref in node.pods)
    yield from unknown_topology_keys(replace(snapshot, pending=(pod,)))
    for finding in cheaper_provisioners(snapshot, replace(plan, nodes=nodes), PackingSettings()):
        yield _text(finding)


def _text(finding: CheaperProvisioner) -> str:
    return f"{finding.used_kind} {finding.used}: {finding.text}"
