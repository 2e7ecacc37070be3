"""Doctor: each trouble has its finding, and a lost ledger is written anew."""

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from functions.cli.doctor.doctor import Doctor
from functions.cli.doctor.doctor_command import mount_doctor
from shared.model import labels as keys
from shared.model.brakes import Brakes, Ceiling
from shared.model.ec2.launches import Instance
from shared.model.errors import ConflictError
from shared.model.values import replace
from shared.nodes.timers.heartbeats import save_forwarder_heartbeat
from tests.builders import node, offering
from tests.fakes.ledger import FakeLedger
from tests.unit.cli.running import run_mounted
from tests.unit.nodes.launch.launches import open_intent, two_nodes
from tests.unit.worlds import MINUTE, NAME, World, instead

BOUNDED = Brakes(ceiling=Ceiling(max_price_micros_per_hour=100_000_000))


def healthy() -> World:
    """A cluster with one initialized node, one in flight, and a forwarder that speaks."""
    world = two_nodes()
    world.provision()
    first = world.cluster.nodes()[0].name
    world.kubelet_joins(first)
    world.bind(first)
    save_forwarder_heartbeat(world.ledger, NAME, world.clock.now())
    world.ports = replace(world.ports, brakes=BOUNDED)
    return world


def kinds(world: World) -> list[str]:
    return [finding.kind for finding in Doctor(world.ports).findings()]


def test_a_healthy_cluster_has_no_findings_and_nothing_to_repair() -> None:
    world = healthy()
    assert Doctor(world.ports).findings() == ()
    assert Doctor(world.ports).repair("me") == ()
    assert world.outbox.wakes == []


def test_a_lost_ledger_is_written_anew_from_tags_and_nodes() -> None:
    world = healthy()
    before = world.ledger.slots(NAME)
    world.ledger = FakeLedger()
    save_forwarder_heartbeat(world.ledger, NAME, world.clock.now())
    world.ports = replace(world.ports, ledger=world.ledger)
    assert "instance-not-in-ledger" in kinds(world)
    assert len(Doctor(world.ports).repair("me")) == 2
    assert kinds(world) == []
    (after,) = world.ledger.slots(NAME)
    (known,) = before
    assert (after.instance_id, after.node_name) == (known.instance_id, known.node_name)
    assert after.price_micros_per_hour == known.price_micros_per_hour
    assert (after.plan_id, after.group) == (known.plan_id, known.group)
    assert after.capacity == known.capacity
    assert {world.ledger.cluster_of(instance.instance_id) for instance in world.alive} == {NAME}
    assert not world.ledger.is_held(NAME)
    # What is in flight counts as capacity again: nothing is bought twice.
    world.provision_until_quiet()
    assert len(world.alive) == 2


def test_a_machine_of_an_unknown_type_with_odd_tags_is_written_down_as_it_is() -> None:
    world = healthy()
    ours = dict(world.alive[0].tags)
    for tag in (keys.TAG_PLAN, keys.TAG_GROUP):
        ours.pop(tag)
    odd = [
        Instance(
            instance_id=f"i-odd{n}", state="running", offering=offering(name="x9.big"), tags=ours
        )
        for n in range(2)
    ]
    world.cloud.add(*odd)
    Doctor(world.ports).repair("me")
    found = [slot for slot in world.ledger.slots(NAME) if slot.plan_id == "unknown"]
    assert [(slot.number, slot.price_micros_per_hour) for slot in found] == [(0, 0), (1, 0)]


def test_each_trouble_has_its_finding() -> None:
    world = healthy()
    tags = dict(world.alive[0].tags)
    stray = Instance(
        instance_id="i-stray",
        state="running",
        offering=offering(),
        tags=tags,
        launched_at=world.clock.now(),
    )
    world.cloud.add(stray)
    (slot,) = world.ledger.slots(NAME)
    world.cloud.end(slot.instance_id)
    world.cluster.add(
        node(
            "lost",
            labels={keys.PROVISIONER_NAME: "default"},
            finalizers=(keys.TERMINATION_FINALIZER,),
            provider_id="",
        )
    )
    world.advance(20 * MINUTE)
    world.ports = replace(world.ports, brakes=replace(BOUNDED, paused=True))
    assert Doctor(world.ports).findings()[0].command.endswith(f"/{NAME}/brakes")
    assert kinds(world) == [
        "brake",
        "instance-not-in-ledger",
        "instance-without-node",
        "node-without-instance",
        "node-without-instance",
        "silent-forwarder",
        "slot-without-instance",
    ]
    assert [finding.kind for finding in Doctor(world.ports).repair("me")] == [
        "instance-not-in-ledger",
        "slot-without-instance",
    ]
    assert "slot-without-instance" not in kinds(world)


@pytest.mark.parametrize("provider_id", ["", "aws:///us-east-1a/i-gone"])
def test_node_without_a_machine_is_reported_once_it_is_not_new(provider_id: str) -> None:
    world = healthy()
    world.cluster.add(
        node(
            "left-over",
            labels={keys.PROVISIONER_NAME: "default"},
            finalizers=(keys.TERMINATION_FINALIZER,),
            provider_id=provider_id,
            created_at=world.clock.now(),
        )
    )
    assert kinds(world) == []
    world.advance(2 * MINUTE)
    (found,) = Doctor(world.ports).findings()
    assert (found.kind, found.subject) == ("node-without-instance", "left-over")
    assert provider_id.rpartition("/")[2] in found.text
    assert Doctor(world.ports).repair("me") == ()
    assert len(world.alive) == 2


def test_node_with_an_undeletable_pod_is_reported() -> None:
    world = healthy()
    refusal = {keys.DELETION_REFUSED: "default/a (403 admission webhook denied it)"}
    world.cluster.add(node("held", labels={}, finalizers=(), annotations=refusal))
    (found,) = Doctor(world.ports).findings()
    assert (found.kind, found.subject) == ("deletion-refused", "held")
    assert "default/a (403 admission webhook denied it)" in found.text
    assert "webhook" in found.command


def test_a_machine_that_ec2_does_not_list_yet_keeps_its_slot() -> None:
    world = healthy()
    (slot,) = world.ledger.slots(NAME)
    instead(world.cloud, "_shown", lambda _: ())
    assert kinds(world) == []
    assert Doctor(world.ports).repair("me") == ()
    assert world.ledger.slots(NAME) == (slot,)


def test_machine_without_its_tags_is_reported_and_its_node_is_not_lost() -> None:
    world = healthy()
    untagged = {instance.instance_id for instance in world.alive}
    world.cloud.add(*(replace(instance, tags={}) for instance in world.alive))
    world.advance(2 * MINUTE)
    found = Doctor(world.ports).findings()
    assert {(finding.kind, finding.subject) for finding in found} == {
        ("instance-without-tags", value) for value in untagged
    }
    assert found[0].command.startswith(f"aws ec2 create-tags --resources {found[0].subject} ")
    assert Doctor(world.ports).repair("me") == ()
    assert len(world.ledger.slots(NAME)) == 1


def test_nodes_that_say_something_else_than_ec2_are_reported() -> None:
    world = healthy()
    ours = next(found for found in world.cluster.nodes() if found.is_ours)
    world.cluster.add(node("liar", provider_id=ours.provider_id))
    world.kubelet_writes(ours.name, {keys.INSTANCE_TYPE: "m5.24xlarge", keys.ZONE: None})
    lying, told = Doctor(world.ports).findings()
    assert (told.kind, told.subject) == ("node-not-ours", "liar")
    assert f"{ours.instance_id} is the instance of node {ours.name}" in told.text
    assert (lying.kind, lying.subject) == ("node-contradicts-ec2", ours.name)
    assert f"{keys.INSTANCE_TYPE} m5.24xlarge (EC2: m5.large)" in lying.text
    assert f"{keys.ZONE} missing (EC2: us-east-1a)" in lying.text


@pytest.mark.parametrize("lost", [False, True])
def test_a_launch_that_stays_open_is_found_and_woken(*, lost: bool) -> None:
    world = two_nodes()
    open_intent(world)
    assert "unfinished-launch" not in kinds(world)
    world.advance(6 * MINUTE)
    if lost:
        world.decisions.documents.clear()
    (found,) = (
        finding for finding in Doctor(world.ports).findings() if finding.kind == "unfinished-launch"
    )
    assert ("it will be abandoned" in found.text) is lost
    sent = len(world.outbox.wakes)
    Doctor(world.ports).repair("me")
    assert len(world.outbox.wakes) == sent + 1


def test_nothing_is_repaired_while_another_invocation_plans() -> None:
    world = healthy()
    world.ledger.acquire(NAME, "another", world.clock.now())
    with pytest.raises(ConflictError, match="run the command again"):
        Doctor(world.ports).repair("me")


# --- the command


class Runtime:
    """One cluster of fakes, as the command sees it."""

    def __init__(self, world: World) -> None:
        self._world = world

    def clusters(self) -> Sequence[str]:
        return (NAME,)

    def service(self, cluster: str) -> Doctor:
        assert cluster == NAME
        return Doctor(self._world.ports)


def run(world: World, *words: str) -> int:
    runtime: Any = Runtime(world)
    return run_mounted(lambda commands: mount_doctor(commands, lambda: runtime), "doctor", *words)


def test_the_command_says_what_to_run(capsys: pytest.CaptureFixture[str]) -> None:
    world = healthy()
    assert run(world) == 0
    world.advance(timedelta(hours=1))
    assert run(world, "--cluster", NAME) == 1
    told = capsys.readouterr().out
    assert "test: 0 findings, 0 repaired" in told
    assert "test: 2 findings, 0 repaired" in told
    assert "  node-not-joined ip-10-0-0-2.ec2.internal: " in told
    assert "run: kubectl -n dovetail rollout restart deployment/dovetail-forwarder" in told


def test_cluster_without_a_ceiling_of_dollars_is_advised_to_set_one() -> None:
    world = healthy()
    world.ports = replace(world.ports, brakes=Brakes(ceiling=Ceiling(max_nodes=9)))
    (found,) = Doctor(world.ports).findings()
    assert (found.kind, found.subject, found.advice) == ("no-ceiling", NAME, True)
    deploy = "npx cdk deploy --all -c clusters=test -c max_price_per_hour=test:<dollars>"
    assert found.command == deploy


def test_the_command_repairs_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    world = healthy()
    world.ledger.instances.clear()
    assert run(world) == 1
    assert "run: dovetail doctor --repair" in capsys.readouterr().out
    slots = world.ledger.slots(NAME)
    assert run(world, "--repair", "--output", "json") == 0
    assert world.ledger.slots(NAME) == slots
    (document,) = json.loads(capsys.readouterr().out)
    assert document["findings"] == []
    assert {entry["kind"] for entry in document["repaired"]} == {"instance-not-in-ledger"}
