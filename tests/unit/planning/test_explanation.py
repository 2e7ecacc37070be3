"""Why one pod goes where a plan puts it."""

from shared.model.plan import Plan
from shared.planning.explanation import explanation
from tests import builders as make


def test_a_pod_of_another_scheduler_is_told_to_be_bound_by_that() -> None:
    asked = make.scheduling(scheduler_name="volcano")
    waits, runs = make.pod(scheduling=asked), make.pod(scheduling=asked, node_name="n1")
    told = [explanation(make.snapshot(pod), Plan(), pod)[1] for pod in (waits, runs)]
    assert told == [
        "scheduler volcano chooses its node: the plan is by the rules of kube-scheduler",
        "it is on node n1 already",
    ]
