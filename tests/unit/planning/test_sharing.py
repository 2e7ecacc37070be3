"""Pods that share a volume of one node: together, and one attachment for all of them."""

from typing import Any

from shared.manifests.volumes.claims import decode_claim
from shared.manifests.volumes.node_demands import VolumeLookup
from shared.manifests.volumes.pod_demands import with_volume_demands
from shared.manifests.volumes.storage_objects import decode_storage_class
from shared.model import labels as keys
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.volumes import EBS_DRIVER, attachable
from shared.model.resources import Resources
from shared.planning.decide import decide
from tests import builders as make
from tests.builders import pod, pods, snapshot
from tests.unit.manifests.volumes.storage_documents import claim, storage_class
from tests.unit.planning.asking import DB, QUICK, in_zone, there, together, why

EBS = attachable(EBS_DRIVER)
LARGE = make.instance_type("m5.xlarge", cpu=4000, memory=16 * make.GIB, extra={EBS: 1})


def sharing(*waiting: Pod, standing: tuple[Pod, ...] = ()) -> tuple[Pod, ...]:
    """Return the pods, all with a claim `data` of one node."""
    facts = VolumeLookup(
        [decode_claim({**claim(spec={"storageClassName": "gp3"}), "metadata": CLAIM})],
        (),
        [decode_storage_class(storage_class())],
        complete=True,
    )
    found, marked = with_volume_demands(facts, waiting, standing, {EBS_DRIVER})
    return (*found, *marked)


CLAIM = {"namespace": "default", "name": "data"}


def of_claim(name: str, **more: Any) -> Pod:
    return pod(name, claims=("data",), **more)


def room(name: str, volumes: int, **more: Any) -> Any:
    allocatable = Resources.from_mapping(
        {"cpu": 1900, "memory": 7 * make.GIB, "pods": 29, EBS: volumes}
    )
    return in_zone(make.ZONES[0], name, allocatable=allocatable, **more)


def test_all_of_them_take_one_attachment_of_a_new_node() -> None:
    found = sharing(of_claim("a", cpu=500), of_claim("b", cpu=700), of_claim("c", cpu=600))
    plan = decide(snapshot(*found, instance_types=(LARGE,)), QUICK)
    assert together(plan) == [["a", "b", "c"]]
    assert plan.nodes[0].requests[EBS] == 1


def test_one_that_finds_no_place_takes_no_attachment_for_the_others() -> None:
    lost, other = sharing(of_claim("a", cpu=90_000), of_claim("b"))
    alone = pod("c", cpu=300, extra={EBS: 1})
    plan = decide(snapshot(lost, other, alone, instance_types=(LARGE,)), QUICK)
    assert set(why(plan)) == {"a"}
    assert together(plan) == [["b"], ["c"]]


def test_without_an_attachment_left_a_room_takes_none_of_them() -> None:
    found = sharing(of_claim("a"), of_claim("b"))
    world = snapshot(*found, nodes=(room("n0", 0), room("n1", 1)), instance_types=())
    assert there(decide(world, QUICK)) == {"a": "n1", "b": "n1"}


def test_a_pod_that_others_make_way_for_has_attached_nothing_so_far() -> None:
    guest, other = sharing(of_claim("guest", nominated_node="n0"), of_claim("other"))
    for volumes, places in ((1, {}), (2, {"other": "n0"})):
        world = snapshot(guest, other, nodes=(room("n0", volumes),), instance_types=())
        assert there(decide(world, QUICK)) == places


def test_a_running_pod_has_attached_it_already() -> None:
    first, second, stands = sharing(
        of_claim("a"), of_claim("b"), standing=(of_claim("z", node_name="n1"),)
    )
    nodes = (room("n0", 5), room("n1", 0))
    plan = decide(snapshot(first, second, nodes=nodes, bound=(stands,)), QUICK)
    assert there(plan) == {"a": "n1", "b": "n1"}


def test_a_promised_pod_will_attach_it() -> None:
    promised, waits = sharing(of_claim("a"), of_claim("b"))
    (other,) = pods(1, "x", extra={EBS: 1})
    slot = make.slot(pods=(make.ref(promised),), allocatable=room("n", 1).allocatable)
    plan = decide(snapshot(promised, waits, other, slots=(slot,), instance_types=()), QUICK)
    assert there(plan) == {"b": slot.name}
    assert set(why(plan)) == {"x000"}


def test_pod_affinity_of_their_own_stays_a_rule_of_its_own() -> None:
    near = (make.affinity(keys.ZONE, selector=DB),)
    db = pod("db", node_name="n1", labels={"app": "db"})
    first, second = sharing(of_claim("a", affinity=near), of_claim("b"))
    nodes = (in_zone(make.ZONES[2], "n1", unschedulable=True),)
    plan = decide(snapshot(first, second, nodes=nodes, bound=(db,), instance_types=(LARGE,)), QUICK)
    assert together(plan) == [["a", "b"]]
    assert plan.nodes[0].options[0].offering.zone == make.ZONES[2]


def test_too_many_volumes_are_said_to_be_too_many() -> None:
    found = sharing(of_claim("a", extra={EBS: 1}), of_claim("b"))
    plan = decide(snapshot(*found, instance_types=(LARGE,)), QUICK)
    assert f"requests {EBS} 2 (at most 1)" in why(plan)["a"]
    assert "b" not in why(plan)
