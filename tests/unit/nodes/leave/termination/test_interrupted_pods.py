"""Pods of machines that AWS takes are planned for before they are asked to leave."""

from shared.model import labels as keys
from shared.model.messages.notices import Notice, NoticeKind
from shared.model.values import replace
from shared.nodes.leave.interruption import Interruption
from tests.builders import NOW, node, pod, pods, provisioner
from tests.unit.worlds import NAME, World

NOTICE = Notice(kind=NoticeKind.SPOT_INTERRUPTION, instance_ids=("i-n1",))


def warned(*more: object) -> World:
    world = World(provisioner(), node(), *pods(2, node_name="n1"), *more)
    Interruption(world.ports).run(NOTICE, "i-n1")
    return world


def test_a_node_is_launched_for_pods_that_still_run() -> None:
    world = warned()
    report = world.provision(look=True)
    assert (report.pods_planned, len(world.alive)) == (2, 1)


def test_it_is_launched_once_however_often_it_is_looked() -> None:
    world = warned()
    for _ in range(4):
        world.provision(look=True)
    assert len(world.alive) == 1


def test_their_successors_find_the_room_that_was_bought_for_them() -> None:
    world = warned()
    world.provision(look=True)
    world.cluster.pods.clear()
    world.cluster.add(*pods(2, prefix="successor"))
    report = world.provision()
    assert (report.pods_placed, len(world.alive)) == (2, 1)


def draining(waiting: int, standing: int) -> World:
    """A node that is being deleted by hand, from which some pods were evicted already."""
    return World(
        provisioner(),
        node(deletion_at=NOW, unschedulable=True),
        *pods(standing, node_name="n1"),
        *pods(waiting, prefix="evicted"),
    )


def test_under_a_budget_one_machine_is_bought_for_all_pods_of_a_drain() -> None:
    world = draining(waiting=2, standing=4)
    assert world.provision().pods_planned == 6
    (machine,) = world.alive
    for number in range(4):
        key, moved = next(
            (k, other_pod) for k, other_pod in world.cluster.pods.items() if other_pod.node_name
        )
        del world.cluster.pods[key]
        world.cluster.add(replace(moved, name=f"next-{number}", uid="", node_name=""))
        world.provision()
    assert world.alive == [machine]


def test_a_drain_from_which_no_pod_was_evicted_buys_nothing() -> None:
    world = draining(waiting=0, standing=4)
    world.provision(look=True)
    assert world.alive == []


def test_a_pod_that_is_not_to_be_evicted_is_not_planned_for_elsewhere() -> None:
    world = draining(waiting=1, standing=0)
    world.cluster.add(pod("held", node_name="n1", annotations={keys.DO_NOT_EVICT: "true"}))
    assert world.provision().pods_planned == 1


def test_where_others_have_room_nothing_is_bought() -> None:
    world = warned(node("n2"))
    assert world.provision(look=True).pods_placed == 2
    assert world.alive == []


def test_running_pod_that_fits_nowhere_is_not_reported_as_waiting() -> None:
    world = World(provisioner(), node(), pod("a", node_name="n1", extra={"example.com/rare": 1}))
    Interruption(world.ports).run(NOTICE, "i-n1")
    report = world.provision(look=True)
    assert report.pods_unschedulable == 1
    assert [
        kube_event for kube_event in world.cluster.kube_events if kube_event.kind == "Pod"
    ] == []


def test_pods_that_are_evicted_meanwhile_are_counted_once() -> None:
    world = warned()
    world.provision(look=True)
    for key, other_pod in world.cluster.pods.items():
        world.cluster.pods[key] = replace(other_pod, deletion_at=world.clock.now())
    world.cluster.add(*pods(2, prefix="successor"))
    world.provision(look=True)
    assert len(world.alive) == 1
    assert world.outbox.evaluations == [NAME]
