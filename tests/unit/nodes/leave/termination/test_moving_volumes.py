"""Pods that were to move: what their volumes ask of other nodes, and what nodes get back."""

from shared.disruption.simulate import simulate
from shared.model.kubernetes.volumes import (
    EBS_DRIVER,
    RESOLVED,
    CsiNodeLimits,
    VolumeAttachment,
    attachable,
)
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from shared.planning.rules.existing_nodes import existing_nodes
from shared.provisioning.disruption_loop import with_claims
from shared.snapshot.gather import gather
from shared.snapshot.volumes import with_volumes
from tests.builders import node
from tests.unit.manifests.volumes.storage_documents import ZONE, claim, in_zones, volume
from tests.unit.snapshot.test_volumes import claiming, world
from tests.unit.worlds import World

EBS = attachable(EBS_DRIVER)


def bound_claims(*names: str) -> tuple[dict[str, object], ...]:
    return tuple(
        entry
        for name in names
        for entry in (
            claim(name, spec={"volumeName": f"pv-{name}"}),
            volume(f"pv-{name}", in_zones(ZONE)),
        )
    )


def with_two_nodes(made: World) -> World:
    made.cluster.node_values["n2"] = node("n2")
    return made


def test_pods_that_share_a_volume_move_to_a_node_with_room_for_both() -> None:
    sharing = [claiming(name, "data", node_name="n1") for name in ("a", "b")]
    there = with_two_nodes(world(*sharing, raws=bound_claims("data")))
    snapshot = with_claims(there.ports, gather(there.ports, "plan", read_all=True).snapshot)
    plan = simulate(snapshot, ["n1"], PackingSettings())
    assert plan is not None
    assert not plan.nodes
    assert [placement.node for placement in plan.placements] == ["n2"]


def test_what_pods_have_attached_is_taken_off_their_node_once() -> None:
    names = [f"d{n}" for n in range(14)]
    small = [claiming(name, name, node_name="n2", cpu=1, memory=2**20) for name in names]
    mover = claiming("mover", "m", node_name="n1")
    there = with_two_nodes(world(mover, *small, raws=bound_claims(*names, "m")))
    there.cluster.store(
        CsiNodeLimits(node_name="n2", counts={EBS_DRIVER: 25}),
        *(
            VolumeAttachment(node_name="n2", driver=EBS_DRIVER, volume=f"pv-{name}")
            for name in names
        ),
    )
    snapshot = with_claims(there.ports, gather(there.ports, "plan", read_all=True).snapshot)
    assert {room.name: room.available[EBS] for room in existing_nodes(snapshot)}["n2"] == 25 - 14
    plan = simulate(snapshot, ["n1"], PackingSettings())
    assert plan is not None
    assert not plan.nodes


def test_what_waits_is_resolved_once() -> None:
    waiting = claiming("b", "data", cpu=1500)
    standing = claiming("a", "used", node_name="n1", cpu=1500)
    there = world(waiting, standing, raws=bound_claims("data", "used"))
    snapshot = gather(there.ports, "plan").snapshot
    (found,) = snapshot.pending
    assert found.scheduling.claims == RESOLVED
    assert with_volumes(there.cluster, snapshot) == snapshot
    (again,) = with_claims(there.ports, snapshot).pending
    assert again == found
    assert len(decide(with_claims(there.ports, snapshot), PackingSettings()).nodes) == 1
