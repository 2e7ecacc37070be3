import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.aws.lab import Lab
from tests.waiting import until

WAIT = {"StartAt": "W", "States": {"W": {"Type": "Wait", "SecondsPath": "$.seconds", "End": True}}}


def machine(lab: Lab, definition: dict[str, Any] = WAIT) -> str:
    made = lab.aws.client("stepfunctions").create_state_machine(
        name=lab.name("machine"), roleArn=lab.role(), definition=json.dumps(definition)
    )
    return str(made["stateMachineArn"])


def task(function: str, **state: Any) -> dict[str, Any]:
    invoke = {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke",
        "Parameters": {"FunctionName": function, "Payload.$": "$"},
        "End": True,
    }
    return {"StartAt": "T", "States": {"T": invoke | state}}


def start(lab: Lab, arn: str, given: Any, **settings: Any) -> str:
    answer = lab.aws.client("stepfunctions").start_execution(
        stateMachineArn=arn, input=json.dumps(given), **settings
    )
    return str(answer["executionArn"])


def happened(lab: Lab, execution: str) -> set[str]:
    """Return the types of the events in an execution's history."""
    client = lab.aws.client("stepfunctions")
    return {row["type"] for row in client.get_execution_history(executionArn=execution)["events"]}


def finished(lab: Lab, arn: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        found = lab.aws.client("stepfunctions").describe_execution(executionArn=arn)
        return None if found["status"] == "RUNNING" else dict(found)

    return dict(until(look))


def test_a_task_runs_the_real_handler(lab: Lab) -> None:
    done = finished(lab, start(lab, machine(lab, task(lab.function())), {"pods": 3}))
    assert done["status"] == "SUCCEEDED"
    assert json.loads(done["output"])["Payload"]["event"] == {"pods": 3}


def test_an_exception_is_caught_by_its_class_name(lab: Lab) -> None:
    definition = task(
        lab.function(),
        Catch=[{"ErrorEquals": ["LaunchFailed"], "Next": "Known"}],
    )
    definition["States"]["Known"] = {"Type": "Pass", "Result": "known", "End": True}
    done = finished(lab, start(lab, machine(lab, definition), {"do": "fail"}))
    assert json.loads(done["output"]) == "known"


def test_a_task_may_answer_with_execution_dates(lab: Lab) -> None:
    definition = {
        "StartAt": "P",
        "States": {
            "P": {"Type": "Pass", "Parameters": {"at.$": "$$.Execution.StartTime"}, "End": True}
        },
    }
    done = finished(lab, start(lab, machine(lab, definition), {}))
    assert json.loads(done["output"])["at"].startswith("20")


def test_waits_take_their_real_time(lab: Lab) -> None:
    done = finished(lab, start(lab, machine(lab), {"seconds": 1}))
    assert (done["stopDate"] - done["startDate"]).total_seconds() > 0.9


def test_a_nameless_execution_gets_a_name(lab: Lab) -> None:
    arn = start(lab, machine(lab), {"seconds": 0})
    assert len(arn.rsplit(":", 1)[-1]) == 36


@pytest.mark.parametrize("name", ["a" * 81, "with space", "slash/ed", "colon:ed"])
def test_names_are_checked(lab: Lab, name: str) -> None:
    with pytest.raises(ClientError) as caught:
        start(lab, machine(lab), {"seconds": 0}, name=name)
    assert caught.value.response["Error"]["Code"] == "InvalidName"


def test_a_large_input_is_refused(lab: Lab) -> None:
    with pytest.raises(ClientError) as caught:
        start(lab, machine(lab), {"x": "x" * 262_144})
    assert caught.value.response["Error"]["Code"] == "InvalidExecutionInput"


def test_a_name_is_taken_while_running_and_after(lab: Lab) -> None:
    arn = machine(lab)
    first = start(lab, arn, {"seconds": 600}, name="timer")
    assert start(lab, arn, {"seconds": 600}, name="timer") == first
    client = lab.aws.client("stepfunctions")
    with pytest.raises(client.exceptions.ExecutionAlreadyExists):
        start(lab, arn, {"seconds": 2}, name="timer")
    client.stop_execution(executionArn=first)
    finished(lab, first)
    with pytest.raises(client.exceptions.ExecutionAlreadyExists):
        start(lab, arn, {"seconds": 600}, name="timer")


def test_a_stop_keeps_error_and_cause(lab: Lab) -> None:
    arn = start(lab, machine(lab), {"seconds": 60})
    lab.aws.client("stepfunctions").stop_execution(
        executionArn=arn, error="Superseded", cause="a newer timer runs"
    )
    done = finished(lab, arn)
    assert (done["status"], done["error"]) == ("ABORTED", "Superseded")
    assert done["cause"] == "a newer timer runs"


def test_many_executions_run_beside_each_other(lab: Lab) -> None:
    arn = machine(lab)
    runs = [start(lab, arn, {"seconds": 600}) for _ in range(30)]
    client = lab.aws.client("stepfunctions")
    until(lambda: all("WaitStateEntered" in happened(lab, run) for run in runs))
    assert {client.describe_execution(executionArn=run)["status"] for run in runs} == {"RUNNING"}
    for run in runs:
        client.stop_execution(executionArn=run)
