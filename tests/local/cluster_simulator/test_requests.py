"""What the scheduler counts for a pod, in the less common cases."""

from typing import Any

import pytest

from infra.local.cluster_simulator.rules.amounts import pod_requests
from tests.local.cluster_simulator.placing import Json


def container(cpu: str | None = None, name: str = "c", **more: Any) -> Json:
    resources = {"requests": {"cpu": cpu}} if cpu else {}
    return {"name": name, "resources": resources, **more}


def requests(status: Json | None = None, **spec: Any) -> dict[str, int]:
    return pod_requests({"spec": {"containers": [container("500m")], **spec}, "status": status})


@pytest.mark.parametrize(
    ("of_pod", "found"),
    [
        ({"requests": {"cpu": "2"}}, {"cpu": 2000}),
        ({"limits": {"cpu": "2"}}, {"cpu": 500}),
        ({"limits": {"memory": "1Ki"}}, {"cpu": 500, "memory": 1024}),
        (
            {"requests": {"memory": "1Ki"}, "limits": {"memory": "2Ki"}},
            {"cpu": 500, "memory": 1024},
        ),
        ({"requests": {"hugepages-2Mi": "4Mi"}}, {"cpu": 500, "hugepages-2Mi": 2**22}),
        ({"requests": {"nvidia.com/gpu": "1"}}, {"cpu": 500}),
    ],
)
def test_what_is_said_for_the_whole_pod_replaces_the_sum(
    of_pod: Json, found: dict[str, int]
) -> None:
    assert requests(resources=of_pod) == {**found, "pods": 1}


def test_overhead_comes_on_top_of_what_is_said_for_the_whole_pod() -> None:
    found = requests(resources={"requests": {"cpu": "2"}}, overhead={"cpu": "100m"})
    assert found == {"cpu": 2100, "pods": 1}


def test_several_sidecars_add_up_in_the_order_they_start() -> None:
    inits = [
        container("100m", "one", restartPolicy="Always"),
        container("200m", "two", restartPolicy="Always"),
        container("250m", "once"),
    ]
    # Running: 500 + 300; at the start: 300 + 250.
    assert requests(initContainers=inits)["cpu"] == 800
    inits[2] = container("600m", "once")
    assert requests(initContainers=inits)["cpu"] == 900
    # A plain one before its sidecars starts without them.
    assert requests(initContainers=[inits[2], inits[0], inits[1]])["cpu"] == 800


def test_a_resized_container_counts_with_what_it_still_has() -> None:
    has = {"name": "c", "allocatedResources": {"cpu": "1"}}
    assert requests({"containerStatuses": [has]})["cpu"] == 1000
    has = {"name": "c", "resources": {"requests": {"cpu": "700m"}}}
    assert requests({"containerStatuses": [has]})["cpu"] == 700
    has = {"name": "c", "allocatedResources": {"cpu": "100m"}}
    assert requests({"containerStatuses": [has]})["cpu"] == 500
    refused = {"type": "PodResizePending", "reason": "Infeasible", "status": "True"}
    status = {"containerStatuses": [has], "conditions": [refused]}
    assert requests(status)["cpu"] == 100


def test_a_pod_without_requests_only_takes_a_place() -> None:
    assert pod_requests({"spec": {"containers": [container()]}}) == {"pods": 1}
    assert pod_requests({"spec": {"containers": [container("0")]}}) == {"pods": 1}
