"""Nodes that are there or on their way, as room."""

from typing import Any

from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import ControllerRef, Pod
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.resources import Resources
from shared.model.values import replace
from shared.planning.rules.existing_nodes import counted_nodes, existing_nodes, nominated
from shared.planning.rules.node_constraints import node_constraints_of
from tests import builders as make

CLOUD = Taint(key=keys.CLOUD_UNINITIALIZED_TAINT, effect=Effect.NO_SCHEDULE)
STARTUP = Taint(key="cilium", value="wait", effect=Effect.NO_EXECUTE)
OWN = Taint(key="team", effect=Effect.NO_SCHEDULE)
DAEMON = ControllerRef(kind="DaemonSet", name="logs", uid="d")


def daemon(cpu: int = 100) -> Pod:
    made = make.pod("logs-1", node_name="n1", cpu=cpu, memory=64 * make.MIB, owner=DAEMON)
    return replace(made, namespace="kube-system")


def in_flight(**changes: Any) -> Node:
    return make.node(
        taints=(make.NOT_READY, CLOUD, STARTUP, OWN), ready=None, allocatable=Resources(), **changes
    )


def test_a_ready_node_has_what_its_pods_leave() -> None:
    standing = make.pods(2, node_name="n1", cpu=600, memory=make.GIB)
    (room,) = existing_nodes(make.snapshot(nodes=(make.node(),), bound=standing))
    assert (room.name, room.slot) == ("n1", "")
    assert room.available == Resources.of(cpu=700, memory=5 * make.GIB, pods=27)
    assert room.pods == standing


def test_an_overcommitted_node_has_less_than_nothing() -> None:
    (room,) = existing_nodes(
        make.snapshot(nodes=(make.node(),), bound=make.pods(1, node_name="n1", cpu=5000))
    )
    assert room.available["cpu"] == -3100


def test_nodes_that_take_no_pods_are_no_room() -> None:
    nodes = (
        make.node("cordoned", unschedulable=True),
        make.node("going", deletion_at=make.NOW),
        make.node("broken", ready=False),
        make.node("new", ready=None),
    )
    assert existing_nodes(make.snapshot(nodes=nodes)) == ()


def test_a_node_in_flight_is_taken_at_its_word_and_its_starting_taints_are_ignored() -> None:
    waiting = make.pod("p", cpu=400, memory=make.GIB)
    slot = make.slot(instance_id="i-n1", pods=(make.ref(waiting), make.ref(make.pod("gone"))))
    snapshot = make.snapshot(
        waiting,
        nodes=(in_flight(),),
        slots=(slot,),
        provisioners=(make.provisioner("other"), make.provisioner(startup_taints=(STARTUP,))),
    )
    (room,) = existing_nodes(snapshot)
    assert (room.name, room.slot) == ("n1", slot.name)
    assert room.taints == (OWN,)
    assert room.pods == (waiting,)
    assert room.available["cpu"] == 1500


def test_a_promised_pod_that_is_nominated_to_the_node_too_is_counted_once() -> None:
    waiting = make.pod("p", cpu=400, nominated_node="n1")
    slot = make.slot(instance_id="i-n1", pods=(make.ref(waiting),))
    (room,) = existing_nodes(make.snapshot(waiting, nodes=(in_flight(),), slots=(slot,)))
    assert (room.pods, room.available["cpu"]) == ((waiting,), 1500)


def test_room_is_kept_for_daemons_that_have_not_come_yet() -> None:
    slot = make.slot(instance_id="i-n1")
    node = make.node(taints=(make.NOT_READY, CLOUD), ready=None, allocatable=Resources())
    for bound, left in (((), 1800), ((daemon(),), 1800), ((daemon(300),), 1600)):
        (room,) = existing_nodes(
            make.snapshot(nodes=(node,), slots=(slot,), daemonsets=(make.daemonset(),), bound=bound)
        )
        assert room.available["cpu"] == left


def test_room_and_ports_are_kept_for_daemons_on_nodes_that_are_open_too() -> None:
    port = ("0.0.0.0", "TCP", 9092)
    agent = make.daemonset(host_ports=(port,))
    initialized = {**make.node().labels, keys.INITIALIZED: "true"}
    foreign = {keys.HOSTNAME: "n1"}
    for labels in (initialized, foreign):
        node = make.node(labels=labels)
        (room,) = existing_nodes(make.snapshot(nodes=(node,), daemonsets=(agent,)))
        assert (room.available["cpu"], room.ports) == (1800, (port,))
        (room,) = existing_nodes(
            make.snapshot(nodes=(node,), daemonsets=(agent,), bound=(daemon(250),))
        )
        assert (room.available["cpu"], room.ports) == (1650, ())


def test_daemons_that_wait_for_an_owner_to_open_a_node_take_nothing_where_it_has_none() -> None:
    agent = make.daemonset(node_selector=make.needs(keys.REGISTERED, "In", "true"))
    slot = make.slot(instance_id="i-ours")
    nodes = (make.node("foreign", labels={}), make.node("ours", provider_id="aws:///z/i-ours"))
    found = existing_nodes(make.snapshot(nodes=nodes, slots=(slot,), daemonsets=(agent,)))
    assert {room.name: room.available["cpu"] for room in found} == {"foreign": 1900, "ours": 1800}


def test_daemons_of_another_capacity_type_take_no_port_of_a_node_in_flight() -> None:
    spot = make.needs(keys.CAPACITY_TYPE, "In", "spot")
    agent = make.daemonset(node_selector=spot, host_ports=(("0.0.0.0", "TCP", 9092),))
    slots = (make.slot(instance_id="i-n1"), make.slot(1))
    found = existing_nodes(make.snapshot(nodes=(in_flight(),), slots=slots, daemonsets=(agent,)))
    assert [room.ports for room in found] == [(), ()]


def test_resources_that_show_late_count_as_promised_until_the_node_is_initialized() -> None:
    promised = Resources.from_mapping({"cpu": 1800, "nvidia.com/gpu": 4})
    slot = make.slot(instance_id="i-n1", allocatable=promised)
    starting = make.node(taints=(make.NOT_READY,), allocatable=Resources.of(cpu=1900))
    (room,) = existing_nodes(make.snapshot(nodes=(starting,), slots=(slot,)))
    assert room.available == Resources.from_mapping({"cpu": 1900, "nvidia.com/gpu": 4})
    waiting = make.node(allocatable=Resources.of(cpu=1900))
    (room,) = existing_nodes(make.snapshot(nodes=(waiting,), slots=(slot,)))
    assert room.available["nvidia.com/gpu"] == 4
    labels = {**waiting.labels, keys.INITIALIZED: "true"}
    ready = make.node(allocatable=Resources.of(cpu=1900), labels=labels)
    (room,) = existing_nodes(make.snapshot(nodes=(ready,), slots=(slot,)))
    assert (room.available, room.slot) == (Resources.of(cpu=1900), "")


def test_what_a_kubelet_reports_counts_though_the_estimate_was_larger() -> None:
    estimate = Resources.of(cpu=1900, memory=7 * make.GIB, pods=29)
    slot = make.slot(instance_id="i-n1", allocatable=estimate)
    less = Resources.of(cpu=1850, memory=6 * make.GIB, pods=29)
    node = make.node(taints=(make.NOT_READY,), allocatable=less)
    (room,) = existing_nodes(make.snapshot(nodes=(node,), slots=(slot,)))
    assert room.available == less


def test_a_soft_taint_keeps_no_pod_from_a_room() -> None:
    soft = Taint(key="k", effect=Effect.PREFER_NO_SCHEDULE)
    (room,) = existing_nodes(make.snapshot(nodes=(make.node(taints=(soft,)),)))
    assert room.taints == (soft,)
    assert node_constraints_of(make.scheduling()).accepts(room.labels, room.taints)


def test_a_slot_without_a_node_is_room_with_the_labels_of_its_type() -> None:
    waiting = make.pod("p", cpu=400, memory=make.GIB)
    slot = make.slot(
        pods=(make.ref(waiting),), daemon_requests=Resources.of(cpu=100), provisioner="default"
    )
    owner = make.provisioner(taints=(OWN,))
    (room,) = existing_nodes(make.snapshot(waiting, slots=(slot,), provisioners=(owner,)))
    assert room.available == Resources.of(cpu=1400, memory=6 * make.GIB, pods=28)
    assert (room.name, room.slot, room.taints) == (slot.name, slot.name, (OWN,))
    assert room.labels[keys.ARCH] == "amd64"
    arm = make.scheduling(node_selector=make.needs(keys.ARCH, "NotIn", "amd64"))
    assert not node_constraints_of(arm).accepts(room.labels, room.taints)


def test_a_slot_of_a_provisioner_and_type_that_are_gone_is_still_room() -> None:
    slot = make.slot(provisioner="gone", offering=make.offering("x9.huge"))
    (room,) = existing_nodes(make.snapshot(slots=(slot,)))
    assert room.taints == ()
    assert dict(room.labels) == {**slot.labels, keys.HOSTNAME: slot.name}


def test_promised_pods_are_named_by_uid() -> None:
    one, two = make.pods(2)
    slots = (make.slot(0, pods=(make.ref(one),)), make.slot(1, pods=(make.ref(two),)))
    assert nominated(slots) == {one.uid, two.uid}


def test_a_node_that_may_come_up_in_several_zones_has_all_its_labels_in_each() -> None:
    options = (make.option(zone=make.ZONES[0]), make.option(zone=make.ZONES[1]))
    world = make.snapshot(launching=(make.planned(options=options),))
    (one,) = counted_nodes(world, ())
    assert [had[keys.ZONE] for had in one.possible_labels] == list(make.ZONES[:2])
    for had in one.possible_labels:
        assert had[keys.HOSTNAME] == one.labels[keys.HOSTNAME]
        assert had[keys.PROVISIONER_NAME] == "default"


def test_a_cordon_counts_by_its_taint_as_kube_scheduler_counts_it() -> None:
    (one,) = counted_nodes(make.snapshot(nodes=(make.node(unschedulable=True),)), ())
    assert one.taints == ()


def test_a_shared_volume_that_is_promised_twice_is_attached_once() -> None:
    shared = (("default/data", "attachable-volumes-ebs.csi.aws.com"),)
    first, second = make.pods(2, shared=shared)
    slot = make.slot(pods=(make.ref(first), make.ref(second)))
    (room,) = existing_nodes(make.snapshot(first, second, slots=(slot,)))
    assert room.available["attachable-volumes-ebs.csi.aws.com"] == -1
    assert room.volumes == {"default/data"}
