"""`dovetail why`: every state of a pod and of a node has an answer that says what it waits for."""

import json
from datetime import timedelta
from typing import Any

import pytest

from functions.cli.doctor.why import Answer, Why
from functions.cli.doctor.why_command import mount_why
from functions.cli.doctor.why_group import WhyGroup
from shared.model import labels as keys
from shared.model.brakes import Brakes
from shared.model.ec2.launches import Trial
from shared.model.errors import NotFoundError, UnauthorizedError
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import ControllerRef, Pod
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.values import replace
from shared.nodes.brakes.runaway import save_failure, subjects_of
from shared.planning.offerings.picks import MOST_PICKS
from tests.builders import (
    NOW,
    OTHER_SHAPE,
    needs,
    node,
    node_of,
    pod,
    provisioner,
    ref,
    scheduling,
    slot,
)
from tests.unit.cli.running import run_mounted
from tests.unit.nodes.launch.launches import apart, open_intent, two_nodes
from tests.unit.worlds import MINUTE, NAME, SECOND, World


def of_pod(world: World, name: str = "p000") -> Answer:
    return Why(world.ports).pod("default", name)


def of_node(world: World, name: str = "n1") -> Answer:
    return Why(world.ports).node(name)


# --- pods


def test_a_pod_on_a_machine_under_way_says_which_and_what_that_waits_for() -> None:
    world = World(provisioner(), *apart(1))
    world.provision()
    world.cluster.add(pod("late", cpu=100, memory=64 * 2**20))
    world.provision()
    world.advance(40 * SECOND)
    node_name = world.node.name
    answer = of_pod(world, "late")
    assert (answer.subject, answer.state) == ("pod/default/late", "is pending for 40 s")
    nominated, launched = answer.history
    assert nominated == f"it is nominated to node {node_name}"
    assert launched.startswith(f"it is nominated to instance {world.node.instance_id} (m5.large, ")
    assert launched.endswith("/h), launched 40 s ago")
    assert answer.waits_for == ("the kubelet to be Ready",)
    (look,) = answer.helps
    assert "'Unable to register node'" in look
    assert look.endswith(world.node.instance_id)
    assert [event.reason for event in answer.events] == ["Nominated"]


def test_a_pod_that_was_bound_early_says_what_its_node_waits_for_and_why_it_is_there() -> None:
    world = World(provisioner(), *apart(1))
    world.provision()
    answer = of_pod(world)
    assert answer.state == f"is Pending on node {world.node.name}"
    assert answer.waits_for == ("the kubelet to be Ready",)
    assert answer.history[0].startswith("decision decisions/test/2026-01-01/plan-1.json.gz:")
    assert any("goes to new node 1 of Provisioner default" in line for line in answer.history)


def test_a_pod_on_a_node_that_runs_waits_for_nothing() -> None:
    joined = node(labels={**node().labels, keys.INITIALIZED: "true"})
    world = World(provisioner(), joined, pod(node_name="n1"), pod("lost", node_name="gone"))
    answer = of_pod(world, "a")
    assert (answer.state, answer.waits_for) == ("is Running on node n1", ())
    assert answer.history == ("it was bound by kube-scheduler, or no decision about it is kept",)
    assert of_pod(world, "lost").waits_for == ("its deletion: the Node does not exist",)


def test_a_pod_whose_machine_has_no_node_yet_says_so() -> None:
    world = World(provisioner(), pod())
    promise = slot(pods=(ref(pod()),), launched_at=NOW - timedelta(hours=2, minutes=5))
    world.ledger.slot_values[NAME, promise.name] = promise
    answer = of_pod(world, "a")
    assert answer.history[0].endswith("launched 2 h 5 min ago")
    assert answer.waits_for[0].startswith("its Node to be made")


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"phase": "Succeeded"}, "has ended: Succeeded"),
        ({"deletion_at": NOW}, "is being deleted"),
        ({"gated": True}, "has scheduling gates"),
        ({"nominated_node": "n7"}, "is nominated to node n7: kube-scheduler makes room for it"),
        ({"owner": ControllerRef(kind="DaemonSet", name="d", uid="d")}, "belongs to a DaemonSet"),
        ({"unschedulable": False}, "is not marked Unschedulable by kube-scheduler"),
        (
            {"scheduling": scheduling(scheduler_name="fargate-scheduler")},
            "has schedulerName fargate-scheduler",
        ),
    ],
)
def test_a_pod_that_no_node_is_launched_for_says_why(changes: dict[str, Any], state: str) -> None:
    answer = of_pod(World(provisioner(), pod(**changes)), "a")
    assert answer.state.startswith(state)
    assert answer.waits_for == ()


def test_a_pod_that_fits_nothing_gets_the_reasons_of_now() -> None:
    answer = of_pod(World(provisioner(), pod(cpu=10**6)), "a")
    assert answer.state == "is pending for 0 s"
    assert any("no instance type is large enough" in line for line in answer.outlook)
    assert answer.waits_for == ("a change: it fits no node that could be launched",)


def test_a_pod_that_is_set_aside_waits_for_a_later_plan() -> None:
    waiting = [
        pod(f"p{number:02}", node_selector=needs("team", "In", f"t{number:02}"))
        for number in range(MOST_PICKS + 1)
    ]
    world = World(provisioner(also=needs("team", "Exists")), *waiting)
    last = of_pod(world, f"p{MOST_PICKS}")
    assert "has no place in this plan:" in last.outlook
    assert last.waits_for == (
        "a later plan: planning for it exceeds the work that one plan may do",
    )


def test_a_pod_that_nothing_is_planned_for_waits_for_the_next_plan() -> None:
    answer = of_pod(two_nodes())
    assert any("goes to new node" in line for line in answer.outlook)
    assert answer.waits_for == ("the next plan, which is made within a minute",)
    assert answer.helps == ("dovetail doctor --cluster test",)


def test_a_pod_of_an_unfinished_launch_says_so() -> None:
    world = two_nodes()
    open_intent(world)
    assert of_pod(world).waits_for == ("an unfinished launch that it is part of",)


def test_a_pod_of_a_paused_cluster_says_how_to_release_it() -> None:
    world = two_nodes()
    world.ports = replace(world.ports, brakes=Brakes(paused=True))
    answer = of_pod(world)
    assert answer.waits_for[0].startswith("cluster test is paused by SSM parameter")
    assert answer.helps == ("aws ssm get-parameter --name /dovetail/clusters/test/brakes",)


def held_world() -> World:
    world = World(provisioner(), *apart(1))
    subjects = frozenset(subjects_of(apart(1)[0]))
    for plan in ("one", "two"):
        save_failure(world.ledger, NAME, Trial(plan_id=plan, launched_at=NOW, subjects=subjects))
    return world


def test_a_pod_that_a_brake_holds_says_until_when() -> None:
    answer = of_pod(held_world())
    assert answer.waits_for[0].startswith("01:00 UTC: nodes of 2 launches of the last hour never")
    assert any("'Unable to register node'" in line for line in answer.helps)


def test_a_decision_of_the_day_before_is_found_and_one_that_is_lost_is_left_out() -> None:
    world = World(provisioner(), *apart(1))
    world.provision()
    (key,) = (document for document in world.decisions.documents if document.endswith(".json.gz"))
    made = world.node
    world.cluster.add(replace(made, created_at=NOW + timedelta(days=1), resource_version=""))
    assert of_pod(world).history[0] == f"decision {key}:"
    del world.decisions.documents[key]
    assert of_pod(world).history[0].startswith("it was bound by kube-scheduler")


# --- nodes


def test_starting_node_shows_its_launch_and_what_it_waits_for() -> None:
    world = World(provisioner(), *apart(1))
    world.provision()
    world.advance(3 * MINUTE)
    answer = of_node(world, world.node.name)
    assert answer.state == "starts"
    (launched,) = answer.history
    assert " was launched 3 min ago by plan plan-1 for Provisioner default" in launched
    assert answer.waits_for == ("the kubelet to be Ready",)
    assert [event.reason for event in answer.events] == ["Launched"]


def test_a_ready_node_says_which_taint_or_which_device_plugin_it_waits_for() -> None:
    cni = Taint(key="cni/starting", effect=Effect.NO_SCHEDULE)
    world = World(provisioner(startup_taints=(cni,)), node(taints=(cni,)))
    assert of_node(world).waits_for == ("startup taint cni/starting to go",)
    wants = pod(extra={"nvidia.com/gpu": 1})
    promise = slot(instance_id="i-n1", node_name="n1", pods=(ref(wants), ref(pod("gone"))))
    world = World(provisioner(), node(), wants)
    world.ledger.slot_values[NAME, promise.name] = promise
    answer = of_node(world)
    assert answer.waits_for == ("resource nvidia.com/gpu to be shown",)
    assert answer.helps[0].startswith("no DaemonSet looks like a device plugin for nvidia.com/gpu")
    assert of_node(World(provisioner(), node())).waits_for[0].startswith("the bind function")


def test_a_node_that_joined_and_is_not_ready_says_so() -> None:
    joined = node(ready=False, labels={**node().labels, keys.INITIALIZED: "true"})
    answer = of_node(World(provisioner(), joined))
    assert (answer.state, answer.waits_for) == ("is NotReady", ("its kubelet to be Ready again",))
    assert answer.outlook[-1].startswith("unless it comes back, it stays")


def running(**annotations: str) -> Node:
    labels = {**node().labels, keys.INITIALIZED: "true"}
    return node(labels=labels, annotations=annotations)


def test_a_node_that_runs_says_what_is_to_become_of_it() -> None:
    empty = running(
        **{
            keys.EMPTINESS_TIMESTAMP: NOW.isoformat(),
            keys.DISRUPTION_BLOCKED: "drift since then: pod default/a",
            keys.REPLACES: "old",
            keys.REBALANCE_RECOMMENDED: "2026-01-01T00:00:00+00:00",
        }
    )
    owner = provisioner(ttl_after_empty=30 * SECOND, ttl_until_expired=timedelta(days=30))
    answer = of_node(World(owner, empty))
    assert answer.state == "takes pods, and has 0 pods"
    assert answer.outlook == (
        "is empty since 00:00:00 UTC, and is removed at 00:00:30 UTC unless a pod comes",
        "is kept, though it should go: drift since then: pod default/a",
        "replaces old, and is kept until those are gone",
        "EC2 expects to interrupt it, since 2026-01-01T00:00:00+00:00",
        "expires at 2026-01-31 00:00 UTC",
    )
    changing = running(**{keys.CHANGE_SCHEDULED: "2026-01-18T02:00:00+00:00 AWS_EC2_X_SCHEDULED"})
    text = of_node(World(provisioner(), changing)).outlook[0]
    assert text == "AWS_EC2_X_SCHEDULED is scheduled for 2026-01-18 02:00 UTC"
    at_once = of_node(World(provisioner(ttl_after_empty=0 * SECOND), empty)).outlook[0]
    assert at_once.endswith(", and is removed at 00:00:20 UTC unless a pod comes")
    assert of_node(World(provisioner(), empty)).outlook[0] == "is empty since 00:00:00 UTC"
    assert of_node(World(provisioner(), running())).outlook == ()
    cordoned = replace(empty, unschedulable=True)
    answer = of_node(World(cordoned, pod(node_name="n1")))
    assert answer.state == "is cordoned, and has 1 pod"
    assert answer.outlook[-1] == "its Provisioner default is gone: nothing removes it by choice"
    ageless = replace(running(), created_at=None)
    launched = of_node(World(owner, ageless)).history[0]
    assert launched.endswith("was launched by plan n1 for Provisioner default")


@pytest.mark.parametrize(
    ("annotations", "pods", "waits", "helps"),
    [
        ({}, (), "instance i-n1 to be terminated", 0),
        ({}, (pod(node_name="n1"),), "1 pod to leave", 0),
        (
            {keys.DRAIN_BLOCKED: "since 10:00 by default/a (PodDisruptionBudget web)"},
            (pod(node_name="n1"),),
            "its drain, which is held since 10:00 by default/a (PodDisruptionBudget web)",
            1,
        ),
    ],
)
def test_deleting_node_shows_what_blocks_it(
    annotations: dict[str, str], pods: tuple[Pod, ...], waits: str, helps: int
) -> None:
    written = {keys.REMOVAL_REASON: "emptiness", **annotations}
    world = World(provisioner(), node(deletion_at=NOW, annotations=written), *pods)
    answer = of_node(world)
    assert answer.state == "is cordoned, drained and terminated: emptiness"
    assert (answer.waits_for, len(answer.helps)) == ((waits,), helps)


def test_a_drain_with_a_deadline_says_it() -> None:
    written = {keys.DRAIN_DEADLINE: "2026-01-01T00:01:30+00:00"}
    world = World(provisioner(), node(deletion_at=NOW, annotations=written))
    assert of_node(world).waits_for[-1].startswith("at the latest 2026-01-01T00:01:30+00:00")


def test_a_node_of_others_is_left_alone() -> None:
    answer = of_node(World(node(finalizers=())))
    assert answer.state.startswith("was not launched by Dovetail")


def test_a_node_that_runs_says_why_it_is_not_consolidated() -> None:
    held = pod("a", cpu=1500, node_name="n1", annotations={keys.DO_NOT_DISRUPT: "true"})
    world = World(provisioner(consolidation=True), node_of("n1", "m5.large"), held)
    world.advance(60 * MINUTE)
    world.provision(look=True)
    said = f"is not consolidated: pod default/a has the annotation {keys.DO_NOT_DISRUPT}"
    assert said in of_node(world).outlook
    off = World(provisioner(), node_of("n1", "m5.large"), held)
    assert "is not consolidated: Provisioner default does not enable consolidation" in (
        of_node(off).outlook
    )


def test_deleted_node_is_described_by_its_events() -> None:
    world = World(provisioner(), *apart(1))
    world.provision()
    name = world.node.name
    del world.cluster.node_values[name]
    answer = of_node(world, name)
    assert answer.state == "the Node is deleted; its Events say why"
    assert [event.reason for event in answer.events] == ["Launched"]


@pytest.mark.parametrize("subject", ["pod/shop/web", "node/n9"])
def test_what_does_not_exist_is_an_error(subject: str) -> None:
    why = Why(World(provisioner()).ports)
    with pytest.raises(NotFoundError, match=f"{subject}: no such"):
        why.node("n9") if subject == "node/n9" else why.pod("shop", "web")


def test_asking_why_changes_nothing() -> None:
    world = held_world()
    before = len(world.cluster.calls), len(world.ledger.calls), dict(world.decisions.documents)
    of_pod(world)
    assert before == (
        len(world.cluster.calls),
        len(world.ledger.calls),
        dict(world.decisions.documents),
    )


# --- the command


class Runtime:
    """Clusters of fakes, as the command sees them."""

    def __init__(self, world: World, *clusters: str) -> None:
        self._world = world
        self._clusters = clusters

    def clusters(self) -> tuple[str, ...]:
        return self._clusters

    def why(self, cluster: str) -> tuple[Why, WhyGroup]:
        assert cluster == NAME
        why = Why(self._world.ports)
        return why, WhyGroup(self._world.ports, why)


def run(world: World, *words: str, clusters: tuple[str, ...] = (NAME,)) -> int:
    runtime: Any = Runtime(world, *clusters)
    return run_mounted(lambda commands: mount_why(commands, lambda: runtime), "why", *words)


def test_the_command_prints_what_happened_what_it_waits_for_and_what_helps(
    capsys: pytest.CaptureFixture[str],
) -> None:
    world = World(provisioner(), *apart(1))
    world.provision()
    name = world.node.name
    assert run(world, f"node/{name}") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"node/{name} starts"
    titles = [line for line in lines if not line.startswith(" ")][1:]
    assert titles == ["what happened:", "waits for:", "what would help:", "events (UTC):"]
    assert lines[-1].startswith("  00:00:00  dovetail  Launched  launched i-")
    assert run(world, "pod/p000", "--cluster", NAME, "--output", "json", clusters=()) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["subject"] == "pod/default/p000"
    assert document["waits_for"] == ["the kubelet to be Ready"]
    assert document["events"][0]["at"] == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("words", "clusters", "expected"),
    [
        (("deploymet/web",), (NAME,), "deploymet/web: write deployment; expected pod/NAMES"),
        (("nodpool/web",), (NAME,), "nodpool/web: write nodepool; expected pod/NAMESPACE/NAME"),
        (("deployment/web",), (NAME,), "deployment/default/web: has no pods in cluster test; kube"),
        (
            ("nodepool/a",),
            (NAME,),
            "nodepool/a: no such NodePool in cluster test; kubectl get node",
        ),
        (("po/shop/a",), (NAME,), "pod/shop/a: no such pod in cluster test"),
        (("Nodes/a",), (NAME,), "node/a: no such Node in cluster test"),
        (("deployments.apps/web",), (NAME,), "deployment/default/web: has no pods"),
        (("sts/web",), (NAME,), "statefulset/default/web: has no pods"),
        (("node/a/b",), (NAME,), "node/a/b: expected"),
        (("pod/",), (NAME,), "pod/: expected"),
        (("pod/a/b/c",), (NAME,), "pod/a/b/c: expected"),
        (("pod/a",), ("one", "two"), "attached clusters: one, two; name one with --cluster"),
        (("pod/shop/a",), (NAME,), "pod/shop/a: no such pod in cluster test; kubectl -n shop get"),
    ],
)
def test_what_cannot_be_answered_is_reported_in_one_line(
    words: tuple[str, ...],
    clusters: tuple[str, ...],
    expected: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(World(provisioner()), *words, clusters=clusters) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"dovetail why: {expected}")
    assert told.err.count("\n") == 1


@pytest.mark.parametrize("clusters", [None, ()], ids=["no credentials", "none attached"])
def test_without_credentials_or_attachment_it_names_the_way_that_needs_neither(
    clusters: tuple[str, ...] | None, capsys: pytest.CaptureFixture[str]
) -> None:
    def made() -> Any:
        if clusters is None:
            raise UnauthorizedError("log in, or set AWS_PROFILE")
        return Runtime(World(), *clusters)

    assert run_mounted(lambda commands: mount_why(commands, made), "why", "pod/a") == 2
    told = capsys.readouterr().err
    assert told.endswith("; or name a cluster without Dovetail with --context\n")
    assert told.count("\n") == 1


def test_an_event_without_a_time_and_one_seen_often_are_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    world = World(provisioner(), pod(cpu=10**6))
    for _ in range(2):
        world.provision()
        world.advance(11 * MINUTE)
    assert run(world, "pod/a") == 0
    assert "FailedProvisioning (x2)" in capsys.readouterr().out


def test_a_node_that_is_outdated_says_how_and_why_it_stands() -> None:
    drifted = running(**OTHER_SHAPE)
    world = World(provisioner(), drifted)
    how = "is outdated: provisioner default has changed; "
    left = of_node(world).outlook[-1]
    assert left == f"{how}dovetail.dev/drift of provisioner default is not on: the node stays"
    acting = Why(world.ports, drift=True).node("n1").outlook[-1]
    assert acting.startswith(f"{how}it is replaced as soon as budgets, pods and other changes")
