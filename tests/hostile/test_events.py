"""Events: every delivery of the bus or the queue is served or set aside, and names no other path.

The handlers are those that are deployed. They serve a cluster whose API server is called by the
product's own adapter; the other ports are fakes. A second cluster is attached beside it.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pytest
from hypothesis import strategies as st

from functions.bind.handler import handler as bind
from functions.emptiness.handler import handler as emptiness
from functions.heartbeat.handler import handler as heartbeat
from functions.interrupt.handler import handler as interrupt
from functions.provision.handler import handler as provision
from functions.sweep.handler import handler as sweep
from functions.termination.handler import handler as termination
from shared.kube.cluster import KubeCluster
from shared.model.messages.message import MessageKind, ObjectRef, encode, make_message
from shared.model.policy import LaunchPolicy
from shared.model.values import replace
from shared.nodes.join.node_binding import Binding
from shared.nodes.leave.emptiness_timer import Emptiness
from shared.nodes.leave.interruption import Interruption
from shared.nodes.leave.termination import Termination
from shared.provisioning.sweep.sweep import Sweep, SweepPolicy
from tests.builders import NOW, pod, provisioner
from tests.functions.conftest import Context, ProvisionRuntime, Runtime
from tests.hostile.corpus import BATCH_SIZE, batches, mutated, texts, try_batch, values
from tests.hostile.objects import node_document
from tests.hostile.wire import Wire
from tests.unit.worlds import World

pytestmark = pytest.mark.filterwarnings("ignore:No application metrics to publish")
Event = dict[str, Any]
# Requests for one event: so many for each object that it names, and so many besides.
_FOR_EACH_OBJECT: Final = 12
_BESIDES: Final = 30


@dataclass(frozen=True, kw_only=True)
class Function:
    """One function that takes events, and right events for it."""

    handler: Callable[[Event, Any], Any]
    runtime: Callable[..., Runtime]
    events: tuple[Event, ...]


def said(kind: MessageKind) -> Event:
    objects = [ObjectRef(name="n1", uid="u"), ObjectRef(name="n2", namespace="shop")]
    return encode(make_message(kind, "a", NOW, objects=objects))


def of_ec2(detail_type: str, **detail: str) -> Event:
    detail = {"instance-id": "i-n1", **detail}
    return {"source": "aws.ec2", "detail-type": detail_type, "detail": detail}


def runtime_of(make: Callable[..., Any]) -> Callable[..., Runtime]:
    return lambda **worlds: Runtime(make, **worlds)


_HEALTH: Final = {
    "source": "aws.health",
    "detail-type": "AWS Health Event",
    "detail": {
        "affectedEntities": [{"entityValue": "i-n1", "status": "IMPAIRED"}],
        "statusCode": "open",
    },
}
FUNCTIONS: Final = {
    "bind": Function(
        handler=bind,
        runtime=runtime_of(lambda ports: Binding(ports, LaunchPolicy())),
        events=(said(MessageKind.NODE_READY),),
    ),
    "emptiness": Function(
        handler=emptiness, runtime=runtime_of(Emptiness), events=(said(MessageKind.NODE_EMPTY),)
    ),
    "termination": Function(
        handler=termination,
        runtime=runtime_of(lambda ports: Termination(ports, None)),
        events=(said(MessageKind.NODE_DELETED),),
    ),
    "provision": Function(
        handler=provision,
        runtime=ProvisionRuntime,
        events=(
            said(MessageKind.POD_PENDING),
            said(MessageKind.PROVISIONER_CHANGED),
            said(MessageKind.EVALUATE),
        ),
    ),
    "sweep": Function(
        handler=sweep,
        runtime=runtime_of(lambda ports: Sweep(ports, SweepPolicy())),
        events=(said(MessageKind.SWEEP),),
    ),
    "heartbeat": Function(
        handler=heartbeat,
        runtime=runtime_of(lambda _: None),
        events=(said(MessageKind.HEARTBEAT),),
    ),
    "interrupt": Function(
        handler=interrupt,
        runtime=runtime_of(Interruption),
        events=(
            of_ec2("EC2 Spot Instance Interruption Warning"),
            of_ec2("EC2 Instance State-change Notification", state="stopped"),
            of_ec2("EC2 Instance Rebalance Recommendation"),
            _HEALTH,
        ),
    ),
}
_ALL_EVENTS: Final = tuple(event for function in FUNCTIONS.values() for event in function.events)


@st.composite
def delivered(draw: st.DrawFn) -> tuple[str, Event]:
    """Draw a function and an event as EventBridge delivers it: two texts and an object."""
    name = draw(st.sampled_from(sorted(FUNCTIONS)))
    event = draw(mutated(FUNCTIONS[name].events))
    detail = event.get("detail")
    kept = {key: event[key] for key in ("source", "detail-type") if isinstance(event.get(key), str)}
    return name, {
        "source": draw(texts),
        "detail-type": draw(texts),
        **kept,
        "detail": detail if isinstance(detail, dict) else {"detail": detail},
    }


def _nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


bodies = st.one_of(
    mutated(_ALL_EVENTS).map(json.dumps),
    mutated(_ALL_EVENTS).map(json.dumps).flatmap(lambda text: st.just(text[: len(text) // 2])),
    values.map(json.dumps),
    st.text(max_size=30),
    st.sampled_from((900, 1000, 5000)).map(_nested),
)


class Clusters:
    """Cluster a behind the adapter, cluster b beside it."""

    def __init__(self) -> None:
        self.wire = Wire({"Node": [node_document()], "Pod": [], "Provisioner": []})
        self.a, self.b = World(provisioner()), World(provisioner(), pod("waits"))
        for name, world in (("a", self.a), ("b", self.b)):
            world.cluster._name = name
        api = KubeCluster("a", self.wire.api, now=self.a.clock.now)
        self.a.ports = replace(self.a.ports, cluster=api)
        self.a.ledger.instances["i-n1"] = "a"


@pytest.fixture
def deliver(
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[str, Event], tuple[Clusters, Runtime, Any]]:
    """Deliver an event to a function with clusters of its own; return what came of it."""
    current: list[Runtime] = []
    monkeypatch.setattr("shared.runtime.serve_events.send_dead_letter", lambda *_: None)
    for name in FUNCTIONS:
        monkeypatch.setattr(f"functions.{name}.handler.load_runtime", lambda: current[0])

    def run(name: str, event: Event) -> tuple[Clusters, Runtime, Any]:
        clusters = Clusters()
        runtime = FUNCTIONS[name].runtime(a=clusters.a, b=clusters.b)
        current[:] = [runtime]
        answer = FUNCTIONS[name].handler(event, Context())
        return clusters, runtime, answer

    return run


Deliver = Callable[[str, Event], tuple[Clusters, Runtime, Any]]


@batches
def test_an_event_is_served_or_set_aside_and_asks_for_the_paths_that_are_meant(
    batch: int, deliver: Deliver
) -> None:
    def check(drawn: tuple[str, Event]) -> None:
        name, event = drawn
        clusters, _, _ = deliver(name, event)
        objects = event["detail"].get("objects")
        named = len(objects) if isinstance(objects, list) else 1
        assert clusters.wire.strange == []
        assert len(clusters.wire.paths) <= _FOR_EACH_OBJECT * named + _BESIDES
        if event["source"] != "dovetail.b":
            assert clusters.b.cluster.reads == []
            assert clusters.b.cluster.calls == []

    try_batch(batch, delivered(), check)


@batches
def test_a_record_of_the_queue_costs_itself_only(batch: int, deliver: Deliver) -> None:
    good = json.dumps(encode(make_message(MessageKind.POD_PENDING, "b", NOW)))

    def check(hostile: list[str]) -> None:
        records = [
            {"messageId": f"m{number}", "body": body}
            for number, body in enumerate([*hostile, good])
        ]
        clusters, runtime, answer = deliver("provision", {"Records": records})
        assert answer == {"batchItemFailures": []}
        assert clusters.wire.strange == []
        # Planned for here where no other cluster is named, else in an invocation of its own.
        assert clusters.b.alive or runtime.woken.count("b") == 1

    # Two and a half records in a delivery, as a rule.
    try_batch(batch, st.lists(bodies, min_size=1, max_size=4), check, BATCH_SIZE * 2 // 5)
