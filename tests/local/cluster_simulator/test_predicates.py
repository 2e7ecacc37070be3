"""The simulated scheduler's rules, one by one."""

from typing import Any

import pytest

from infra.local.cluster_simulator.rules.amounts import parse, pod_requests
from infra.local.cluster_simulator.rules.matching import (
    ClusterView,
    matches_node_term,
    matches_selector,
    tolerates,
)
from tests.local.cluster_simulator.placing import ZONE, Json, check, make_node, make_pod, required

TAKEN = "node(s) didn't have free ports for the requested pod ports"
NOT_MATCHED = "node(s) didn't match Pod's node affinity/selector"


@pytest.mark.parametrize(
    ("resource", "text", "value"),
    [
        ("cpu", "250m", 250),
        ("cpu", "1.5", 1500),
        ("cpu", "1n", 1),
        ("memory", "1Ki", 1024),
        ("memory", "1.5G", 1_500_000_000),
        ("memory", "2e3", 2000),
        ("memory", "1E", 10**18),
        ("memory", "100m", 1),
        ("pods", "110", 110),
    ],
)
def test_quantities_are_whole_numbers_rounded_up(resource: str, text: str, value: int) -> None:
    assert parse(resource, text) == value


@pytest.mark.parametrize("text", ["", "1GiB", "i", ".", "1 Gi", "mm"])
def test_a_text_that_is_no_quantity_is_named(text: str) -> None:
    with pytest.raises(ValueError, match=r"memory: .* is not a quantity"):
        parse("memory", text)


def test_requests_follow_init_containers_sidecars_limits_and_overhead() -> None:
    def container(cpu: str, **more: Any) -> Json:
        return {"resources": {"requests": {"cpu": cpu}}, **more}

    limited = {"resources": {"limits": {"cpu": "1", "memory": "1Ki"}}}
    pod: Json = {
        "spec": {
            "containers": [container("200m"), limited],
            "initContainers": [
                container("1500m"),
                container("100m", restartPolicy="Always"),
                container("1300m"),
            ],
            "overhead": {"cpu": "10m"},
        }
    }
    # Running: 200 + 1000 + 100; the peak is the first init container: 1500.
    assert pod_requests(pod) == {"cpu": 1510, "memory": 1024, "pods": 1}
    pod["spec"]["initContainers"][0] = container("1m")
    # Now the last init container beside its sidecar is the peak: 1300 + 100.
    assert pod_requests(pod)["cpu"] == 1410
    assert pod_requests({"spec": {**pod["spec"], **container("3")}})["cpu"] == 3010


def test_selectors_match_as_documented() -> None:
    labels = {"app": "web", "tier": "2"}
    assert not matches_selector(None, labels)
    assert matches_selector({}, labels)
    node = {"metadata": {"name": "n0", "labels": labels}}

    def term(operator: str, *values: str, key: str = "tier") -> bool:
        expression = {"key": key, "operator": operator, "values": list(values)}
        return matches_node_term({"matchExpressions": [expression]}, node)

    assert term("In", "1", "2")
    assert not term("NotIn", "2")
    assert term("NotIn", "2", key="absent")
    assert term("Exists")
    assert not term("Exists", key="absent")
    assert term("DoesNotExist", key="absent")
    assert term("Gt", "1")
    assert not term("Gt", "2")
    assert term("Lt", "3")
    assert not term("Lt", "x")
    assert not term("Gt", "1", key="absent")
    assert not matches_node_term({}, node)
    field = {"key": "metadata.name", "operator": "In", "values": ["n0"]}
    assert matches_node_term({"matchFields": [field]}, node)


def test_tolerations_match_as_documented() -> None:
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    assert tolerates({"operator": "Exists"}, taint)
    assert tolerates({"key": "k", "value": "v"}, taint)
    assert not tolerates({"key": "k"}, taint)
    assert tolerates({"key": "k", "operator": "Exists", "effect": "NoSchedule"}, taint)
    assert not tolerates({"key": "k", "operator": "Exists", "effect": "NoExecute"}, taint)
    assert not tolerates({"key": "other", "operator": "Exists"}, taint)


def test_a_node_without_objections_takes_the_pod() -> None:
    assert check(make_pod(), make_node()) == []


def test_marks_of_the_node_are_respected_unless_tolerated() -> None:
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    soft = {"key": "slow", "effect": "PreferNoSchedule"}
    node = make_node(unschedulable=True, taints=[soft, taint])
    assert check(make_pod(), node) == [
        "node(s) were unschedulable",
        "node(s) had untolerated taint {gpu: yes}",
    ]
    assert check(make_pod(tolerations=[{"operator": "Exists"}]), node) == []


def test_a_pod_for_another_node_or_label_is_refused() -> None:
    reasons = check(make_pod(on="n1"), make_node())
    assert reasons == ["node(s) didn't match the requested node name"]
    assert check(make_pod(nodeSelector={ZONE: "b"}), make_node()) == [NOT_MATCHED]
    expression = {"key": ZONE, "operator": "In", "values": ["b"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    assert check(make_pod(affinity=required("nodeAffinity", terms)), make_node()) == [NOT_MATCHED]


def test_gates_are_a_reason() -> None:
    assert check(make_pod(schedulingGates=[{"name": "g"}]), make_node()) == [
        "pod has scheduling gates"
    ]


def test_resources_are_what_is_left_beside_running_pods() -> None:
    ended = make_pod("ended", on="n0", cpu="2") | {"status": {"phase": "Succeeded"}}
    view = ClusterView(nodes=[make_node()], pods=[make_pod("a", on="n0", cpu="1500m"), ended])
    assert check(make_pod(cpu="500m"), make_node(), view) == []
    assert check(make_pod(cpu="501m"), make_node(), view) == ["Insufficient cpu"]
    full = ClusterView(nodes=[make_node()], pods=[make_pod(str(i), on="n0") for i in range(3)])
    assert check(make_pod(), make_node(), full) == ["Too many pods"]
    gpu = make_pod()
    gpu["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/gpu": 1}
    assert check(gpu, make_node()) == ["Insufficient nvidia.com/gpu"]


@pytest.mark.parametrize(
    ("mine", "other", "reasons"),
    [
        ({"hostPort": 80}, {"hostPort": 80}, [TAKEN]),
        ({"hostPort": 80}, {"hostPort": 81}, []),
        ({"hostPort": 80, "protocol": "UDP"}, {"hostPort": 80}, []),
        ({"hostPort": 80, "hostIP": "1.1.1.1"}, {"hostPort": 80}, [TAKEN]),
        ({"hostPort": 80, "hostIP": "1.1.1.1"}, {"hostPort": 80, "hostIP": "1.1.1.2"}, []),
    ],
)
def test_host_ports_do_not_collide(mine: Json, other: Json, reasons: list[str]) -> None:
    pods = [make_pod("mine"), make_pod("other", on="n0")]
    for pod, port in zip(pods, (mine, other), strict=True):
        pod["spec"]["containers"][0]["ports"] = [{"containerPort": 1, **port}]
    view = ClusterView(nodes=[make_node()], pods=pods[1:])
    assert check(pods[0], make_node(), view) == reasons


def test_volumes_tie_a_pod_to_their_zone() -> None:
    expression = {"key": ZONE, "operator": "In", "values": ["b"]}
    zonal = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    classes: dict[str, Json] = {
        "late": {"volumeBindingMode": "WaitForFirstConsumer"},
        "tied": {
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["b"]}]}],
        },
        "now": {"volumeBindingMode": "Immediate"},
    }
    claims: dict[tuple[str, str], Json] = {
        ("default", name): {"spec": {"storageClassName": name}} for name in classes
    }
    claims["default", "bound"] = {"spec": {"volumeName": "pv"}}
    view = ClusterView(
        nodes=[make_node()],
        claims=claims,
        volumes={"pv": {"spec": {"nodeAffinity": {"required": zonal}}}},
        storage_classes=classes,
    )

    def reasons(claim: str, node: Json) -> list[str]:
        volume = {"name": "v", "persistentVolumeClaim": {"claimName": claim}}
        return check(make_pod(volumes=[volume]), node, view)

    here, there = make_node(zone="a"), make_node(zone="b")
    assert reasons("bound", here) == ["node(s) had volume node affinity conflict"]
    assert reasons("bound", there) == []
    assert reasons("late", here) == []
    assert reasons("tied", here) == ["node(s) did not have enough free storage"]
    assert reasons("tied", there) == []
    assert reasons("now", here) == ["pod has unbound immediate PersistentVolumeClaims"]
    assert reasons("none", here) == ['persistentvolumeclaim "none" not found']
