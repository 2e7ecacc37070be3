"""A trace as objects of a real API server, and what its users change, second by second."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from infra.local.demo.problem import Problem
from infra.local.demo.world import CLUSTER
from shared.model import labels as keys
from tests.simulation.cluster.workloads import JOB, STATEFUL
from tests.weeks.cluster import DAEMONSET
from tests.weeks.traces import Change, Trace
from tests.weeks.workloads import Workload
from tests.weeks.world import NODE_CLASS, SIZES, node_pool

Raw = Mapping[str, Any]
_DISCOVERY: Final = [{"tags": {"karpenter.sh/discovery": CLUSTER}}]


def foundation(families: Sequence[str], after: str, identity: Raw) -> list[Raw]:
    """Return the DaemonSet, the EC2NodeClass and the NodePool of a trace in virtual time.

    Args:
        after: consolidateAfter.
        identity: `role` or `instanceProfile` of the EC2NodeClass.
    """
    pool, node_class = node_pool(families, after), NODE_CLASS["spec"]
    template = pool["spec"]["template"]["spec"]
    # The world in virtual time has these sizes and no others.
    sizes = {"key": keys.INSTANCE_SIZE, "operator": "In", "values": [*SIZES]}
    requirements = [*template["requirements"], sizes]
    return [
        _fresh(DAEMONSET, DAEMONSET["spec"]),
        _fresh(
            NODE_CLASS,
            {
                "amiSelectorTerms": node_class["amiSelectorTerms"],
                "subnetSelectorTerms": _DISCOVERY,
                "securityGroupSelectorTerms": _DISCOVERY,
                **identity,
            },
        ),
        _fresh(
            pool,
            {**pool["spec"], "template": {"spec": {**template, "requirements": requirements}}},
        ),
    ]


def objects_of(workload: Workload) -> Iterator[Raw]:
    """Yield a workload without pods, and its PodDisruptionBudget.

    A Job is a Deployment that is scaled down when its time is over: containers of hollow kubelets
    do not end.

    Raises:
        Problem: Its pods need what hollow kubelets lack here.
    """
    if workload.volumes or workload.gpus:
        raise Problem(f"{workload.name}: pods with volumes or GPUs are played in virtual time only")
    labels = {"app": workload.name}
    yield {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet" if workload.kind == STATEFUL else "Deployment",
        "metadata": {"namespace": "default", "name": workload.name},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": workload.spec},
        },
    }
    if workload.raw_budget is not None:
        yield _fresh(workload.raw_budget, workload.raw_budget["spec"])


def changes_of(trace: Trace) -> list[Change]:
    """Return what users change in order of time, with the ends of Jobs."""
    jobs = {one.name: one.seconds for one in trace.workloads if one.kind == JOB}
    ends = [
        Change(change.second + jobs[change.workload], change.workload, 0)
        for change in trace.changes
        if change.workload in jobs
    ]
    return sorted(change for change in (*trace.changes, *ends) if change.second < trace.seconds)


def patch_of(change: Change) -> Raw:
    """Return the merge patch of a Deployment or StatefulSet that a change is."""
    spec: dict[str, Any] = {"replicas": change.replicas}
    if change.rolls:
        rolled = {"example.com/rolled-at": str(change.second)}
        spec["template"] = {"metadata": {"annotations": rolled}}
    return {"spec": spec}


def _fresh(raw: Raw, spec: Raw) -> Raw:
    """Return an object as its user writes it: without what the API server adds."""
    metadata = {
        key: raw["metadata"][key] for key in ("namespace", "name") if key in raw["metadata"]
    }
    return {**raw, "metadata": metadata, "spec": spec}
