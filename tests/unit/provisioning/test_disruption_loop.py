"""The look over all nodes: what is begun, what is held, what is written down."""

import gzip
import json
from datetime import datetime

import pytest

from functions.cli.plan.recorded_decision import load_decision
from shared.disruption.settings import DisruptionSettings
from shared.model import labels as keys
from shared.model.brakes import Brakes, Ceiling
from shared.model.errors import NotFoundError
from shared.model.node_budgets import NodeBudget
from shared.model.note import Note
from shared.model.requirements import Requirement, Requirements
from shared.model.values import replace
from shared.nodes.timers.removal_permits import permitted, read_permits
from shared.ports import TimerKind
from shared.snapshot.images import resolve_images
from tests import builders as make
from tests.builders import (
    CATALOG,
    OTHER_SHAPE,
    SHAPES,
    ZONES,
    needs,
    node,
    node_of,
    pod,
    provisioner,
)
from tests.unit.nodes.leave.replacements import (
    HOUR,
    expired,
    half_empty,
    joined,
    state_of,
    step,
)
from tests.unit.worlds import MINUTE, World, failing, instead


def test_while_it_lasts_and_a_while_after_nothing_else_is_begun() -> None:
    world = half_empty()
    world.provision(look=True)
    for _ in range(3):
        world.advance(MINUTE)
        assert world.provision(look=True).nodes_disrupted == 0
    assert len(world.outbox.timers_of(TimerKind.REPLACEMENT)) == 1
    assert len(world.alive) == 1


def too_large(world: World, name: str) -> None:
    """Add a node that is too large for its pod, of an owner that may change one at a time."""
    own = {keys.PROVISIONER_NAME: name, "team": name}
    owner = provisioner(
        name, labels={"team": name}, consolidation=True, budgets=(NodeBudget(nodes=1),)
    )
    world.cluster.add(
        owner,
        node_of(f"on-{name}", "m5.2xlarge", labels=own),
        pod(f"of-{name}", node_name=f"on-{name}", node_selector=needs("team", "In", name)),
    )


def test_several_independent_changes_are_under_way_at_a_time() -> None:
    world = World()
    world.advance(HOUR)
    for count, name in enumerate(("one", "two"), 1):
        too_large(world, name)
        world.outbox.evaluations.clear()
        assert world.provision(look=True).nodes_disrupted == 1
        assert len(world.outbox.timers_of(TimerKind.REPLACEMENT)) == count
        # The next one is looked for at once.
        assert len(world.outbox.evaluations) == 1
    assert world.provision(look=True).nodes_disrupted == 0
    assert len(world.alive) == 2
    # Each goes once its own new node is ready.
    (fresh,) = (
        node for node in world.cluster.nodes() if node.annotations.get(keys.REPLACES) == "on-two"
    )
    shape = SHAPES[fresh.labels[keys.INSTANCE_TYPE]]
    world.kubelet_joins(fresh.name, capacity=shape.capacity, allocatable=shape.allocatable)
    world.bind(fresh.name)
    for timer in world.outbox.timers_of(TimerKind.REPLACEMENT):
        step(world, dict(timer.payload))
    going = {node.name for node in world.cluster.nodes() if node.deletion_at is not None}
    assert going == {"on-two"}


def test_nothing_is_looked_for_while_pods_wait() -> None:
    world = half_empty()
    world.cluster.add(pod("new"))
    report = world.provision(look=True)
    assert (report.pods_placed, report.nodes_disrupted) == (1, 0)


def test_without_an_evaluation_or_dovetails_nodes_nothing_is_removed() -> None:
    world = half_empty()
    assert world.provision().nodes_disrupted == 0
    world = World(provisioner(consolidation=True), node(finalizers=()))
    world.advance(HOUR)
    assert world.provision(look=True).nodes_disrupted == 0


def test_an_expired_node_with_pods_is_replaced_first() -> None:
    world = expired()
    assert world.provision(look=True).nodes_disrupted == 1
    assert len(world.alive) == 1
    joined(world)
    step(world, state_of(world))
    old = world.cluster.node_values["big"]
    assert old.annotations[keys.REMOVAL_REASON] == "expiration"
    assert old.deletion_at is not None


def test_what_holds_a_node_that_is_due_is_said_once() -> None:
    world = expired()
    world.cluster.add(pod("a", node_name="big", cpu=1000, annotations={keys.DO_NOT_EVICT: "true"}))
    for _ in range(2):
        assert world.provision(look=True).nodes_disrupted == 0
    assert world.messages("DisruptionBlocked") == [
        "it is due to be replaced, but pod default/a has the annotation karpenter.sh/do-not-evict"
    ]
    assert world.cluster.kube_events.total() == 1


def test_why_a_node_is_not_consolidated_is_said_once_an_hour() -> None:
    held = {keys.DO_NOT_DISRUPT: "true"}
    world = World(
        provisioner(consolidation=True),
        node_of("full", "m5.large"),
        pod("large", cpu=1500, node_name="full"),
        node_of("held", "m5.large"),
        pod("kept", cpu=1500, node_name="held", annotations=held),
    )
    world.advance(HOUR)
    for _ in range(5):
        world.provision(look=True)
        world.advance(10 * MINUTE)
    told = {
        event.name: event.message
        for event in world.cluster.kube_events
        if event.reason == "Unconsolidatable"
    }
    assert len(world.messages("Unconsolidatable")) == len(told)
    assert told["held"] == f"pod default/kept has the annotation {keys.DO_NOT_DISRUPT}"
    assert told["full"].startswith("its pods have no place on other nodes")


def test_in_shadow_mode_it_is_only_reported() -> None:
    world = half_empty()
    ports = replace(world.ports, brakes=Brakes(shadow=True))
    deadline = world.clock.now() + 10 * MINUTE
    report = world.provisioning(ports).run("holder", deadline, wait_for_batch=False, evaluate=True)
    assert (report.nodes_disrupted, world.alive) == (0, [])
    assert world.outbox.timers_of(TimerKind.REPLACEMENT) == []
    (said,) = world.messages("ShadowDisruption")
    assert said == (
        "would be removed: consolidation: saves at least $0.2880/h; "
        "1 node removed, 1 new node first"
    )


def test_drift_is_acted_on_when_it_is_asked_for() -> None:
    world = World(
        provisioner(),
        node_of("big", "m5.2xlarge", annotations=OTHER_SHAPE),
        pod("a", node_name="big", cpu=1000),
    )
    world.advance(HOUR)
    assert world.provision(look=True).nodes_disrupted == 0
    world.disruption = DisruptionSettings(drift=True)
    assert world.provision(look=True).nodes_disrupted == 1
    assert "drift: provisioner default has changed" in world.messages("Disrupted")[0]


def test_the_decision_is_written_down_with_its_reason() -> None:
    world = half_empty()
    world.provision(look=True)
    (document,) = (value for key, value in world.decisions.documents.items() if key.endswith(".gz"))
    decision = load_decision(document)
    assert decision.is_identical(decision.replay())
    assert [len(planned_node.pods) for planned_node in decision.plan.nodes] == [2]
    assert json.loads(gzip.decompress(document))["change"] == {
        "cause": "consolidation",
        "method": "replace",
        "remove": ["big"],
        "why": "saves at least $0.2880/h",
    }


def test_the_decision_counts_the_pods_that_a_drain_brings() -> None:
    world = expired()
    world.cluster.add(
        node_of("going", deletion_at=world.clock.now(), unschedulable=True),
        pod("c", node_name="going"),
    )
    world.provision(look=True)
    (document,) = (value for key, value in world.decisions.documents.items() if key.endswith(".gz"))
    decision = load_decision(document)
    assert decision.is_identical(decision.replay())
    assert [len(planned_node.pods) for planned_node in decision.plan.nodes] == [2]
    assert decision.change["remove"] == ["big"]


def test_a_ceiling_that_has_no_room_for_both_holds_the_replacement() -> None:
    world = half_empty()
    world.cluster.add(provisioner(consolidation=True, ceiling=Ceiling(max_nodes=1)))
    assert world.provision(look=True).nodes_disrupted == 0
    assert world.alive == []
    assert world.outbox.timers_of(TimerKind.REPLACEMENT) == []


def test_images_that_cannot_be_found_are_no_drift() -> None:
    world = World(provisioner(), node_of("big", "m5.2xlarge"), pod("a", node_name="big"))
    world.disruption = DisruptionSettings(drift=True)
    world.advance(HOUR)
    instead(world.cloud, "image_ids", failing(NotFoundError("no image")))
    assert world.provision(look=True).nodes_disrupted == 0


def two_architectures(**images: str) -> World:
    """A node of each architecture; images by its name, the current one where none is said."""
    owner = provisioner(
        requirements=Requirements.of((Requirement.of(keys.ARCH, "amd64", "arm64"),))
    )
    types = {"amd": "m5.large", "arm": "c6g.large"}
    arm = {keys.ARCH: "arm64"}
    world = World(owner, node_of("amd", "m5.large"), node_of("arm", "c6g.large", labels=arm))
    current = resolve_images(world.cloud, owner.template, "1.33", CATALOG)
    for name, instance_type in types.items():
        world.cluster.add(pod(f"on-{name}", node_name=name, cpu=500))
        world.cloud.add(
            make.instance(
                world.cluster.node_values[name].instance_id,
                offering=make.offering(instance_type),
                image_id=images.get(name) or current.of(instance_type) or "",
            )
        )
    world.disruption = DisruptionSettings(drift=True)
    world.advance(HOUR)
    return world


@pytest.mark.parametrize("missing", ["/arm64/", "/x86_64/", ""])
def test_a_node_whose_kind_of_image_is_not_found_has_not_drifted(missing: str) -> None:
    world = two_architectures()
    names = resolve_images(world.cloud, provisioner().template, "1.33", CATALOG).ids
    world.cloud.missing_images = {name for name in names if missing in name}
    assert world.provision(look=True).nodes_disrupted == 0


def test_a_node_with_the_current_image_of_another_kind_has_drifted() -> None:
    ids = resolve_images(World().cloud, provisioner().template, "1.33", CATALOG)
    world = two_architectures(arm=ids.of("m5.large") or "")
    assert world.provision(look=True).nodes_disrupted == 1


def test_volumes_of_pods_bind_their_new_node_to_a_zone() -> None:
    world = World(
        provisioner(consolidation=True),
        node_of("big", "m5.2xlarge"),
        pod("a", node_name="big", claims=("data",)),
    )
    world.cluster.apply(
        {
            "kind": "PersistentVolumeClaim",
            "metadata": {"namespace": "default", "name": "data"},
            "spec": {"volumeName": "pv", "storageClassName": "gp3"},
        },
        {
            "kind": "PersistentVolume",
            "metadata": {"name": "pv"},
            "spec": {
                "nodeAffinity": {
                    "required": {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {"key": keys.ZONE, "operator": "In", "values": [ZONES[1]]}
                                ]
                            }
                        ]
                    }
                }
            },
        },
    )
    world.cluster._claims = [claim for claim in world.cluster._claims if claim.volume]
    world.advance(HOUR)
    assert world.provision(look=True).nodes_disrupted == 1
    (fresh,) = world.alive
    assert fresh.offering.zone == ZONES[1]


def test_what_was_not_found_is_not_looked_for_again_until_something_changes() -> None:
    world = half_empty()
    world.cluster.add(pod("a", node_name="big", cpu=7000))
    for _ in range(3):
        world.advance(MINUTE)
        assert world.provision(look=True).nodes_disrupted == 0
    assert len(world.ledger.written("change_note")) == 1
    world.advance(4 * MINUTE)
    world.provision(look=True)
    assert len(world.ledger.written("change_note")) == 2
    # A pod that goes is a change, and at once there is something to save.
    del world.cluster.pods["default/a"]
    assert world.provision(look=True).nodes_disrupted == 1


def test_nodes_with_budgets_are_noted_before_they_are_replaced() -> None:
    world = half_empty()
    world.cluster.add(provisioner(consolidation=True, budgets=(NodeBudget(nodes=1),)))
    assert world.provision(look=True).nodes_disrupted == 1
    now = world.clock.now()
    assert permitted(read_permits(world.ports), now) == {"uid-big"}


def test_while_a_timer_takes_a_permit_nothing_else_is_begun() -> None:
    world = half_empty()
    world.cluster.add(provisioner(consolidation=True, budgets=(NodeBudget(nodes=1),)))
    write = world.ledger.change_note

    def overtaken(cluster: str, memo: Note, until: datetime) -> bool:
        return memo.name != "removals" and write(cluster, memo, until)

    instead(world.ledger, "change_note", overtaken)
    assert world.provision(look=True).nodes_disrupted == 0
    assert world.outbox.timers_of(TimerKind.REPLACEMENT) == []


def test_pods_that_have_just_changed_are_remembered_from_look_to_look() -> None:
    world = half_empty()
    world.cluster.add(provisioner(consolidation=True, consolidate_after=10 * MINUTE))
    world.cluster.add(pod("c", node_name="big", started_at=world.clock.now()))
    assert world.provision(look=True).nodes_disrupted == 0
    world.advance(9 * MINUTE)
    del world.cluster.pods["default/c"]
    assert world.provision(look=True).nodes_disrupted == 0
    world.advance(9 * MINUTE)
    assert world.provision(look=True).nodes_disrupted == 0
    world.advance(2 * MINUTE)
    assert world.provision(look=True).nodes_disrupted == 1
