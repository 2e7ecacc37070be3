"""What runtimes do themselves: the cluster a message is accepted for, and dead letters."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.heartbeat import runtime as heartbeat_runtime
from functions.provision import runtime as provision_runtime
from functions.sweep import runtime as sweep_runtime
from shared.model.brakes import Brakes
from shared.model.errors import NotAttachedError
from shared.model.messages.message import Message, MessageKind, make_message
from shared.nodes.timers.heartbeats import last_forwarder_heartbeat
from shared.nodes.timers.timers import start
from shared.ports import ClusterPorts, TimerKind
from shared.provisioning.cluster_wakes import ClusterWake, InvalidRecord
from shared.runtime import wiring as wiring_module
from shared.runtime.wiring import ActingRole
from shared.settings import FunctionSettings, ProvisionSettings, SweepSettings
from tests.builders import NOT_READY, NOW, OTHER_SHAPE, node, pod, provisioner
from tests.fakes.clock import FakeClock
from tests.fakes.ledger import FakeLedger
from tests.fakes.outbox import FakeOutbox
from tests.functions.conftest import Context
from tests.unit.provisioning.sweep.settled import machine
from tests.unit.worlds import World

MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:x"
SENT: dict[str, Any] = {
    "table": "ledger",
    "bucket": "archive",
    "queue_url": "https://sqs/wakes",
    "dead_letter_url": "https://sqs/dead",
}
SETTINGS: dict[str, Any] = {
    **SENT,
    "bind_function": "bind",
    "provision_function": "provision",
    **{
        f"{kind}_machine": MACHINE
        for kind in ("emptiness", "expiration", "registration", "replacement", "termination")
    },
}


class Registry:
    """Knows one cluster."""

    drift = False

    def all(self) -> tuple[Any, ...]:
        return (SimpleNamespace(name="test"),)

    def one(self, name: str) -> Any:
        if name != "test":
            raise NotAttachedError(f"cluster {name!r} is not attached")
        return SimpleNamespace(name=name, drift=self.drift)

    def brakes(self, name: str) -> Brakes:
        self.one(name)
        return Brakes()


@dataclass
class Wiring:
    """A double of a process's wiring."""

    clock: FakeClock = field(default_factory=FakeClock)
    ledger: FakeLedger = field(default_factory=FakeLedger)
    outbox: FakeOutbox = field(default_factory=FakeOutbox)
    registry: Registry = field(default_factory=Registry)
    world: World = field(default_factory=World)

    def ports(self, cluster: str) -> ClusterPorts:
        self.registry.one(cluster)
        return self.world.ports


@pytest.fixture
def wiring(monkeypatch: pytest.MonkeyPatch) -> Wiring:
    made = Wiring()
    for module in (provision_runtime, sweep_runtime):
        monkeypatch.setattr(module, "ProvisioningWiring", lambda *_: made)
    monkeypatch.setattr(heartbeat_runtime, "Wiring", lambda *_: made)
    return made


def sweep(**more: Any) -> sweep_runtime.SweepRuntime:
    return sweep_runtime.SweepRuntime(SweepSettings(**SETTINGS, sweep_function="sweep", **more))


def provision() -> provision_runtime.ProvisionRuntime:
    return provision_runtime.ProvisionRuntime(ProvisionSettings(**SETTINGS))


@pytest.mark.parametrize(
    ("at", "noted"),
    [
        (NOW - timedelta(minutes=3), NOW - timedelta(minutes=3)),
        (NOW + timedelta(days=36500), NOW),
        (datetime.fromisoformat("9999-12-31T23:59:59-23:00"), NOW),
        (datetime.fromisoformat("0001-01-01T00:00:00+23:00"), NOW - timedelta(hours=1)),
    ],
    ids=["honest", "in a hundred years", "the last moment", "the first moment"],
)
def test_a_heartbeat_is_never_later_than_now(wiring: Wiring, at: datetime, noted: datetime) -> None:
    assert wiring.clock.now() == NOW
    heartbeat_runtime.HeartbeatRuntime(FunctionSettings(**SENT)).record_heartbeat("test", at)
    assert last_forwarder_heartbeat(wiring.ledger, "test") == noted


def said(cluster: str) -> Message:
    return make_message(MessageKind.HEARTBEAT, cluster, NOW)


def test_a_heartbeat_of_a_cluster_that_is_not_attached_leaves_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    process = process_of_one_cluster()
    with pytest.raises(NotAttachedError):
        process.admits(said("forged"))
    assert capsys.readouterr().out == ""


def test_what_was_dropped_of_a_cluster_is_counted_with_the_next_message_that_is_served(
    capsys: pytest.CaptureFixture[str],
) -> None:
    process = process_of_one_cluster()
    assert [process.admits(said("test")) for _ in range(5)] == [True, True, True, False, False]
    assert capsys.readouterr().out == ""
    process.clock.advance(timedelta(seconds=10))
    assert process.admits(said("test"))
    (line,) = capsys.readouterr().out.splitlines()
    assert (json.loads(line)["Cluster"], json.loads(line)["MessagesDropped"]) == ("test", [2])


def process_of_one_cluster() -> Any:
    """Return the wiring of a process that knows one attached cluster."""
    made: Any = wiring_module.Wiring(FunctionSettings(**SENT), ActingRole.INSIDE)
    made.registry, made.clock = Registry(), FakeClock()
    return made


def test_sweep_and_provision_are_called_for_single_clusters(wiring: Wiring) -> None:
    assert sweep().clusters() == ("test",)
    sweep().invoke_sweep("test")
    provision().invoke_provision(ClusterWake(cluster="test", record_ids=(), evaluate=True))
    assert wiring.outbox.sweeps == ["test"]
    assert wiring.outbox.plans_at_once == [("test", True, False)]
    with pytest.raises(NotAttachedError):
        provision().invoke_provision(ClusterWake(cluster="forged", record_ids=()))
    assert len(wiring.outbox.plans_at_once) == 1


def test_sweep_gives_a_machine_as_long_to_join_as_is_set(wiring: Wiring) -> None:
    boots = node("boots", ready=None, taints=(NOT_READY,), created_at=NOW)
    wiring.world = world = World(provisioner(), boots)
    world.cloud.add(machine("i-boots"))
    start(world.ports, TimerKind.REGISTRATION, boots, NOW, timedelta(seconds=900))
    service = sweep(registration_seconds=900).service("test")
    # Two minutes after its timer was due it counts as lost.
    world.advance(timedelta(seconds=900 + 120))
    assert service.run().missing_timers == 0
    world.advance(timedelta(seconds=1))
    assert service.run().missing_timers == 1


def test_the_attachment_says_whether_drifted_nodes_of_provisioners_are_replaced(
    wiring: Wiring,
) -> None:
    old = node("old", annotations=OTHER_SHAPE)
    for drift in (False, True):
        wiring.registry.drift = drift
        wiring.world = world = World(provisioner(), old, pod(node_name="old"))
        world.cloud.add(machine("i-old"))
        world.advance(timedelta(hours=1))
        sweep().service("test").run()
        assert bool(world.outbox.evaluations) is drift
        deadline = world.clock.now() + timedelta(minutes=10)
        service = provision().service("test")
        report = service.run("holder", deadline, wait_for_batch=False, evaluate=True)
        assert report.nodes_disrupted == int(drift)


@pytest.mark.filterwarnings("ignore:No application metrics to publish")
def test_records_that_cannot_be_put_aside_come_again(
    wiring: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[str, str]] = []

    def send(records: Any, *, in_time: Callable[[], bool]) -> tuple[int, ...]:
        sent.extend(records)
        before = in_time()
        wiring.clock.advance(timedelta(seconds=21))
        assert (before, in_time()) == (True, False)
        return (1,)

    monkeypatch.setattr(provision_runtime, "send_dead_letters", send)
    records = [
        InvalidRecord(record_id=f"m{number}", text=str(number), reason="torn")
        for number in range(3)
    ]
    # Ten seconds are kept for the answer.
    context = cast("LambdaContext", Context(left=timedelta(seconds=30)))
    assert provision().send_to_dead_letters(records, context) == ["m1"]
    assert sent == [("0", "torn"), ("1", "torn"), ("2", "torn")]
