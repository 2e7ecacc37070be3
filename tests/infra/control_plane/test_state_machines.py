import json
import re
from typing import Any

import pytest

from infra.aws.components.timer_machine import DEFINITION
from shared.kube.api import ExpiredError
from shared.model import errors
from shared.nodes.timers.node_timer import MAX_STEPS
from tests.infra.templates import Template, walk

# States.HeartbeatTimeout and the like cannot happen here: no heartbeat is asked for.
SERVICE_ERRORS = {
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    "Lambda.TooManyRequestsException",
    "Lambda.ClientExecutionTimeoutException",
    # A function in subnets that rested for weeks, or whose interfaces are being made.
    "Lambda.EC2ThrottledException",
    "Lambda.EC2UnexpectedException",
    "Lambda.ENILimitReachedException",
    "Lambda.ResourceConflictException",
    "Lambda.ResourceNotReadyException",
    "Lambda.SubnetIPAddressLimitReachedException",
    "Lambda.Unknown",
    "Sandbox.Timedout",
    "Runtime.ExitError",
    "States.Timeout",
}
TIMERS = ("Emptiness", "Expiration", "Registration", "Replacement", "Termination")


@pytest.fixture(scope="module")
def definition() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(DEFINITION.read_text())
    return read


def test_no_state_leads_nowhere_and_each_is_reached(definition: dict[str, Any]) -> None:
    states = definition["States"]
    named = {definition["StartAt"]} | {
        node[key]
        for node in walk(states)
        if isinstance(node, dict)
        for key in ("Next", "Default")
        if key in node
    }

    assert named == set(states)
    for state in states.values():
        assert state["Type"] in {"Choice", "Succeed"} or "Next" in state


def test_only_jsonpath_is_used(definition: dict[str, Any]) -> None:
    assert definition["QueryLanguage"] == "JSONPath"
    assert not re.search(r"\{%|Assign|Arguments", json.dumps(definition))


def test_lengths_of_waits_are_in_the_state(definition: dict[str, Any]) -> None:
    waits = [state for state in definition["States"].values() if state["Type"] == "Wait"]

    assert [wait["SecondsPath"] for wait in waits] == ["$.wait_seconds"]
    assert not any("Seconds" in wait or "Timestamp" in wait for wait in waits)


def test_exactly_the_retryable_errors_are_retried(
    definition: dict[str, Any],
) -> None:
    (retry,) = definition["States"]["Step"]["Retry"]
    # The adapter to Kubernetes has one of its own, which a long list may end with.
    assert issubclass(ExpiredError, errors.RetryableError)
    ours = {subclass.__name__ for subclass in errors.RetryableError.__subclasses__()}

    assert set(retry["ErrorEquals"]) == ours | SERVICE_ERRORS
    assert "Catch" not in json.dumps(definition)


def test_repeating_never_fills_the_history_of_an_execution(definition: dict[str, Any]) -> None:
    (retry,) = definition["States"]["Step"]["Retry"]
    # Scheduled, started, failed; Wait and Decide are entered and left, Step is and succeeds.
    events_of_an_attempt, events_of_a_step, first_and_last = 3, 2 + 5 + 2, 4
    attempts = retry["MaxAttempts"] * events_of_an_attempt

    assert attempts + MAX_STEPS * events_of_a_step + first_and_last < 25_000
    assert retry["MaxAttempts"] * retry["MaxDelaySeconds"] > 4 * 24 * 3600
    assert retry["JitterStrategy"] == "FULL"


def test_a_step_may_take_as_long_as_its_function(
    control_plane: Template, definition: dict[str, Any]
) -> None:
    longest = max(
        resource.properties["Timeout"]
        for resource in control_plane.of("AWS::Lambda::Function")
        if resource.properties["Handler"].split(".")[1].capitalize() in TIMERS
    )

    assert definition["States"]["Step"]["TimeoutSeconds"] > longest


@pytest.mark.parametrize("timer", TIMERS)
def test_each_timer_takes_its_steps_in_its_own_function(
    control_plane: Template, timer: str
) -> None:
    machine = control_plane.one("AWS::StepFunctions::StateMachine", f"{timer}Machine")
    function = machine.raw["Properties"]["DefinitionSubstitutions"]["FunctionArn"]
    role = machine.raw["Properties"]["RoleArn"]["Fn::GetAtt"][0]

    assert function["Fn::GetAtt"][0].startswith(f"{timer}Function")
    assert machine.properties["DefinitionString"] == DEFINITION.read_text()
    assert machine.properties["StateMachineType"] == "STANDARD"
    (statement,) = control_plane.statements(role)
    assert statement["Action"] == "lambda:InvokeFunction"
    assert statement["Resource"].endswith(f":dovetail-{timer.lower()}")
