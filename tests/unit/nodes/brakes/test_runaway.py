"""Machines that never become usable: at most two an hour for the same pods, and an Event."""

import pytest

from infra.local.ec2.instances import SPOT_REASON, USER_REASON
from infra.local.ec2.refusals import Reason
from shared.model import labels as keys
from shared.model.ec2.launches import Slot, Trial
from shared.model.errors import ConflictError, UnavailableError
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import ControllerRef, Pod
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.note import Note
from shared.model.policy import BindingPolicy, LaunchPolicy
from shared.model.resources import Resources
from shared.model.values import replace
from shared.nodes.brakes.runaway import recent_trials, save_failure, subjects_of
from shared.nodes.join.registration import Registration
from tests.builders import needs, node, pod, provisioner
from tests.unit.worlds import MINUTE, NAME, SECOND, World, failing, instead

USELESS = "NodesNeverUsable"
JOB = ControllerRef(kind="Job", name="nightly", uid="uid-nightly")


def checked(world: World, known: Node) -> dict[str, object]:
    """Return what the timer of a node's registration does in its next step."""
    state = {"cluster": NAME, "node": known.name, "uid": known.uid}
    return Registration(world.ports).step(state)


def trials_of(world: World) -> tuple[Trial, ...]:
    return recent_trials(world.ledger, NAME, world.clock.now())


def again(world: World, known: Pod) -> None:
    """Let a controller replace a pod."""
    world.cluster.pods.pop(known.key)
    name = f"{known.name}x"
    fresh = replace(known, name=name, uid=f"uid-{name}", node_name="", resource_version="")
    world.cluster.add(replace(fresh, unschedulable=True, phase="Pending", deletion_at=None))


def agent_taints_every_node(world: World) -> None:
    """Let nodes join, an agent taint them, and the controller replace the pods they lose."""
    for other_node in world.cluster.nodes():
        if other_node.ready is True:
            continue
        joined = world.kubelet_joins(other_node.name)
        world.bind(joined.name)
        broken = Taint(key="broken", effect=Effect.NO_EXECUTE)
        fresh = world.cluster.node_values[other_node.name]
        world.cluster.add(replace(fresh, taints=(*fresh.taints, broken), resource_version=""))
    for known in list(world.cluster.pods.values()):
        if known.node_name:
            again(world, known)


def test_trials_are_kept_for_an_hour() -> None:
    world = World()
    subjects = frozenset({"a" * 12, "b" * 12})
    both = Trial(plan_id="p1", launched_at=world.clock.now(), subjects=subjects)
    rest = replace(both, subjects=frozenset({"b" * 12}), provisioners=frozenset({"x", "y"}))
    for trial in (both, rest):
        save_failure(world.ledger, NAME, trial)
    assert trials_of(world) == (replace(both, provisioners=frozenset({"x", "y"})),)
    assert recent_trials(world.ledger, "other", world.clock.now()) == ()
    world.advance(60 * MINUTE)
    assert trials_of(world) == ()


def test_failures_that_two_timers_of_a_plan_save_at_once_are_both_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    first, second = (
        Trial(plan_id="p1", launched_at=world.clock.now(), subjects=frozenset({letter * 12}))
        for letter in "ab"
    )
    read, meanwhile = world.ledger.note, [second]

    def note(cluster: str, name: str) -> Note:
        found = read(cluster, name)
        if meanwhile:
            save_failure(world.ledger, NAME, meanwhile.pop())
        return found

    monkeypatch.setattr(world.ledger, "note", note)
    save_failure(world.ledger, NAME, first)
    assert trials_of(world) == (replace(first, subjects=first.subjects | second.subjects),)


def test_failure_that_others_always_overtake_is_tried_again_by_its_timer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    monkeypatch.setattr(world.ledger, "change_note", lambda *_: False)
    trial = Trial(plan_id="p1", launched_at=world.clock.now(), subjects=frozenset({"a" * 12}))
    with pytest.raises(ConflictError, match="failures of plan p1 were changed by others"):
        save_failure(world.ledger, NAME, trial)


def test_nodes_that_never_become_usable_are_two_in_an_hour_and_the_pod_says_so() -> None:
    world = World(provisioner(), pod(cpu=1500))
    rejected = 0
    for _ in range(59):
        rejected += world.provision().pods_rejected
        agent_taints_every_node(world)
        world.sweep()
        world.advance(MINUTE)
    assert (len(world.cloud.all_instances), rejected) == (2, 2)
    (text,) = set(world.messages(USELESS))
    assert text.startswith("nodes of 2 launches of the last hour never became usable (look for '")
    assert text.endswith("; none is launched for it before 01:00 UTC")
    usable, reason, said = world.cluster.usable["default"]
    assert (usable, reason) == (False, USELESS)
    assert said.endswith("; none is launched for 1 pod of ReplicaSet default/web before 01:00 UTC")
    world.advance(2 * MINUTE)
    world.provision()
    assert len(world.cloud.all_instances) == 3
    assert world.cluster.usable["default"] == (True, "Usable", "no workload is held")


def test_when_the_held_pods_are_gone_sweep_lets_the_condition_be_taken_back() -> None:
    world = World(provisioner(), pod(cpu=1500))
    for plan in ("one", "two"):
        trial = Trial(
            plan_id=plan,
            launched_at=world.clock.now(),
            subjects=frozenset(subjects_of(pod())),
            provisioners=frozenset({"default"}),
        )
        save_failure(world.ledger, NAME, trial)
    world.provision()
    assert world.cluster.usable["default"][0] is False
    del world.cluster.pods["default/a"]
    world.sweep()
    assert world.outbox.wakes == []
    world.advance(61 * MINUTE)
    world.sweep()
    assert len(world.outbox.wakes) == 1
    world.provision()
    assert world.cluster.usable["default"][0] is True
    world.sweep()
    assert len(world.outbox.wakes) == 1


def test_nodes_that_never_join_are_two_in_an_hour() -> None:
    world = World(provisioner(), pod(cpu=1500))
    for _ in range(59):
        world.provision()
        world.advance(MINUTE)
        for other_node in world.cluster.nodes():
            born = other_node.created_at
            if other_node.deletion_at is None and born and world.clock.now() - born >= 5 * MINUTE:
                checked(world, other_node)
        for other_node in world.cluster.nodes():
            if other_node.deletion_at is not None:
                world.cloud.end(other_node.instance_id)
                del world.cluster.node_values[other_node.name]
        for known in list(world.cluster.pods.values()):
            if known.node_name:
                again(world, known)
    assert len(world.cloud.all_instances) == 2
    assert len(set(world.messages(USELESS))) == 1


def test_a_machine_that_ec2_took_is_no_evidence() -> None:
    world = World(provisioner(), pod(cpu=1500))
    for _ in range(4):
        world.provision()
        one = world.node
        world.cloud.end(one.instance_id)
        world.advance(5 * MINUTE)
        checked(world, one)
        world.cluster.node_values.clear()
        again(world, next(iter(world.cluster.pods.values())))
    assert len(world.cloud.all_instances) == 4


def test_machine_that_joined_during_late_termination_is_no_evidence() -> None:
    world = World(provisioner(), pod(cpu=1500))
    world.provision()
    one = world.node
    slots = world.ledger.slots(NAME)
    world.advance(5 * MINUTE)
    world.cluster.fail_next("change_node", ConflictError("its kubelet has written to it"))
    after = checked(world, one)
    assert after["next"] == "wait"
    assert trials_of(world) == ()
    assert world.ledger.slots(NAME) == slots
    assert world.cluster.called("evict") == []
    world.kubelet_joins(one.name)
    world.bind(one.name)
    assert Registration(world.ports).step(after)["result"] == "joined"
    assert trials_of(world) == ()


def test_machine_that_joins_once_its_node_is_removed_gets_no_pods() -> None:
    world = World(provisioner(), pod(cpu=1500))
    world.cloud.delays.shown = 3 * SECOND
    world.provision()
    world.cloud.delays.shown = 0 * SECOND
    world.policy = LaunchPolicy(binding_policy=BindingPolicy.SCHEDULER)
    world.provision()
    one = world.node
    world.advance(5 * MINUTE)
    drop_slot = world.ledger.drop_slot

    def joins_first(slot: Slot) -> None:
        world.kubelet_joins(one.name)
        world.bind(one.name)
        drop_slot(slot)

    instead(world.ledger, "drop_slot", joins_first)
    assert checked(world, one)["result"] == "never joined"
    # What was recorded of it stays true.
    assert len(trials_of(world)) == 1
    assert world.node.deletion_at is not None
    assert not world.node.is_open


def test_what_did_not_join_is_recorded_by_the_next_step_after_a_crash() -> None:
    world = World(provisioner(), pod(cpu=1500))
    world.provision()
    one = world.node
    world.advance(5 * MINUTE)
    drop_slot = world.ledger.drop_slot
    instead(world.ledger, "drop_slot", failing(UnavailableError("crash")))
    with pytest.raises(UnavailableError):
        checked(world, one)
    assert world.node.deletion_at is not None
    assert len(world.ledger.slots(NAME)) == 1
    instead(world.ledger, "drop_slot", drop_slot)
    assert checked(world, one)["result"] == "never joined"
    assert len(trials_of(world)) == 1
    assert world.ledger.slots(NAME) == ()
    assert checked(world, one)["result"] == "gone"


@pytest.mark.parametrize(("why", "trials"), [(USER_REASON, 1), (SPOT_REASON, 0)])
def test_what_did_not_join_is_recorded_after_a_crash_though_its_drain_was_faster(
    why: Reason, trials: int
) -> None:
    world = World(provisioner(), pod(cpu=1500))
    world.provision()
    one = world.node
    world.advance(5 * MINUTE)
    world.ledger.fail_next("put_note", UnavailableError("crash"))
    with pytest.raises(UnavailableError):
        checked(world, one)
    assert world.node.deletion_at is not None
    world.cloud.ec2.terminate(world.cloud.ec2.instances[one.instance_id], why)
    assert checked(world, one)["result"] == "never joined"
    assert len(trials_of(world)) == trials


def test_pods_that_the_kubelet_rejects_get_two_machines_an_hour() -> None:
    world = World(provisioner(), pod(cpu=1500))
    for _ in range(30):
        world.provision()
        for other_node in world.cluster.nodes():
            if other_node.ready is not True:
                world.kubelet_joins(other_node.name)
                world.bind(other_node.name)
        for known in list(world.cluster.pods.values()):
            if known.node_name and not known.is_terminal:
                again(world, known)
                world.cluster.add(replace(known, phase="Failed", resource_version=""))
        for other_node in world.cluster.nodes():
            # Something else has taken the room, so that the pod does not fit there again.
            less = replace(
                other_node, allocatable=Resources.of(cpu=100, pods=1), resource_version=""
            )
            world.cluster.add(less)
        world.advance(MINUTE)
    assert len(world.cloud.all_instances) == 2


def test_a_workload_may_grow_and_shrink_as_often_as_it_likes() -> None:
    world = World(provisioner())
    for number in range(5):
        world.cluster.add(pod(f"p{number}", cpu=1500))
        world.provision()
        for other_node in world.cluster.nodes():
            world.kubelet_joins(other_node.name)
            world.bind(other_node.name)
        world.cluster.pods.clear()
        world.cluster.node_values.clear()
        world.advance(MINUTE)
    assert len(world.cloud.all_instances) == 5


# --- pods that nothing replaces: bare pods and those of Jobs


def never_joins(world: World, known: Node) -> None:
    """Let a machine's kubelet not join until the machine is terminated as late."""
    world.advance(3 * MINUTE)
    checked(world, known)
    world.cloud.end(known.instance_id)
    del world.cluster.node_values[known.name]


def in_vain(world: World, waiting: Pod) -> bool:
    """Return whether a machine is launched for a pod; it never joins, and the pod is deleted."""
    world.cluster.add(waiting)
    standing = set(world.cluster.node_values)
    world.provision()
    launched = [
        other_node for other_node in world.cluster.nodes() if other_node.name not in standing
    ]
    for known in launched:
        never_joins(world, known)
    world.cluster.pods.pop(waiting.key, None)
    return bool(launched)


@pytest.mark.parametrize("owner", [None, JOB])
def test_fresh_pods_that_nothing_replaces_get_two_useless_machines_an_hour(
    owner: ControllerRef | None,
) -> None:
    world = World(provisioner())
    # A size of its own for each changes nothing.
    fresh = [
        pod(f"p{n}", cpu=1500 + n, owner=owner and replace(owner, uid=f"uid-{n}")) for n in range(8)
    ]
    assert [in_vain(world, other_pod) for other_pod in fresh] == [True, True, *[False] * 6]
    (text,) = set(world.messages(USELESS))
    assert text.startswith("nodes of 2 launches of the last hour never became usable")
    # Another namespace, and pods that may use other nodes, have machines of their own.
    assert in_vain(world, pod("other", namespace="other", cpu=1500, owner=owner))
    arm = needs(keys.CAPACITY_TYPE, "In", "on-demand")
    assert in_vain(world, pod("choosy", cpu=1500, owner=owner, node_selector=arm))


def test_pods_of_a_namespace_that_all_differ_get_ten_useless_machines_an_hour() -> None:
    world = World(provisioner(labels={"team": "a"}))
    choosy = [
        pod(f"p{n}", cpu=1500, owner=None, node_selector=needs("team", "NotIn", f"b{n}"))
        for n in range(14)
    ]
    assert [in_vain(world, other_pod) for other_pod in choosy] == [True] * 10 + [False] * 4


def test_bare_pods_of_which_some_run_on_young_nodes_are_not_held() -> None:
    """Runners of CI and executors by the thousand: a machine that fails is chance, not a loop."""
    world = World(provisioner())
    works = node("works", finalizers=(keys.TERMINATION_FINALIZER,), taints=())
    world.cluster.add(works)
    for number in range(3):
        world.cluster.add(pod(f"busy{number}", cpu=600, owner=None, node_name="works"))
    waiting = [pod(f"p{number}", cpu=1500, owner=None) for number in range(4)]
    assert [in_vain(world, other_pod) for other_pod in waiting] == [True] * 4
    # None of them runs any more, and what failed since then counts again.
    for number in range(3):
        del world.cluster.pods[f"default/busy{number}"]
    del world.cluster.node_values["works"]
    assert [in_vain(world, pod(f"q{n}", cpu=1500, owner=None)) for n in range(4)].count(True) <= 2
