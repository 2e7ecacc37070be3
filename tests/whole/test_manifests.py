"""A trace becomes objects and changes of a real API server."""

import pytest

from infra.local.demo.problem import Problem
from tests.simulation.cluster.workloads import JOB, STATEFUL
from tests.weeks.traces import Change, Trace
from tests.weeks.workloads import Workload
from tests.weeks.world import NODE_CLASS, node_pool
from tests.whole.manifests import changes_of, foundation, objects_of, patch_of

WEB = Workload(name="web", unavailable=1)


def test_a_job_ends_when_its_time_is_over() -> None:
    job = Workload(name="job", kind=JOB, seconds=30)
    changes = (
        Change(5, "job", 4),
        Change(10, "web", 2),
        Change(50, "web", 2, rolls=True),
        Change(100, "web", 3),
    )
    trace = Trace("t", 60 / 3600, ("m5",), (WEB, job), changes, "")
    assert changes_of(trace) == [*changes[:2], Change(35, "job", 0), changes[2]]
    assert patch_of(changes[1]) == {"spec": {"replicas": 2}}
    assert patch_of(changes[2])["spec"]["template"]["metadata"]["annotations"]


def test_a_workload_begins_without_pods_and_has_its_budget() -> None:
    deployment, budget = objects_of(WEB)
    [stateful] = objects_of(Workload(name="db", kind=STATEFUL))
    assert (deployment["kind"], stateful["kind"]) == ("Deployment", "StatefulSet")
    assert deployment["spec"]["replicas"] == 0
    assert deployment["spec"]["template"]["spec"] == WEB.spec
    assert budget["spec"]["maxUnavailable"] == 1
    with pytest.raises(Problem, match="disk: pods with volumes"):
        list(objects_of(Workload(name="disk", volumes=True)))


def test_both_worlds_have_one_node_pool() -> None:
    agent, node_class, pool = foundation(("m5", "c5"), "5m", {"role": "nodes"})
    assert all("uid" not in one["metadata"] for one in (agent, node_class, pool))
    same = node_pool(("m5", "c5"), "5m")["spec"]
    assert pool["spec"]["disruption"] == same["disruption"]
    requirements = pool["spec"]["template"]["spec"]["requirements"]
    assert requirements[:-1] == same["template"]["spec"]["requirements"]
    assert node_class["spec"]["amiSelectorTerms"] == NODE_CLASS["spec"]["amiSelectorTerms"]
    assert "instanceProfile" not in node_class["spec"]
