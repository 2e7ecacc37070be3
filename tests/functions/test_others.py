"""Every other function: its event, its timer's step, and what it cannot understand."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from functions.bind.handler import handler as bind
from functions.emptiness.handler import handler as emptiness
from functions.expiration.handler import handler as expiration
from functions.heartbeat.handler import handler as heartbeat
from functions.interrupt.handler import handler as interrupt
from functions.provision.handler import handler as provision
from functions.refresh_catalog.handler import handler as refresh_catalog
from functions.registration.handler import handler as registration
from functions.replacement.handler import handler as replacement
from functions.sweep.handler import handler as sweep
from functions.termination.handler import handler as termination
from shared.instance_types.summary import CatalogSummary
from shared.model import labels as keys
from shared.model.errors import (
    InvalidMessageError,
    NotFoundError,
    NotInstalledError,
    UnauthorizedError,
)
from shared.model.messages.message import MessageKind, ObjectRef, encode, make_message
from shared.model.policy import LaunchPolicy
from shared.model.resources import Resources
from shared.nodes.join.node_binding import Binding
from shared.nodes.join.registration import Registration
from shared.nodes.leave.emptiness_timer import Emptiness
from shared.nodes.leave.expiration_timer import Expiration
from shared.nodes.leave.interruption import Interruption
from shared.nodes.leave.replacement import Replacement, start_replacement
from shared.nodes.leave.termination import Termination
from shared.ports import TimerKind
from shared.provisioning.sweep.sweep import Sweep, SweepPolicy
from tests.builders import NOT_READY, NOW, node, pod, provisioner
from tests.functions.conftest import UNREACHABLE, Context, Runtime
from tests.unit.worlds import MINUTE, World, failing, instead

# Running functions ignore this one; pytest replaces their filters with its own.
pytestmark = pytest.mark.filterwarnings("ignore:No application metrics to publish")
Use = Callable[[str, Any], None]
CONTEXT = Context()


def event(kind: MessageKind, *names: str) -> dict[str, Any]:
    objects = [ObjectRef(name=name) for name in names]
    return encode(make_message(kind, "test", NOW, objects=objects))


def test_bind_completes_every_node_of_the_event(use: Use) -> None:
    world = World(
        provisioner(), node("n1", taints=(NOT_READY,)), node("n2", taints=(NOT_READY,), ready=None)
    )
    use("bind", Runtime(lambda ports: Binding(ports, LaunchPolicy()), test=world))
    bind(event(MessageKind.NODE_READY, "n1", "n2", "gone"), CONTEXT)
    assert world.cluster.node_values["n1"].is_initialized
    assert not world.cluster.node_values["n2"].is_initialized


def test_emptiness_starts_a_timer_and_takes_its_steps(use: Use) -> None:
    world = World(provisioner(ttl_after_empty=MINUTE), node())
    use("emptiness", Runtime(Emptiness, test=world))
    assert emptiness(event(MessageKind.NODE_EMPTY, "n1"), CONTEXT) == {}
    (timer,) = world.outbox.timers_of(TimerKind.EMPTINESS)
    assert emptiness(dict(timer.payload), CONTEXT)["wait_seconds"] == 60
    world.advance(MINUTE)
    assert emptiness(dict(timer.payload), CONTEXT)["result"] == "removed"


def test_termination_starts_a_drain_and_takes_its_steps(use: Use) -> None:
    old = node(deletion_at=NOW, created_at=NOW - 10 * MINUTE)
    world = World(provisioner(), old, pod(node_name="n1"))
    use("termination", Runtime(lambda ports: Termination(ports, None), test=world))
    assert termination(event(MessageKind.NODE_DELETED, "n1"), CONTEXT) == {}
    (timer,) = world.outbox.timers_of(TimerKind.TERMINATION)
    # EC2 knows no such machine, so there is nothing left to drain.
    assert termination(dict(timer.payload), CONTEXT)["result"] == "terminated"
    assert world.cluster.nodes() == ()


def test_expiration_takes_steps(use: Use) -> None:
    world = World(provisioner(ttl_until_expired=MINUTE), node())
    use("expiration", Runtime(Expiration, test=world))
    state = {"cluster": "test", "node": "n1", "uid": "uid-n1"}
    assert expiration(state, CONTEXT)["wait_seconds"] == 60


def test_replacement_takes_steps(use: Use) -> None:
    world = World(provisioner(), node())
    start_replacement(
        world.ports, "plan-1", [world.node], 0, "consolidation", registration=5 * MINUTE
    )
    use("replacement", Runtime(Replacement, test=world))
    (timer,) = world.outbox.timers_of(TimerKind.REPLACEMENT)
    state = replacement(dict(timer.payload), CONTEXT)
    assert world.node.deletion_at is not None
    world.cluster.node_values.clear()
    assert replacement(state, CONTEXT)["result"] == "replaced"


def test_registration_takes_steps(use: Use) -> None:
    starting: dict[str, Any] = {"ready": None, "allocatable": Resources(), "taints": (NOT_READY,)}
    world = World(provisioner(), node(**starting))
    use("registration", Runtime(Registration, test=world))
    state = {"cluster": "test", "node": "n1", "uid": "uid-n1"}
    assert registration(state, CONTEXT)["result"] == "never joined"


def test_interrupt_acts_on_machines_of_ours_alone(use: Use) -> None:
    world = World(provisioner(), node())
    world.ledger.instances["i-n1"] = "test"
    use("interrupt", Runtime(Interruption, test=world))
    notice: dict[str, Any] = {
        "source": "aws.health",
        "detail-type": "AWS Health Event",
        "detail": {"affectedEntities": [{"entityValue": "i-n1"}, {"entityValue": "i-foreign"}]},
    }
    over = {**notice, "detail": {**notice["detail"], "statusCode": "closed"}}
    interrupt(over, CONTEXT)
    assert world.node.deletion_at is None
    interrupt(notice, CONTEXT)
    assert world.node.annotations[keys.REMOVAL_REASON] == "scheduled-change"


def test_the_schedule_gives_each_cluster_a_sweep_of_its_own(
    use: Use, capsys: pytest.CaptureFixture[str]
) -> None:
    first, throttled, last = World(), World(), World()
    instead(first.cluster, "nodes", failing(ValueError("of its data")))
    throttled.outbox.fail_next(UNREACHABLE)
    runtime = Runtime(lambda ports: Sweep(ports, SweepPolicy()), a=first, b=throttled, c=last)
    use("sweep", runtime)
    sweep({"source": "aws.events"}, CONTEXT)
    assert runtime.swept_alone == ["a", "c"]
    assert told(capsys) == [("b", [1], None)]


@pytest.mark.parametrize(
    ("asked", "rounds"),
    [({"source": "aws.events"}, 1), (event(MessageKind.SWEEP), 0)],
    ids=["schedule", "one cluster"],
)
def test_only_the_schedule_counts_as_a_round_of_sweep(
    use: Use, capsys: pytest.CaptureFixture[str], asked: dict[str, Any], rounds: int
) -> None:
    use("sweep", Runtime(lambda ports: Sweep(ports, SweepPolicy()), test=World()))
    sweep(asked, CONTEXT)
    assert capsys.readouterr().out.count('"SweepRounds":') == rounds


def test_sweep_looks_over_one_cluster(use: Use, capsys: pytest.CaptureFixture[str]) -> None:
    late = World(provisioner(), pod())
    late.advance(2 * MINUTE)
    use("sweep", Runtime(lambda ports: Sweep(ports, SweepPolicy()), test=late))
    sweep(event(MessageKind.SWEEP), CONTEXT)
    assert late.outbox.wakes == [("test", timedelta(0))]
    assert told(capsys) == [("test", None, [1])]


def test_a_sweep_that_fails_is_counted(use: Use, capsys: pytest.CaptureFixture[str]) -> None:
    down = World()
    instead(down.cluster, "nodes", failing(UNREACHABLE))
    use("sweep", Runtime(lambda ports: Sweep(ports, SweepPolicy()), test=down))
    sweep(event(MessageKind.SWEEP), CONTEXT)
    assert told(capsys) == [("test", [1], None)]


def told(capsys: pytest.CaptureFixture[str]) -> list[tuple[str, Any, Any]]:
    """Return cluster, failures and findings of each line of metrics."""
    out = capsys.readouterr().out
    metrics = [json.loads(line) for line in out.splitlines() if '"Cluster":' in line]
    return [(m["Cluster"], m.get("SweepFailures"), m.get("SweepFindings")) for m in metrics]


def test_a_cluster_without_the_definition_of_provisioners_is_no_failure_of_sweep(
    use: Use, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    bare = World()
    instead(bare.cluster, "provisioners", failing(NotInstalledError("404")))
    use("sweep", Runtime(lambda ports: Sweep(ports, SweepPolicy()), test=bare))
    sweep(event(MessageKind.SWEEP), CONTEXT)
    assert "SweepFailures" not in capsys.readouterr().out
    assert "apply the cluster manifests" in caplog.text


def test_heartbeats_are_written_down(use: Use, capsys: pytest.CaptureFixture[str]) -> None:
    runtime = Runtime(lambda _: None, test=World())
    use("heartbeat", runtime)
    heartbeat(event(MessageKind.HEARTBEAT), CONTEXT)
    assert runtime.heartbeats == [("test", NOW)]
    assert '"Heartbeats":[1.0]' in capsys.readouterr().out.replace(" ", "")


@pytest.mark.parametrize(
    ("name", "handler", "kind"),
    [
        ("bind", bind, MessageKind.NODE_READY),
        ("emptiness", emptiness, MessageKind.NODE_EMPTY),
        ("termination", termination, MessageKind.NODE_DELETED),
        ("heartbeat", heartbeat, MessageKind.HEARTBEAT),
        ("sweep", sweep, MessageKind.SWEEP),
    ],
)
def test_events_of_a_cluster_that_is_not_attached_are_set_aside_and_nothing_is_counted_for_it(
    name: str,
    handler: Callable[..., Any],
    kind: MessageKind,
    use: Use,
    dead: list[tuple[str, str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    runtime = Runtime(lambda _: None)
    use(name, runtime)
    assert handler(event(kind, "n1"), CONTEXT) is None
    ((_, reason),) = dead
    assert reason == "cluster 'test' is not attached"
    assert runtime.heartbeats == []
    assert '"Cluster"' not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "handler", "kind"),
    [
        ("bind", bind, MessageKind.NODE_READY),
        ("emptiness", emptiness, MessageKind.NODE_EMPTY),
        ("termination", termination, MessageKind.NODE_DELETED),
        ("heartbeat", heartbeat, MessageKind.HEARTBEAT),
        ("provision", provision, MessageKind.POD_PENDING),
    ],
)
def test_a_message_beyond_the_rate_of_a_cluster_is_dropped_before_anything_is_read(
    name: str,
    handler: Callable[..., Any],
    kind: MessageKind,
    use: Use,
    capsys: pytest.CaptureFixture[str],
) -> None:
    runtime = Runtime(failing(AssertionError("nothing is read")), test=World())
    runtime.floods = True
    use(name, runtime)
    handler(event(kind, "n1"), CONTEXT)
    assert runtime.heartbeats == []
    assert '"Cluster"' not in capsys.readouterr().out


class Refresh:
    """A double of what refresh_catalog works with; it makes roles, or raises."""

    def __init__(self, *, fresh: bool = True, made: tuple[str, ...] | None = ()) -> None:
        self.fresh = fresh
        self.made = made

    def is_fresh(self) -> bool:
        return self.fresh

    def make_linked_roles(self) -> tuple[str, ...]:
        if self.made is None:
            raise UnauthorizedError("a policy of the organisation")
        return self.made

    def refresh(self) -> CatalogSummary:
        return CatalogSummary(
            region="us-east-1",
            date="2026-01-01",
            source="a list",
            type_count=3,
            offering_count=9,
            interpolated_count=0,
        )


@pytest.mark.parametrize(
    ("source", "fresh", "written"),
    [
        ("aws.events", False, True),
        ("aws.events", True, False),
        ("aws.cloudformation", True, True),
        ("", True, True),
    ],
    ids=["missing or old", "fresh", "deployed", "by hand"],
)
def test_the_catalogue_is_written_unless_a_tick_finds_it_fresh(
    use: Use, capsys: pytest.CaptureFixture[str], source: str, *, fresh: bool, written: bool
) -> None:
    use("refresh_catalog", Refresh(fresh=fresh))
    refresh_catalog({"source": source}, CONTEXT)
    assert ("CatalogInstanceTypes" in capsys.readouterr().out) == written


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (("AWSServiceRoleForEC2Spot",), "service-linked role AWSServiceRoleForEC2Spot made"),
        (None, "service-linked roles of EC2 cannot be made: a policy of the organisation"),
    ],
    ids=["made", "refused"],
)
def test_a_deployment_makes_the_linked_roles_and_the_catalogue_also_where_it_may_not(
    use: Use, caplog: pytest.LogCaptureFixture, made: tuple[str, ...] | None, told: str
) -> None:
    use("refresh_catalog", Refresh(made=made))
    refresh_catalog({"source": "aws.cloudformation"}, CONTEXT)
    assert [told, "catalogue written"] == [record.message for record in caplog.records]


@pytest.mark.parametrize(
    ("name", "handler"),
    [
        ("bind", bind),
        ("emptiness", emptiness),
        ("termination", termination),
        ("interrupt", interrupt),
        ("sweep", sweep),
    ],
)
def test_events_that_cannot_be_understood_are_set_aside_at_once(
    name: str, handler: Callable[..., Any], use: Use, dead: list[tuple[str, str]]
) -> None:
    use(name, Runtime(lambda _: None))
    wrong = {"source": "dovetail.test", "detail-type": "nonsense", "detail": {}}
    assert handler(wrong, CONTEXT) is None
    ((text, reason),) = dead
    assert json.loads(text) == wrong
    assert "nonsense" in reason


@pytest.mark.parametrize(
    ("name", "handler"),
    [
        ("emptiness", emptiness),
        ("termination", termination),
        ("expiration", expiration),
        ("replacement", replacement),
        ("registration", registration),
    ],
)
def test_a_state_that_cannot_be_understood_fails_its_timer(
    name: str, handler: Callable[..., Any], use: Use, dead: list[tuple[str, str]]
) -> None:
    use(name, Runtime(Emptiness, test=World()))
    with pytest.raises(InvalidMessageError, match="cluster: None: expected a text"):
        handler({"node": "n1"}, CONTEXT)
    with pytest.raises(NotFoundError, match="cluster 'gone' is not attached"):
        handler({"cluster": "gone", "node": "n1"}, CONTEXT)
    assert dead == []
