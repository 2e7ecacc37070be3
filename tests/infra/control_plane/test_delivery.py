from typing import Any

import pytest

from infra.aws.names import FORWARDED
from shared.model.messages import message
from shared.model.messages.message import SOURCE_PREFIX, MessageKind
from tests.infra.templates import Resource, Template

NOTICES = {
    "EC2 Spot Instance Interruption Warning",
    "EC2 Capacity Reservation Instance Interruption Warning",
    "EC2 Instance Rebalance Recommendation",
    "EC2 Instance State-change Notification",
    "AWS Health Event",
}


def _pattern(rule: Resource) -> dict[str, Any]:
    found: dict[str, Any] = rule.properties.get("EventPattern", {})
    return found


def _target(rule: Resource) -> str:
    (target,) = rule.raw["Properties"]["Targets"]
    logical_id: str = target["Arn"]["Fn::GetAtt"][0]
    return logical_id


def _rules_of(template: Template, function: str) -> list[Resource]:
    rules = template.of("AWS::Events::Rule")
    return [rule for rule in rules if _target(rule).startswith(f"{function}Function")]


def _routes(template: Template) -> set[tuple[str, str]]:
    """Return (detail-type, target) of every rule on our bus."""
    return {
        (kind, _target(rule).split("Function")[0].split("FE05")[0])
        for rule in template.of("AWS::Events::Rule")
        if _pattern(rule).get("source") == [{"prefix": SOURCE_PREFIX}]
        for kind in _pattern(rule)["detail-type"]
    }


def test_every_message_is_delivered_as_the_design_says(control_plane: Template) -> None:
    assert _routes(control_plane) == {
        ("pod-pending", "QueuesWake"),
        ("pod-pending", "Provision"),
        ("provisioner-changed", "QueuesWake"),
        ("node-empty", "Emptiness"),
        ("node-ready", "Bind"),
        ("node-deleted", "Termination"),
        ("heartbeat", "Heartbeat"),
    }
    sent_by_functions = {MessageKind.EVALUATE, MessageKind.RESUME, MessageKind.SWEEP}
    assert {kind for kind, _ in _routes(control_plane)} == set(MessageKind) - sent_by_functions
    assert set(FORWARDED) == set(message.FORWARDED) == set(MessageKind) - sent_by_functions


def test_every_rule_has_a_target_with_a_dead_letter_queue(control_plane: Template) -> None:
    rules = control_plane.of("AWS::Events::Rule")

    assert len(rules) == 14
    for rule in rules:
        (target,) = rule.raw["Properties"]["Targets"]
        queue = target["DeadLetterConfig"]["Arn"]["Fn::GetAtt"][0]
        assert queue.startswith("QueuesDeadLetters")


def test_every_rule_may_call_its_target(control_plane: Template) -> None:
    permitted = {
        (resource.raw["Properties"]["FunctionName"]["Fn::GetAtt"][0], source["Fn::GetAtt"][0])
        for resource in control_plane.of("AWS::Lambda::Permission")
        for source in [resource.raw["Properties"]["SourceArn"]]
        if resource.properties["Principal"] == "events.amazonaws.com"
    }
    calling = {
        (_target(rule), rule.logical_id)
        for rule in control_plane.of("AWS::Events::Rule")
        if "Function" in _target(rule)
    }

    assert permitted == calling


def test_the_fast_lane_takes_only_the_first_event_and_never_repeats_it(
    control_plane: Template,
) -> None:
    (rule,) = _rules_of(control_plane, "Provision")
    (target,) = rule.properties["Targets"]

    assert _pattern(rule)["detail"] == {"leading": [True]}
    assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 60, "MaximumRetryAttempts": 0}


def test_rules_for_our_messages_are_on_our_bus_and_the_others_on_the_default_one(
    control_plane: Template,
) -> None:
    (bus,) = control_plane.of("AWS::Events::EventBus")
    for rule in control_plane.of("AWS::Events::Rule"):
        on_ours = rule.raw["Properties"].get("EventBusName") == {"Ref": bus.logical_id}
        assert on_ours == (_pattern(rule).get("source") == [{"prefix": SOURCE_PREFIX}])

    assert bus.properties["Name"] == "dovetail"


def test_interrupt_hears_what_aws_says_of_machines(control_plane: Template) -> None:
    rules = _rules_of(control_plane, "Interrupt")
    details = {kind: _pattern(rule) for rule in rules for kind in _pattern(rule)["detail-type"]}

    assert set(details) == NOTICES
    assert details["EC2 Instance State-change Notification"]["detail"]["state"] == [
        "stopping",
        "stopped",
        "shutting-down",
        "terminated",
    ]
    assert details["AWS Health Event"]["detail"] == {
        "service": ["EC2"],
        "eventTypeCategory": ["scheduledChange"],
    }


def test_queues_take_events_only_from_rules_of_this_stack(control_plane: Template) -> None:
    rules = {resource.logical_id for resource in control_plane.of("AWS::Events::Rule")}
    senders: dict[str, set[str]] = {}
    for policy in control_plane.of("AWS::SQS::QueuePolicy"):
        for statement in policy.raw["Properties"]["PolicyDocument"]["Statement"]:
            if statement["Effect"] == "Allow":
                assert statement["Action"] == "sqs:SendMessage" or policy.logical_id.startswith(
                    "QueuesWakePolicy"
                )
                source = statement["Condition"]["ArnEquals"]["aws:SourceArn"]["Fn::GetAtt"][0]
                queue = statement["Resource"]["Fn::GetAtt"][0]
                senders.setdefault(queue[:16], set()).add(source)

    assert set(senders) == {"QueuesWakeFE05E1", "QueuesDeadLetter"}
    assert senders["QueuesDeadLetter"] == rules
    assert len(senders["QueuesWakeFE05E1"]) == 1


@pytest.mark.parametrize(
    ("rate", "function"), [("rate(1 minute)", "Sweep"), ("rate(1 hour)", "RefreshCatalog")]
)
def test_schedules_wake_their_function(control_plane: Template, rate: str, function: str) -> None:
    rule = control_plane.one("AWS::Events::Rule", ScheduleExpression=rate)
    assert _target(rule).startswith(f"{function}Function")


def test_the_catalogue_is_written_once_the_stack_is_complete_and_again_if_that_fails(
    control_plane: Template,
) -> None:
    rule = control_plane.one("AWS::Events::Rule", "DeliveryDeployed")
    (target,) = rule.properties["Targets"]

    assert rule.raw["Properties"]["EventPattern"]["detail"] == {
        "stack-id": [{"Ref": "AWS::StackId"}],
        "status-details": {"status": ["CREATE_COMPLETE", "UPDATE_COMPLETE"]},
    }
    assert _target(rule).startswith("RefreshCatalogFunction")
    assert target["RetryPolicy"]["MaximumRetryAttempts"] >= 2
    hourly = control_plane.one("AWS::Events::Rule", "DeliveryEveryHour")
    assert hourly.properties["Targets"][0]["RetryPolicy"]["MaximumRetryAttempts"] == 2
