"""The rule engine that EventBridge runs: which rules of the template match which events.

What should match is written here as a table, from what rules are for; the patterns are not read.

Source: https://github.com/aws/event-ruler (2026-11).
"""

import json
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from shared.model.messages.message import FAST, MessageKind, encode, make_message
from tests.infra.judges.programs import HERE, jars, run
from tests.infra.judges.verdicts import Verdict
from tests.infra.templates import PSEUDO, Template

Event = dict[str, Any]
_BEGINS: Final = "Delivery"
_HASH: Final = 8
# A prefix of another, of digits alone, the longest, and as EKS writes them.
_CLUSTERS: Final = ("prod", "prod-2", "2024", "A_b-9", "x" * 100)
_AT: Final = datetime(2026, 11, 29, tzinfo=UTC)
# What our bus delivers; what is not here goes nowhere.
_OURS: Final = {
    MessageKind.POD_PENDING: {"Wake"},
    MessageKind.PROVISIONER_CHANGED: {"Wake"},
    MessageKind.NODE_EMPTY: {"NodeEmpty"},
    MessageKind.NODE_READY: {"NodeReady"},
    MessageKind.NODE_DELETED: {"NodeDeleted"},
    MessageKind.HEARTBEAT: {"Heartbeat"},
}
_STATES: Final = {
    "pending": "",
    "running": "",
    "stopping": "StateChange",
    "stopped": "StateChange",
    "shutting-down": "StateChange",
    "terminated": "StateChange",
}


def ask(control_plane: Template) -> Verdict:
    """Ask of each event on each bus.

    Raises:
        Problem: If there is no Java or Maven, or the jars cannot be had.
    """
    path = jars()
    buses = [
        {"rules": _rules(control_plane, ours=ours), "events": [event for event, _ in events]}
        for ours, events in ((True, _ON_OURS), (False, _ON_DEFAULT))
    ]
    with tempfile.TemporaryDirectory(prefix="dovetail-ruler-") as folder:
        file = Path(folder) / "buses.json"
        file.write_text(json.dumps(buses), encoding="utf-8")
        program = str(HERE / "ruler" / "Judge.java")
        matched = json.loads(run(["java", "-cp", ":".join(map(str, path)), program, str(file)]))
    disagreements = [
        f"{json.dumps(event)[:300]}: {sorted(wanted)} should match, {names} do"
        for events, found in zip((_ON_OURS, _ON_DEFAULT), matched, strict=True)
        for (event, wanted), names in zip(events, found, strict=True)
        if sorted(wanted) != names
    ]
    (ruler,) = [entry.stem for entry in path if entry.name.startswith("event-ruler-")]
    asked = sum(len(bus["rules"]) * len(bus["events"]) for bus in buses)
    version = ruler.removeprefix("event-ruler-")
    return Verdict(version=version, asked=asked, disagreements=tuple(disagreements))


def _rules(template: Template, *, ours: bool) -> dict[str, Any]:
    """Return the patterns of the rules on our bus or on the default one, by short name."""
    return {
        rule.logical_id.removeprefix(_BEGINS)[:-_HASH]: rule.properties["EventPattern"]
        for rule in template.of("AWS::Events::Rule")
        if "EventPattern" in rule.properties and ("EventBusName" in rule.properties) == ours
    }


def _of_forwarders() -> Iterator[tuple[Event, set[str]]]:
    for cluster in _CLUSTERS:
        for kind in MessageKind:
            for leading in (False, True):
                event = encode(make_message(kind, cluster, _AT, leading=leading))
                fast = {"FastLane"} if leading and kind in FAST else set()
                yield _whole(**event), _OURS.get(kind, set()) | fast


def _strangers() -> Iterator[tuple[Event, set[str]]]:
    """Yield what others may put on our bus: a source or a kind like one of ours is none."""
    event = encode(make_message(MessageKind.POD_PENDING, "prod", _AT, leading=True))
    for source in ("dovetail", "Dovetail.prod", "xdovetail.prod", " dovetail.prod", "aws.ec2"):
        yield _whole(**{**event, "source": source}), set()
    for kind in ("Pod-Pending", "pod-pending ", "pod", "*", ""):
        yield _whole(**{**event, "detail-type": kind}), set()
    odd: tuple[Any, ...] = ("true", 1, None, [], {"x": True})
    for leading in odd:
        detail = {**event["detail"], "leading": leading}
        yield _whole(**{**event, "detail": detail}), {"Wake"}
    # Whose it is, functions compare; a name that no cluster has is delivered and set aside.
    for source in ("dovetail.", 'dovetail."', "dovetail.*", "dovetail.ü"):
        yield _whole(**{**event, "source": source}), {"FastLane", "Wake"}


def _of_ec2() -> Iterator[tuple[Event, set[str]]]:
    about = {"instance-id": "i-0a"}
    for kind, rule in (
        ("EC2 Spot Instance Interruption Warning", "SpotInterruption"),
        ("EC2 Instance Rebalance Recommendation", "Rebalance"),
        ("EC2 Instance Launch Successful", ""),
        ("EC2 Fleet Instance Change", ""),
    ):
        yield _of_aws("aws.ec2", kind, about), {rule} - {""}
    for state, rule in _STATES.items():
        said = {**about, "state": state}
        yield _of_aws("aws.ec2", "EC2 Instance State-change Notification", said), {rule} - {""}


def _of_health() -> Iterator[tuple[Event, set[str]]]:
    for service in ("EC2", "RDS", "EKS", "ec2"):
        for category in ("scheduledChange", "issue", "accountNotification", "investigation"):
            detail = {
                "service": service,
                "eventTypeCategory": category,
                "affectedEntities": [{"entityValue": "i-0a"}, {"entityValue": "i-0b"}],
            }
            heard = service == "EC2" and category == "scheduledChange"
            event = _of_aws("aws.health", "AWS Health Event", detail)
            yield event, {"ScheduledChange"} if heard else set()


def _of_cloudformation() -> Iterator[tuple[Event, set[str]]]:
    ours = PSEUDO["AWS::StackId"]
    for stack in (ours, f"{ours}-2", ours.replace("ControlPlane", "Cluster-prod")):
        for status in ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"):
            detail = {"stack-id": stack, "status-details": {"status": status}}
            heard = stack == ours and "ROLLBACK" not in status
            event = _of_aws("aws.cloudformation", "CloudFormation Stack Status Change", detail)
            yield event, {"Deployed"} if heard else set()


def _of_aws(source: str, kind: str, detail: Event) -> Event:
    return _whole(**{"source": source, "detail-type": kind, "detail": detail})


def _whole(**said: Any) -> Event:
    """Return an event with what EventBridge adds to what was put."""
    return {
        "version": "0",
        "id": "6a7e8feb-b491-4cf7-a9f1-bf3703467718",
        "account": PSEUDO["AWS::AccountId"],
        "time": "2026-11-29T00:00:00Z",
        "region": PSEUDO["AWS::Region"],
        "resources": [],
        **said,
    }


_ON_OURS: Final = [
    *_of_forwarders(),
    *_strangers(),
    *((event, set[str]()) for event, _ in (*_of_ec2(), *_of_health())),
]
_ON_DEFAULT: Final = [
    *_of_ec2(),
    *_of_health(),
    *_of_cloudformation(),
    *((event, set[str]()) for event, _ in (*_of_forwarders(), *_strangers())),
]
