from shared.manifests.volumes.attachment_limits import (
    AttachmentLimits,
    claims_of,
    limited_drivers,
    split_pods,
    volumes_held_by,
    with_attachable,
)
from shared.manifests.volumes.claims import decode_claim
from shared.manifests.volumes.node_demands import VolumeLookup
from shared.manifests.volumes.storage_objects import decode_volume
from shared.model import labels as keys
from shared.model.kubernetes.volumes import EBS_DRIVER, CsiNodeLimits, attachable
from shared.model.provisioner import NodeTemplate
from shared.model.resources import Resources
from shared.model.values import replace
from tests import builders as make
from tests.unit.manifests.volumes.storage_documents import claim, volume

EBS = attachable(EBS_DRIVER)
OTHER = "disks.example.com"
BOTH = frozenset({EBS_DRIVER, OTHER})
LIMITS = (
    CsiNodeLimits(node_name="n1", counts={EBS_DRIVER: 10, OTHER: 5}),
    CsiNodeLimits(node_name="n2", counts={OTHER: 3}),
)
HELD = [("n1", EBS_DRIVER, "a"), ("n1", EBS_DRIVER, "a"), ("n1", EBS_DRIVER, "b")]
TYPES = [replace(make.instance_type("m5.large"), volume_limit=7)]
ALONE = make.snapshot(nodes=(), instance_types=TYPES)
ROOM = AttachmentLimits.of(BOTH, LIMITS, HELD, ALONE)


def amounts(resources: Resources) -> tuple[int, int]:
    return resources[EBS], resources[attachable(OTHER)]


def test_only_drivers_with_a_limit_somewhere_are_counted() -> None:
    assert limited_drivers([EBS_DRIVER, OTHER, "efs.example.com"], LIMITS) == BOTH
    assert limited_drivers([EBS_DRIVER, OTHER], []) == {EBS_DRIVER}
    assert limited_drivers([], LIMITS) == frozenset()


def test_a_node_has_what_its_driver_says_less_what_it_holds() -> None:
    found = ROOM.on_node(make.node("n1"))
    assert amounts(found.allocatable) == (8, 5)
    assert found.allocatable["cpu"] == make.node().allocatable["cpu"]
    full = AttachmentLimits.of(BOTH, LIMITS, [("n1", OTHER, str(n)) for n in range(9)], ALONE)
    assert amounts(full.on_node(make.node("n1")).allocatable) == (10, 0)


def test_a_driver_that_has_not_reported_allows_what_a_new_machine_could() -> None:
    assert amounts(ROOM.on_node(make.node("n2")).allocatable) == (7, 3)
    strange = make.node("n3", labels={keys.INSTANCE_TYPE: "x9.large"})
    assert amounts(ROOM.on_node(strange).allocatable) == (1_000_000, 3)
    nobody = AttachmentLimits.of(BOTH, (), (), ALONE)
    assert amounts(nobody.on_node(make.node("n1")).allocatable) == (7, 1_000_000)


def test_a_node_whose_kubelet_has_not_reported_is_left_to_its_launch() -> None:
    silent = make.node(allocatable=Resources())
    assert ROOM.on_node(silent) is silent


def test_machines_to_come_have_what_their_type_allows() -> None:
    snapshot = make.snapshot(nodes=(make.node("n1"),), slots=(make.slot(),), instance_types=TYPES)
    found = with_attachable(snapshot, ROOM)
    assert amounts(found.instance_types[0].allocatable) == (7, 3)
    assert amounts(found.slots[0].allocatable) == (7, 3)
    assert amounts(found.nodes[0].allocatable) == (8, 5)


def test_machines_of_a_type_that_has_nodes_have_the_least_that_these_say() -> None:
    said = [
        CsiNodeLimits(node_name="n1", counts={EBS_DRIVER: 5, OTHER: 9}),
        CsiNodeLimits(node_name="n2", counts={EBS_DRIVER: 4, OTHER: 8}),
        CsiNodeLimits(node_name="n3", counts={EBS_DRIVER: 3, OTHER: 2}),
    ]
    rocket = make.provisioner(template=NodeTemplate(ami_family="Bottlerocket"))
    small = {**make.node().labels, keys.INSTANCE_TYPE: "m5.small"}
    snapshot = make.snapshot(
        nodes=(make.node("n1"), make.node("n2"), make.node("n3", labels=small)),
        slots=(make.slot(),),
        instance_types=(*TYPES, replace(make.instance_type("c5.large"), volume_limit=6)),
        provisioners=(rocket,),
    )
    found = with_attachable(snapshot, AttachmentLimits.of(BOTH, said, (), snapshot))
    of_type = {kind.name: amounts(kind.allocatable) for kind in found.instance_types}
    # The second disk of the image is taken off once more where the type is fitted.
    assert of_type == {"m5.large": (5, 8), "c5.large": (6, 2)}
    assert amounts(found.slots[0].allocatable) == (4, 8)


def test_volumes_of_running_pods_are_known_by_their_claims() -> None:
    volumes = VolumeLookup(
        [decode_claim(claim(spec={"volumeName": "pv"}))],
        [decode_volume(volume("pv"))],
        (),
        complete=True,
    )
    standing = replace(make.pod(claims=("data", "gone"), node_name="n1"), namespace="shop")
    assert volumes_held_by([standing], volumes) == (("n1", EBS_DRIVER, "pv"), ("n1", "", ""))
    assert claims_of([standing]) == {"shop/data", "shop/gone"}


def test_pods_that_are_deleted_release_their_volumes() -> None:
    nodes = [
        make.node("n1"),
        make.node("cordoned", unschedulable=True),
        make.node("going", deletion_at=make.NOW),
    ]
    staying = make.pod("a", node_name="n1")
    leaving = [make.pod(name, node_name=name) for name in ("cordoned", "going")]
    ending = make.pod("b", node_name="n1", deletion_at=make.NOW)
    assert split_pods([staying, *leaving, ending], nodes) == ((staying,), (*leaving, ending))
