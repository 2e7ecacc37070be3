"""Events about the pods of a workload: some on pods, the rest on their controller."""

from shared.model.kubernetes.pods import ControllerRef, Pod
from shared.model.values import replace
from shared.nodes.events.workload_events import MOST_OF_WORKLOAD, each_workload
from shared.ports import KubernetesEvent, Severity
from tests.builders import pod, provisioner
from tests.unit.worlds import World

JOB = ControllerRef(kind="Job", name="backup", uid="uid-job", api_version="batch/v1")


def of(owner: ControllerRef | None, count: int, prefix: str = "a") -> list[Pod]:
    return [replace(pod(f"{prefix}{number:02}"), owner=owner) for number in range(count)]


def test_the_first_pods_of_a_workload_have_an_event_each_and_the_rest_one_on_its_owner() -> None:
    told = [(member, "no room") for member in of(JOB, MOST_OF_WORKLOAD + 3)]
    *own, last = each_workload(told, "FailedProvisioning")
    assert [event.name for event in own] == [f"a{number:02}" for number in range(MOST_OF_WORKLOAD)]
    assert {(event.kind, event.message) for event in own} == {("Pod", "no room")}
    assert last == KubernetesEvent(
        kind="Job",
        namespace="default",
        name="backup",
        uid="uid-job",
        severity=Severity.WARNING,
        reason="FailedProvisioning",
        message="3 more pods: no room",
        api_version="batch/v1",
    )


def test_an_owner_is_told_what_is_said_of_the_first_of_pods_that_differ() -> None:
    told = [(member, f"no room {member.name}") for member in of(JOB, MOST_OF_WORKLOAD + 2)]
    *_, last = each_workload(told, "FailedProvisioning")
    assert last.message == "2 more pods (of the first; 2 reasons in all): no room a20"


def test_a_rare_reason_is_told_on_a_pod() -> None:
    told = [(member, "no room") for member in of(JOB, MOST_OF_WORKLOAD + 2)]
    told[-1] = (told[-1][0], "deferred")
    *own, last = each_workload(told, "FailedProvisioning")
    assert "deferred" in [event.message for event in own]
    assert last.message == "2 more pods: no room"


def test_workloads_are_counted_each_for_itself_and_pods_without_one_not_at_all() -> None:
    other = replace(JOB, uid="uid-other")
    pods = [*of(JOB, 15), *of(other, 15, "b"), *of(None, MOST_OF_WORKLOAD + 5, "c")]
    events = list(each_workload([(member, "no room") for member in pods], "FailedProvisioning"))
    assert [event.kind for event in events] == ["Pod"] * len(pods)


def test_a_plan_that_refuses_a_large_workload_writes_few_events() -> None:
    world = World(provisioner(), *(replace(member, owner=JOB) for member in too_large(30)))
    assert world.provision().pods_unschedulable == 30
    kinds = sorted(event.kind for event in world.cluster.kube_events)
    assert kinds == ["Job", *["Pod"] * MOST_OF_WORKLOAD]


def too_large(count: int) -> list[Pod]:
    return [pod(f"large-{number:02}", cpu=90_000) for number in range(count)]
