"""Requests: the scheduler's sum."""

import json
from typing import Any

import pytest

from shared.kube.kept.decoding import POD_PAGE_DECODER
from shared.manifests.pod_requests import pod_requests
from shared.manifests.pods import PodDecoder
from shared.model.resources import Resources

MIB = 2**20


def container(name: str = "c", **resources: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "resources": resources}


def requests(spec: dict[str, Any], status: dict[str, Any] | None = None) -> Resources:
    problems: list[str] = []
    found = pod_requests(spec, status or {}, problems)
    assert problems == []
    return found


def test_containers_add_up_and_a_pod_counts_as_one() -> None:
    spec = {"containers": [container(requests={"cpu": "250m", "memory": "64Mi"})] * 2}
    assert requests(spec) == Resources.of(cpu=500, memory=128 * MIB, pods=1)


def test_a_pod_without_requests_still_takes_one_of_the_pods() -> None:
    assert requests({"containers": None}) == Resources.of(pods=1)
    assert requests({}) == Resources.of(pods=1)


def test_a_limit_without_request_is_the_request() -> None:
    spec = {
        "containers": [
            container(limits={"cpu": "1", "nvidia.com/gpu": 1}, requests={"cpu": "100m"})
        ]
    }
    assert requests(spec) == Resources.from_mapping({"cpu": 100, "nvidia.com/gpu": 1, "pods": 1})


def test_null_is_a_quantity_of_zero() -> None:
    asked = container(limits={"cpu": None, "memory": 5}, requests={"cpu": "1", "memory": None})
    assert requests({"containers": [asked]}) == Resources.of(cpu=1000, pods=1)


@pytest.mark.parametrize(
    ("init_cpus", "expected"),
    [
        (["100m"], 500),  # the containers need more
        (["2", "1"], 2000),  # one after the other: the largest counts
        (["sidecar:1"], 1500),  # runs beside the containers
        (["sidecar:1", "2"], 3000),  # the init container runs beside the sidecar before it
        (["2", "sidecar:1"], 2000),  # ... but not beside one that comes after it
        (["sidecar:1", "sidecar:1", "100m"], 2500),
    ],
)
def test_init_containers_count_by_which_containers_run_at_the_same_time(
    init_cpus: list[str], expected: int
) -> None:
    inits = []
    for text in init_cpus:
        one = container(requests={"cpu": text.removeprefix("sidecar:")})
        if text.startswith("sidecar:"):
            one["restartPolicy"] = "Always"
        inits.append(one)
    spec = {"containers": [container(requests={"cpu": "500m"})], "initContainers": inits}
    assert requests(spec)["cpu"] == expected


def test_the_overhead_of_the_runtime_class_comes_on_top() -> None:
    spec = {
        "containers": [container(requests={"cpu": "1"})],
        "overhead": {"cpu": "250m", "memory": "120Mi"},
    }
    assert requests(spec) == Resources.of(cpu=1250, memory=120 * MIB, pods=1)


def test_pod_level_requests_replace_the_sum_and_limits_fill_gaps() -> None:
    spec = {
        "containers": [container(requests={"cpu": "1", "nvidia.com/gpu": "1"})],
        "resources": {
            "requests": {"cpu": "3", "nvidia.com/gpu": "7"},
            "limits": {"memory": "1Gi", "cpu": "9", "hugepages-2Mi": "4Mi", "example.com/x": "1"},
        },
    }
    assert requests(spec) == Resources.from_mapping(
        {
            "cpu": 3000,
            "memory": 1024 * MIB,
            "hugepages-2Mi": 4 * MIB,
            "nvidia.com/gpu": 1,
            "pods": 1,
        }
    )


def test_a_container_that_is_being_resized_counts_with_the_most_of_all() -> None:
    spec = {"containers": [container("a", requests={"cpu": "1"}), container("b")]}
    status = {
        "containerStatuses": [
            {
                "name": "a",
                "allocatedResources": {"cpu": "2"},
                "resources": {"requests": {"cpu": "3"}},
            },
            {"name": "b"},
        ]
    }
    assert requests(spec, status)["cpu"] == 3000


def resized(reason: str) -> dict[str, Any]:
    """Return the status of a pod that has one CPU, and whose resize waits for this reason."""
    return {
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
        "containerStatuses": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}],
    }


RESIZED = {"containers": [container("a", requests={"cpu": "16"})]}


def test_a_resize_that_its_node_cannot_bear_does_not_count() -> None:
    assert requests(RESIZED, resized("Infeasible"))["cpu"] == 1000
    assert requests(RESIZED, resized("Deferred"))["cpu"] == 16000
    # What the kubelet says nothing of counts as it is asked for.
    both = {"containers": [*RESIZED["containers"], container("b", requests={"cpu": "2"})]}
    assert requests(both, resized("Infeasible"))["cpu"] == 3000


def test_a_resize_that_becomes_infeasible_is_seen_in_the_pages_of_a_list() -> None:
    decoder = PodDecoder()
    asked = []
    for reason in ("Deferred", "Infeasible"):
        page = {"items": [{"spec": RESIZED, "status": resized(reason)}]}
        (raw,) = POD_PAGE_DECODER(json.dumps(page).encode())["items"]
        asked.append(decoder.decode(raw).scheduling.requests["cpu"])
    assert asked == [16000, 1000]


def test_a_quantity_that_cannot_be_read_is_named() -> None:
    problems: list[str] = []
    spec = {"containers": [container(requests={"cpu": "1", "memory": "1GiB"})]}
    found = pod_requests(spec, {}, problems)
    assert found == Resources.of(cpu=1000, pods=1)
    assert len(problems) == 1
    assert problems[0].startswith("spec.containers[0].resources: memory: '1GiB' is not a quantity")
