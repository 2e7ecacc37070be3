"""A new image goes to one node first."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.ec2.image_table import ImageTable
from shared.model.ec2.launches import FleetAnswer, FleetError, Instance
from shared.model.kubernetes.nodes import Node
from shared.model.policy import KarpenterBehavior
from shared.model.provisioner import Provisioner
from shared.model.values import replace
from shared.nodes.join.registration import Registration
from shared.nodes.launch.ami_canary import (
    IMAGE_NOTES,
    ImageCanary,
    ImageChoice,
    ImageHistory,
    choose_images,
)
from shared.ports import TimerKind
from tests.builders import NOW, node, pod, provisioner
from tests.unit.nodes.launch.launches import apart
from tests.unit.worlds import MINUTE, NAME, SECOND, World, instead

NEW = {"std": "ami-2"}


def known(**fields: Any) -> dict[str, ImageHistory]:
    return {"std": ImageHistory(good="ami-1", **fields)}


@pytest.mark.parametrize(
    ("before", "safe", "tried"),
    [
        ({}, "ami-2", "ami-2"),
        (known(), "ami-1", "ami-2"),
        (known(trial="ami-2", trial_at=NOW), "ami-1", "ami-1"),
        (known(trial="ami-2", trial_at=NOW - 11 * MINUTE), "ami-1", "ami-2"),
        (known(trial="ami-9", trial_at=NOW), "ami-1", "ami-2"),
        (known(bad="ami-2", bad_at=NOW), "ami-1", "ami-1"),
        (known(bad="ami-2", bad_at=NOW - timedelta(hours=7)), "ami-1", "ami-2"),
        ({"std": ImageHistory(good="ami-2")}, "ami-2", "ami-2"),
    ],
)
def test_which_image_is_launched(before: dict[str, ImageHistory], safe: str, tried: str) -> None:
    assert choose_images(NEW, before, NOW) == ImageChoice(safe={"std": safe}, canary={"std": tried})


def new_image(world: World, image: str) -> None:
    """Let AWS publish another image under every name."""
    instead(world.cloud, "image_ids", lambda names: dict.fromkeys(names, image))


def images(world: World) -> list[str]:
    return sorted(instance.image_id for instance in world.alive)


def joined(world: World, nodes: Sequence[Node]) -> None:
    for other_node in nodes:
        world.kubelet_joins(other_node.name)
        world.bind(other_node.name)


def grown() -> World:
    """One node of the first image, and then a newer one is published."""
    world = World(provisioner(), *apart(1))
    new_image(world, "ami-1")
    world.provision()
    joined(world, world.cluster.nodes())
    new_image(world, "ami-2")
    return world


def test_one_node_of_a_plan_gets_the_new_image_and_the_rest_the_last_that_worked() -> None:
    world = grown()
    world.cluster.add(*apart(4)[1:])
    world.provision()
    assert images(world) == ["ami-1", "ami-1", "ami-1", "ami-2"]
    newest = [
        other_node
        for other_node in world.cluster.nodes()
        if other_node.annotations[keys.IMAGE_ID] == "ami-2"
    ]
    joined(world, newest)
    world.cluster.add(*apart(6)[4:])
    world.provision()
    assert images(world) == ["ami-1", "ami-1", "ami-1", "ami-2", "ami-2", "ami-2"]


def test_during_a_trial_no_other_node_gets_the_image() -> None:
    world = grown()
    for count in (2, 3, 4):
        world.cluster.add(*apart(count)[count - 1 :])
        world.provision()
    assert images(world) == ["ami-1", "ami-1", "ami-1", "ami-2"]


def give_up(world: World, other_node: Node) -> None:
    world.advance(5 * MINUTE)
    (timer,) = [
        timer
        for timer in world.outbox.timers_of(TimerKind.REGISTRATION)
        if timer.payload["uid"] == other_node.uid
    ]
    end = Registration(world.ports).step(timer.payload)
    assert (end["result"], end["image_stopped"]) == ("never joined", True)


def test_image_that_does_not_register_is_stopped_and_reported() -> None:
    world = grown()
    world.cluster.add(*apart(2)[1:])
    world.provision()
    (tried,) = [
        other_node
        for other_node in world.cluster.nodes()
        if other_node.annotations[keys.IMAGE_ID] == "ami-2"
    ]
    give_up(world, tried)
    (said,) = world.events("ImageNotRegistering")
    assert said.kind == "Provisioner"
    assert "ami-2 was tried" in said.message
    assert "nodes get ami-1 as before" in said.message
    world.cluster.add(*apart(3)[2:])
    world.provision_until_quiet()
    assert images(world).count("ami-2") <= 1
    assert "ami-1" in images(world)
    fresh = [instance for instance in world.alive if instance.launched_at == world.clock.now()]
    assert {instance.image_id for instance in fresh} <= {"ami-1"}


def test_a_machine_of_a_proven_image_that_does_not_register_says_nothing_about_it() -> None:
    world = grown()
    one = world.node
    before = world.ledger.note(NAME, f"{IMAGE_NOTES}default")
    assert not ImageCanary(world.ports).save_failure(one)
    assert not ImageCanary(world.ports).save_failure(node(annotations={}))
    assert world.ledger.note(NAME, f"{IMAGE_NOTES}default") == before
    assert before.value["AL2023"]["good"] if "AL2023" in before.value else before.value


def test_a_trial_that_cannot_be_written_down_is_none() -> None:
    world = grown()
    world.cluster.add(*apart(2)[1:])
    original = world.ledger.change_note

    def change_memo(cluster: str, memo: Any, until: Any) -> bool:
        return not memo.name.startswith(IMAGE_NOTES) and original(cluster, memo, until)

    instead(world.ledger, "change_note", change_memo)
    world.provision()
    assert images(world) == ["ami-1", "ami-1"]


def test_the_image_that_is_gone_back_to_is_of_the_present() -> None:
    def current(rollout: ImageCanary, owner: Provisioner) -> list[str | None]:
        return [found.of("m5.large") for found in rollout.choose(owner, table)]

    world = grown()
    table = ImageTable(kinds={"m5.large": "k"}, ids={"k": "ami-2"})
    rollout, other = ImageCanary(world.ports), provisioner(name="other")
    rollout.save_first_images("other", ImageTable(kinds={"m5.large": "k"}, ids={"k": "ami-1"}))
    assert current(rollout, other) == ["ami-1", "ami-2"]
    assert rollout.begin_trial("other", table, ["m5.large", "unknown"])
    assert current(rollout, other) == ["ami-1", "ami-1"]
    at_once = replace(other, as_karpenter=frozenset({KarpenterBehavior.IMAGES}))
    assert rollout.choose(at_once, table) == (table, table)
    rollout.save_success(node(labels={keys.PROVISIONER_NAME: "other"}))
    rollout.save_success(
        node(labels={keys.PROVISIONER_NAME: "other"}, annotations={keys.IMAGE_ID: "ami-2"})
    )
    assert current(rollout, other) == ["ami-2", "ami-2"]


def test_a_new_image_for_no_type_of_the_node_is_not_on_trial() -> None:
    world = World()
    rollout = ImageCanary(world.ports)
    old = ImageTable(kinds={"m5.large": "x", "g5.xlarge": "g"}, ids={"x": "ami-1", "g": "ami-1"})
    rollout.save_first_images("p", old)
    table = old.with_ids({"g": "ami-2"})
    assert rollout.begin_trial("p", table, ["m5.large"])
    _, tried = rollout.choose(provisioner(name="p"), table)
    assert tried.of("g5.xlarge") == "ami-2"


def test_a_node_says_which_image_it_was_made_with() -> None:
    world = World(provisioner(), pod())
    new_image(world, "ami-7")
    world.provision()
    assert world.node.annotations[keys.IMAGE_ID] == "ami-7"
    assert replace(world.alive[0], state="running").image_id == "ami-7"
    assert isinstance(world.alive[0], Instance)
    assert SECOND < MINUTE


def _deregistered(world: World, *gone: str) -> None:
    """Let EC2 refuse whatever would boot from some images."""
    original = world.cloud.create_fleet

    def create_fleet(request: Mapping[str, Any]) -> FleetAnswer:
        names = {
            launch_template_config["LaunchTemplateSpecification"]["LaunchTemplateName"]
            for launch_template_config in request["LaunchTemplateConfigs"]
        }
        used = {str(world.cloud.templates[name][0]["ImageId"]) for name in names}
        if used & {*gone}:
            error = FleetError(code="InvalidAMIID.NotFound", message="The image id does not exist")
            return FleetAnswer(fleet_id="fleet-0", instances=(), errors=(error,))
        return original(request)

    instead(world.cloud, "create_fleet", create_fleet)


def test_an_image_that_is_gone_is_not_gone_back_to() -> None:
    world = grown()
    world.cluster.add(*apart(2)[1:])
    world.provision()
    _deregistered(world, "ami-1")
    world.cluster.add(*apart(4)[2:])
    report = world.provision()
    assert images(world) == ["ami-1", "ami-2", "ami-2", "ami-2"]
    assert (report.rounds, report.failed_attempts) == (2, 1)
    # No offering is marked unavailable, for EC2 has capacity.
    assert not world.ledger.unavailable_offerings(world.clock.now())


def test_an_image_on_trial_that_is_gone_is_refused_and_the_last_that_worked_is_launched() -> None:
    world = grown()
    _deregistered(world, "ami-2")
    world.cluster.add(*apart(3)[1:])
    world.provision()
    assert images(world) == ["ami-1", "ami-1", "ami-1"]
    rows = world.ledger.note(NAME, f"{IMAGE_NOTES}default").value.values()
    assert {(row["good"], row["trial"]) for row in rows} == {("ami-1", "")}
    assert "ami-2" in {row["bad"] for row in rows}


def test_when_every_image_is_gone_asking_for_it_comes_to_an_end() -> None:
    world = grown()
    _deregistered(world, "ami-1", "ami-2")
    world.cluster.add(*apart(2)[1:])
    report = world.provision()
    assert report.failed_attempts <= 4
    assert images(world) == ["ami-1"]
    assert world.ledger.open_intents(NAME) == ()
