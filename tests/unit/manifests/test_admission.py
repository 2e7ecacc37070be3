"""Pods as the API server admits them."""

from typing import Any

import pytest

from shared.manifests.admission import Admission, admission_of
from shared.manifests.limit_ranges import limits_by_namespace
from shared.manifests.pod_requests import pod_requests
from shared.model.resources import Resources

GIB = 2**30
DELAYS = [
    {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
]


def container(name: str = "c", **amounts: dict[str, str]) -> dict[str, Any]:
    return {"name": name, "resources": amounts}


def limit_range(kind: str = "Container", name: str = "usual", **item: Any) -> dict[str, Any]:
    metadata = {"namespace": "m", "name": name}
    return {"metadata": metadata, "spec": {"limits": [{"type": kind, **item}]}}


def admitted(*ranges: dict[str, Any], **spec: Any) -> tuple[Any, str]:
    admission = Admission(limit_ranges=limits_by_namespace(ranges))
    return admission.admit("m", {"containers": [container()], **spec})


@pytest.mark.parametrize(
    ("item", "requests", "limits"),
    [
        ({"defaultRequest": {"cpu": "1"}, "default": {"cpu": "2"}}, {"cpu": "1"}, {"cpu": "2"}),
        ({"default": {"cpu": "2"}}, {"cpu": "2"}, {"cpu": "2"}),
        ({"max": {"cpu": "4"}}, {"cpu": "4"}, {"cpu": "4"}),
        ({"min": {"cpu": "1"}}, {"cpu": "1"}, {}),
        ({"min": {"cpu": "1"}, "max": {"cpu": "4"}}, {"cpu": "4"}, {"cpu": "4"}),
        ({"max": {"cpu": "4"}, "default": {"cpu": "2"}}, {"cpu": "2"}, {"cpu": "2"}),
    ],
    ids=["both", "limits alone", "the most", "the least", "least and most", "default before most"],
)
def test_containers_that_say_nothing_get_the_defaults_of_their_namespace(
    item: dict[str, Any], requests: dict[str, str], limits: dict[str, str]
) -> None:
    spec, refusal = admitted(limit_range(**item), initContainers=[container("i")])
    assert not refusal
    for found in (*spec["containers"], *spec["initContainers"]):
        assert found["resources"] == {"requests": requests, "limits": limits}


def test_what_a_container_says_stays_and_another_namespace_says_nothing() -> None:
    usual = limit_range(default={"cpu": "2", "memory": "1Gi"})
    own = container(limits={"cpu": "1"})
    spec, _ = admitted(usual, containers=[own])
    amounts = {"cpu": "1", "memory": "1Gi"}
    assert spec["containers"][0]["resources"] == {"limits": amounts, "requests": amounts}
    admission = Admission(limit_ranges=limits_by_namespace([usual]))
    elsewhere, _ = admission.admit("other", {"containers": [container()]})
    assert elsewhere["containers"] == [container()]


def test_of_several_defaults_the_first_by_name_counts() -> None:
    later = limit_range(name="b", default={"cpu": "2", "memory": "1Gi"})
    spec, _ = admitted(later, limit_range(name="a", default={"cpu": "1"}))
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


ONE_TO_TWO = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}


@pytest.mark.parametrize(
    ("item", "amounts", "why"),
    [
        ({"min": {"cpu": "2"}}, ONE_TO_TWO, "cpu: request 1; it must be at least 2"),
        ({"min": {"cpu": "3"}}, {"limits": {"cpu": "2"}}, "cpu: request 2; it must be at least 3"),
        ({"max": {"cpu": "1"}}, ONE_TO_TWO, "cpu: limit 2; it must be at most 1"),
        ({"max": {"cpu": "500m"}}, {"limits": {"cpu": "2"}}, "request 2; it must be at most 500m"),
        (
            {"max": {"cpu": "1"}, "type": "Pod"},
            {"requests": {"cpu": "1"}},
            "the pod: cpu: no limit; it must be at most 1",
        ),
        (
            {"min": {"memory": "1"}, "type": "Pod"},
            ONE_TO_TWO,
            "the pod: memory: no request; it must be at least 1",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "1500m"}},
            ONE_TO_TWO,
            "cpu: limit 2 is more than 1500m times the request 1",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {"requests": {"cpu": "1"}},
            "cpu: needs request and limit, the limit at most 2 times the request",
        ),
        ({"default": {"cpu": "1"}}, {"requests": {"cpu": "2"}}, "request 2 is above its limit 1"),
    ],
    ids=[
        *("request below the least", "limit as request below the least", "limit above the most"),
        *("both above the most", "no limit of the pod", "no request of the pod", "ratio"),
        *("no ratio", "default limit below the request"),
    ],
)
def test_a_pod_that_its_limit_range_does_not_allow_is_refused_with_the_reason(
    item: dict[str, Any], amounts: dict[str, Any], why: str
) -> None:
    _, refusal = admitted(limit_range(**item), containers=[container(**amounts)])
    assert refusal.endswith(why)


@pytest.mark.parametrize(
    "item",
    [
        {"min": {"cpu": "1"}, "max": {"cpu": "2"}, "maxLimitRequestRatio": {"cpu": "2"}},
        {"min": {"cpu": "2"}, "max": {"cpu": "4"}, "type": "Pod"},
        {"max": {"cpu": "GiB"}},
        {"max": {"storage": "1"}, "type": "PersistentVolumeClaim"},
    ],
    ids=["at both edges", "the pod together", "an amount that is none", "of claims"],
)
def test_a_pod_within_its_limit_range_is_admitted(item: dict[str, Any]) -> None:
    two = [container("a", **ONE_TO_TWO), container("b", **ONE_TO_TWO)]
    assert admitted(limit_range(**item), containers=two)[1] == ""


@pytest.mark.parametrize(
    ("amounts", "why"),
    [
        ({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}, "cpu: request 2 is above its limit 1"),
        (
            {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "2"}},
            "nvidia.com/gpu: request 1 and limit 2 must be equal",
        ),
        (
            {"requests": {"nvidia.com/gpu": "1"}},
            "nvidia.com/gpu: request 1 needs a limit of the same amount",
        ),
        ({"requests": {"cpu": "GiB"}, "limits": {"cpu": "1"}}, ""),
    ],
    ids=["above its limit", "a device", "a device without a limit", "an amount that is none"],
)
def test_requests_and_limits_agree(amounts: dict[str, Any], why: str) -> None:
    assert admitted(containers=[container(**amounts)])[1].endswith(why)


def test_a_pod_tolerates_taints_of_the_devices_it_asks_for() -> None:
    gpu, fpga = "nvidia.com/gpu", "aws.amazon.com/neuron"
    own = [
        {"key": gpu, "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": None},
        {"key": "team"},
    ]
    spec, refusal = admitted(
        containers=[container(limits={gpu: "1", "cpu": "1"})],
        initContainers=[container("i", limits={fpga: "1"})],
        tolerations=own,
    )
    assert not refusal
    tolerated = {"operator": "Exists", "effect": "NoSchedule"}
    assert spec["tolerations"] == [
        {"key": gpu, **tolerated},
        {"key": "team"},
        *DELAYS,
        {"key": fpga, **tolerated},
    ]


@pytest.mark.parametrize(
    ("own", "added"),
    [
        ([], DELAYS),
        ([{"operator": "Exists"}], []),
        ([{**DELAYS[0], "tolerationSeconds": 5}], DELAYS[1:]),
        ([{**DELAYS[0], "effect": "NoSchedule"}], DELAYS),
    ],
    ids=["none", "of every taint", "an own delay", "of another effect"],
)
def test_a_pod_stays_five_minutes_on_a_node_that_is_lost(own: list[Any], added: list[Any]) -> None:
    assert admitted(tolerations=own)[0]["tolerations"] == [*own, *added]


@pytest.mark.parametrize(
    ("of_pod", "of_container", "cpu", "memory"),
    [
        ({"limits": {"cpu": "4", "memory": "1Gi"}}, {}, 4000, GIB),
        ({"limits": {"cpu": "4"}}, {"requests": {"cpu": "3"}}, 3000, 0),
        ({"limits": {"cpu": "6"}, "requests": {"cpu": "5"}}, {"requests": {"cpu": "1"}}, 5000, 0),
    ],
    ids=["limits alone", "its containers ask", "it asks itself"],
)
def test_a_pod_asks_for_what_it_is_limited_to_before_defaults_are_added(
    of_pod: dict[str, Any], of_container: dict[str, Any], cpu: int, memory: int
) -> None:
    usual = limit_range(defaultRequest={"cpu": "3"})
    spec, refusal = admitted(usual, resources=of_pod, containers=[container(**of_container)])
    problems: list[str] = []
    found = pod_requests(spec, {}, problems)
    assert (found, problems, refusal) == (Resources.of(cpu=cpu, memory=memory, pods=1), [], "")


@pytest.mark.parametrize(
    ("of_pod", "of_container", "why"),
    [
        (
            {"limits": {"cpu": "4"}},
            {"requests": {"cpu": "1"}},
            "the pod: cpu: request 1 is below that of its containers, 4",
        ),
        (
            {"limits": {"cpu": "4"}},
            {"limits": {"cpu": "5"}, "requests": {"cpu": "1"}},
            "container c: cpu: limit 5 is above the pod's",
        ),
        (
            {"limits": {"cpu": "4"}, "requests": {"cpu": "5"}},
            {},
            "the pod: cpu: request 5 is above its limit 4",
        ),
    ],
    ids=["less than its containers", "limit of a container", "above its limit"],
)
def test_what_a_pod_asks_for_itself_holds_its_containers(
    of_pod: dict[str, Any], of_container: dict[str, Any], why: str
) -> None:
    usual = limit_range(defaultRequest={"cpu": "3"})
    two = [container(**of_container), container("d")]
    assert admitted(usual, resources=of_pod, containers=two)[1] == why


def test_admission_reads_limits_runtimes_and_priorities() -> None:
    kata = {
        "kind": "RuntimeClass",
        "metadata": {"name": "kata"},
        "overhead": {"podFixed": {"cpu": "1"}},
    }
    urgent = {"kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 7}
    usual = {"kind": "LimitRange", **limit_range(default={"cpu": "2"})}
    named = {"runtimeClassName": "kata", "priorityClassName": "urgent", "containers": [container()]}
    spec, refusal = admission_of([kata, urgent, usual, {"kind": "Pod"}]).admit("m", named)
    assert not refusal
    assert (spec["overhead"], spec["priority"]) == ({"cpu": "1"}, 7)
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "2"}
    _, refused = admission_of([kata]).admit("m", {**named, "overhead": {"cpu": "2"}})
    assert refused == "overhead is not that of its RuntimeClass kata"
