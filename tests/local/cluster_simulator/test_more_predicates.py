"""Rules that only come up together with something else: ports, nominations, numbers, scores."""

from typing import Any

import pytest

from infra.local.cluster_simulator.rules.matching import ClusterView, matches_node_term, tolerates
from infra.local.cluster_simulator.rules.predicates import host_ports
from infra.local.cluster_simulator.rules.topology import EXISTING_ANTI_AFFINITY, PodTopology
from infra.local.cluster_simulator.scheduler.node_usage import Rooms, placement_class, score
from tests.local.cluster_simulator.placing import ZONE, Json, check, make_node, make_pod, required


@pytest.mark.parametrize(
    ("actual", "operator", "bound", "holds"),
    [
        ("10", "Gt", "9", True),
        ("010", "Gt", "9", True),
        ("+10", "Gt", "9", True),
        ("-1", "Lt", "0", True),
        ("1_0", "Gt", "9", False),
        (" 10", "Gt", "9", False),
        ("10.0", "Gt", "9", False),
        ("٣", "Gt", "1", False),
        ("9223372036854775807", "Gt", "1", True),
        ("9223372036854775808", "Gt", "1", False),
        ("10", "Gt", "many", False),
    ],
)
def test_numbers_are_parsed_as_in_golang(
    actual: str, operator: str, bound: str, *, holds: bool
) -> None:
    node = {"metadata": {"name": "n0", "labels": {"k": actual}}}
    term = {"matchExpressions": [{"key": "k", "operator": operator, "values": [bound]}]}
    assert matches_node_term(term, node) is holds


def test_a_toleration_without_an_operator_asks_for_the_same_value() -> None:
    bare = {"key": "k", "effect": "NoSchedule"}
    assert tolerates({"key": "k", "operator": ""}, bare)
    assert tolerates({"key": "k", "value": None}, bare)
    assert not tolerates({"key": "k", "operator": "Equal", "value": "v"}, bare)
    assert not tolerates({"key": "k", "operator": "Like"}, bare)


def test_sidecars_and_pods_on_the_host_network_take_host_ports() -> None:
    plain = {"name": "i", "ports": [{"containerPort": 1, "hostPort": 81}]}
    sidecar = {**plain, "restartPolicy": "Always"}
    pod = make_pod(initContainers=[plain])
    pod["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "protocol": None}]
    assert list(host_ports(pod)) == []
    pod["spec"]["initContainers"] = [sidecar]
    assert list(host_ports(pod)) == [("0.0.0.0", "TCP", 81)]
    pod["spec"]["hostNetwork"] = True
    assert list(host_ports(pod)) == [("0.0.0.0", "TCP", 80), ("0.0.0.0", "TCP", 81)]


def nominated(priority: int, **more: Any) -> Json:
    pod = make_pod("vip", cpu="1500m", priority=priority, **more)
    return pod | {"status": {"nominatedNodeName": "n0"}}


def test_a_place_that_others_are_preempted_for_is_kept() -> None:
    view = ClusterView(nodes=[make_node("n0"), make_node("n1")], nominated=[nominated(10)])
    assert check(make_pod(cpu="1"), make_node("n0"), view) == ["Insufficient cpu"]
    assert check(make_pod(cpu="500m"), make_node("n0"), view) == []
    assert check(make_pod(cpu="1"), make_node("n1"), view) == []
    # Who is more important may take it, and the pod itself comes to it.
    assert check(make_pod(cpu="1", priority=11), make_node("n0"), view) == []
    assert check(nominated(10), make_node("n0"), view) == []


def test_a_nominated_pod_keeps_others_away_by_its_rules() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": ZONE}
    guest = nominated(0, affinity=required("podAntiAffinity", [term]))
    view = ClusterView(nodes=[make_node("n0")], nominated=[guest])
    assert check(make_pod(), make_node("n0"), view) == [EXISTING_ANTI_AFFINITY]


def test_pods_with_claims_of_their_own_are_no_class() -> None:
    scratch = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}]
    assert placement_class(make_pod("a")) == placement_class(make_pod("b"))
    one, other = (make_pod(name, volumes=scratch) for name in ("a", "b"))
    assert placement_class(one) != placement_class(other)


def test_the_best_node_is_liked_then_untainted_then_empty() -> None:
    rule = {"weight": 5, "preference": {"matchExpressions": [{"key": ZONE, "operator": "Exists"}]}}
    liked = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [rule]}}
    pod = make_pod(affinity=liked)
    slow = [{"key": "slow", "effect": "PreferNoSchedule"}]
    nodes = [
        make_node("empty"),
        make_node("full"),
        make_node("tainted", taints=slow),
        make_node("unliked", zone=None),
    ]
    rooms = Rooms()
    for node in nodes:
        rooms.set_node(node["metadata"]["name"], node)
    rooms.place(make_pod("x", on="full", cpu="1"), "full")
    topology = PodTopology(pod, ClusterView(nodes=nodes))
    found = sorted((score(pod, room, topology, {"cpu": 100}), name) for name, room in rooms.open())
    assert [name for _, name in found] == ["empty", "full", "tainted", "unliked"]
    bears = make_pod(affinity=liked, tolerations=[{"key": "slow", "operator": "Exists"}])
    tainted = rooms.by_name["tainted"]
    assert score(bears, tainted, topology, {"cpu": 100}) == found[0][0]
