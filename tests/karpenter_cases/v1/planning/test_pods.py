"""What pods, their preferences and their DaemonSet neighbours ask of a NodePool's nodes."""

from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.policy import PreferencePolicy
from tests.karpenter_cases.scheduling.machines import node, slot
from tests.karpenter_cases.scheduling.market import MEDIUM, SMALL, TINY, A, B, C
from tests.karpenter_cases.scheduling.writing import (
    TEAM,
    container,
    daemonset,
    near,
    pod,
    pods,
    spread,
    taint,
)
from tests.karpenter_cases.v1.planning.pools import one, planned, pool

PLAIN = (TINY, SMALL, MEDIUM)
PORT: dict[str, Any] = {
    "containers": [{"name": "main", "ports": [{"containerPort": 80, "hostPort": 80}]}]
}
ZONE = keys.ZONE


def asked(**spec: Any) -> dict[str, int]:
    """Return what a pod of these containers requests, in millis and MiB."""
    found = pod(**spec).scheduling.requests
    return {"cpu": found["cpu"], "memory": found["memory"] // 2**20}


def test_the_overhead_of_a_runtime_class_counts() -> None:
    assert one({"cpu": "1"}, market=PLAIN).types == [TINY.name]
    outcome = one({"cpu": "1", "overhead": {"cpu": "1"}}, market=PLAIN)
    assert outcome.types == [SMALL.name]


def test_requests_of_a_whole_pod_count() -> None:
    whole = {"resources": {"requests": {"cpu": "3", "memory": "1Gi"}}}
    assert asked(**whole) == {"cpu": 3000, "memory": 1024}
    assert one(whole, market=PLAIN).types == [SMALL.name]


def test_sidecars_count_as_kubernetes_adds_them() -> None:
    sidecar = {**container("1", "1Gi"), "name": "side", "restartPolicy": "Always"}
    init = {**container("2", "2Gi"), "name": "init"}
    main = [container("500m", "512Mi")]
    before = asked(containers=main, initContainers=[sidecar, init])
    after = asked(containers=main, initContainers=[init, sidecar])
    assert before == {"cpu": 3000, "memory": 3072}
    assert after == {"cpu": 2000, "memory": 2048}


def test_pods_that_claim_devices_wait_and_say_why() -> None:
    claims = [{"name": "gpu", "resourceClaimName": "one"}]
    outcome = one({"resourceClaims": claims})
    assert outcome.new == ()
    assert "ask for an extended resource" in outcome.pending["a"]
    claiming = daemonset(resourceClaims=claims)
    assert one({"cpu": "1"}, daemonsets=(claiming,), market=PLAIN).types == [TINY.name]


# --- DaemonSets


def test_a_port_of_a_daemonset_is_not_free_for_pods() -> None:
    here = daemonset(**PORT)
    assert one({**PORT}, daemonsets=(here,)).new == ()
    elsewhere = daemonset(**PORT, nodeSelector={TEAM: "red"})
    assert one({**PORT}, daemonsets=(elsewhere,)).is_placed("a")


def test_a_daemonset_of_other_types_takes_no_room() -> None:
    words = {"cpu": "1"}
    other = daemonset(required=[[(keys.INSTANCE_TYPE, "NotIn", TINY.name)]])
    assert one(words, daemonsets=(other,), market=PLAIN).types == [TINY.name]
    assert one(words, daemonsets=(daemonset(),), market=PLAIN).types == [SMALL.name]


@pytest.mark.parametrize("key", [keys.REGISTERED, keys.INITIALIZED])
def test_a_daemonset_of_nodes_that_have_joined_takes_room(key: str) -> None:
    tied = daemonset(nodeSelector={key: "true"})
    assert one({"cpu": "1"}, daemonsets=(tied,), market=PLAIN).types == [SMALL.name]


def test_room_for_daemonsets_on_a_node_that_starts_is_kept_once() -> None:
    starting = node("n1", taints=[taint(keys.UNREGISTERED_TAINT)], ready=False)
    there = {"nodes": (starting,), "slots": (slot(node="n1"),), "daemonsets": (daemonset(),)}
    # 3.9 cores, of which the DaemonSet will have one.
    assert one({"cpu": "2900m"}, **there).where() == "n1"
    assert one({"cpu": "3"}, **there).where() == "new-0"
    running = pod(
        "agent-1",
        cpu="1",
        memory="1Gi",
        node="n1",
        namespace="kube-system",
        owner="DaemonSet",
        owner_name="agent",
    )
    assert one({"cpu": "2900m"}, **there, bound=(running,)).where() == "n1"


# --- preferences


IGNORING = {"annotations": {"dovetail.dev/preference-policy": "Ignore"}}


@pytest.mark.parametrize(
    "words",
    [
        {"preferred": [(1, [(ZONE, "In", C)])]},
        {"rather_together": [(1, near(ZONE, {"app": "there"}))]},
        {"rather_apart": [(1, near(ZONE))]},
        {"spreads": [spread(soft=True)]},
    ],
    ids=["node", "pod", "anti-affinity", "spread"],
)
def test_ignored_preferences_are_as_if_absent(words: dict[str, Any]) -> None:
    standing = {
        "nodes": (node("n1", C, allocatable={"cpu": "10m", "memory": "1Mi", "pods": "0"}),),
        "bound": (pod("there", node="n1", labels={"app": "there"}),),
    }
    waiting = pods(2, cpu="100m", **words)
    bare = pods(2, cpu="100m")
    ignoring = pool(metadata=IGNORING)
    assert ignoring.preference_policy == PreferencePolicy.IGNORE
    found = planned(*waiting, pools=(ignoring,), market=PLAIN, **standing)
    wanted = planned(*bare, pools=(ignoring,), market=PLAIN, **standing)
    assert found.plan.nodes[0].options == wanted.plan.nodes[0].options
    assert len(found.new) == len(wanted.new)
    respected = planned(*waiting, pools=(pool(),), market=PLAIN, **standing)
    assert (respected.plan.nodes[0].options, len(respected.new)) != (
        wanted.plan.nodes[0].options,
        len(wanted.new),
    )


def test_preferences_are_dropped_in_order_and_avoided_nodes_taken_last() -> None:
    avoided = pool("avoided", (ZONE, "In", A), taints=[taint("old", "PreferNoSchedule")], weight=9)
    plain = pool("plain", (ZONE, "In", B))
    wishes = {"preferred": [(1, [(ZONE, "In", A)])]}
    assert one(wishes, pools=(avoided, plain)).by() == "plain"
    assert one(wishes, pools=(avoided,)).by() == "avoided"
    impossible = {
        "required": [[(ZONE, "In", "nowhere")], [(ZONE, "In", B)]],
        "preferred": [(10, [(ZONE, "In", "nowhere")])],
        "rather_together": [(5, near(ZONE, {"app": "none"}))],
        "spreads": [spread(soft=True)],
    }
    assert one(impossible).values(ZONE) == {B}


# --- pods that are on nodes that go


def leaving(*bound: Any, **more: Any) -> Any:
    return planned(nodes=(node("n1", deleting=True),), bound=bound, **more)
