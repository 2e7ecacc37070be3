import http.client
import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from tests.local.aws.lab import LOG_ACTIONS, Lab, package
from tests.waiting import until

MODULE = """
import os, random, sys, time
STATE = {"colour": os.environ["COLOUR"], "random": random.random(), "path": sys.path[0]}

def handler(event, context):
    time.sleep(event.get("seconds", 0))
    return STATE | {"pid": os.getpid(), "parent": os.getppid(), "folder": os.getcwd()}
"""


@pytest.fixture
def function(lab: Lab) -> str:
    return lab.function(Environment={"Variables": {"COLOUR": "green"}})


def test_a_handler_sees_what_lambda_gives_it(lab: Lab, function: str) -> None:
    names = ["COLOUR", "AWS_REGION", "AWS_LAMBDA_FUNCTION_NAME", "AWS_ENDPOINT_URL", "HOME"]
    answer, error = lab.invoke(function, {"names": names})
    assert error is None
    assert answer["env"] == {
        "COLOUR": "green",
        "AWS_REGION": "us-east-1",
        "AWS_LAMBDA_FUNCTION_NAME": function,
        "AWS_ENDPOINT_URL": lab.aws.url,
        "HOME": None,
    }
    assert answer["arn"].endswith(f":function:{function}")
    assert 0 < answer["left"] <= 60_000


def test_a_function_runs_under_its_own_role(lab: Lab) -> None:
    name = lab.function()
    role = lab.aws.client("lambda").get_function(FunctionName=name)["Configuration"]["Role"]
    caller, _ = lab.invoke(name, {"do": "caller"})
    role_name = role.rsplit("/", 1)[-1]
    assert caller == f"arn:aws:sts::123456789012:assumed-role/{role_name}/{name}"


def test_a_warm_environment_is_used_again(lab: Lab, function: str) -> None:
    pids = {lab.invoke(function, {})[0]["pid"] for _ in range(20)}
    assert len(pids) == 1
    assert [row["cold"] for row in lab.invocations(function)] == [True] + [False] * 19


def test_each_environment_runs_the_code_of_its_module(lab: Lab) -> None:
    names = [
        lab.function(source=MODULE, Environment={"Variables": {"COLOUR": colour}})
        for colour in ("green", "blue")
    ]
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(lab.invoke, name, {"seconds": 1}) for name in names * 2]
        states = [call.result()[0] for call in calls]
    assert [state["colour"] for state in states] == ["green", "blue"] * 2
    assert len({state["random"] for state in states}) == len({state["pid"] for state in states})
    assert {state["path"] for state in states} == {state["folder"] for state in states}


def test_environments_start_when_what_they_are_forked_from_was_killed(lab: Lab) -> None:
    name = lab.function(source=MODULE, Environment={"Variables": {"COLOUR": "green"}})
    before, _ = lab.invoke(name, {})
    os.kill(before["parent"], signal.SIGKILL)

    # The environment lives on until the server knows of it.
    until(lambda: lab.invoke(name, {})[0]["pid"] != before["pid"])


def test_an_exception_keeps_its_class_and_the_environment(lab: Lab, function: str) -> None:
    before, _ = lab.invoke(function, {})
    answer, error = lab.invoke(function, {"do": "fail"})
    after, _ = lab.invoke(function, {})
    assert error == "Unhandled"
    assert answer["errorType"] == "LaunchFailed"
    assert answer["errorMessage"] == "asked to"
    assert any("functions/app.py" in line for line in answer["stackTrace"])
    assert after["pid"] == before["pid"]


def test_a_timeout_ends_the_environment(lab: Lab) -> None:
    name = lab.function(Timeout=5)
    before, _ = lab.invoke(name, {})
    answer, error = lab.invoke(name, {"do": "sleep", "seconds": 60})
    after, _ = lab.invoke(name, {})
    assert error == "Unhandled"
    assert answer["errorType"] == "Sandbox.Timedout"
    assert after["pid"] != before["pid"]


def test_an_exit_is_reported_with_its_status(lab: Lab, function: str) -> None:
    answer, error = lab.invoke(function, {"do": "exit"})
    assert error == "Unhandled"
    assert answer["errorType"] == "Runtime.ExitError"
    assert "exit status 3" in answer["errorMessage"]


def test_a_module_that_is_missing_fails_the_initialisation(lab: Lab) -> None:
    name = lab.function(Handler="functions.absent.handler")
    answer, error = lab.invoke(name, {})
    assert error == "Unhandled"
    assert answer["errorType"] == "Runtime.ImportModuleError"


def test_a_function_cannot_import_the_local_world(lab: Lab, function: str) -> None:
    answer, _ = lab.invoke(function, {"do": "infra"})
    assert answer["errorType"] == "ModuleNotFoundError"


def test_an_unknown_function_is_refused(lab: Lab) -> None:
    with pytest.raises(ClientError) as caught:
        lab.invoke("absent", {})
    assert caught.value.response["Error"]["Code"] == "ResourceNotFoundException"


def test_reserved_concurrency_throttles(lab: Lab) -> None:
    name = lab.function()
    lab.aws.client("lambda").put_function_concurrency(
        FunctionName=name, ReservedConcurrentExecutions=0
    )
    connection = http.client.HTTPConnection(lab.aws.url.removeprefix("http://"))
    path = f"/2015-03-31/functions/{name}/invocations"
    headers = lab.sign("lambda", "POST", path, b"{}")
    connection.request("POST", path, body=b"{}", headers=headers)
    response = connection.getresponse()
    assert response.status == 429
    assert response.headers["x-amzn-ErrorType"] == "TooManyRequestsException"
    assert "ReservedFunctionConcurrent" in json.loads(response.read())["Reason"]
    connection.close()


def test_new_code_and_new_settings_get_fresh_environments(lab: Lab) -> None:
    name = lab.function()
    first, _ = lab.invoke(name, {})
    lab.aws.client("lambda").update_function_configuration(
        FunctionName=name, Environment={"Variables": {"COLOUR": "blue"}}
    )
    second, _ = lab.invoke(name, {"names": ["COLOUR"]})
    source = "def handler(event, context):\n    return 'new'\n"
    lab.aws.client("lambda").update_function_code(FunctionName=name, ZipFile=package(source))
    third, _ = lab.invoke(name, {})
    assert second["pid"] != first["pid"]
    assert second["env"] == {"COLOUR": "blue"}
    assert third == "new"


def print_line(lab: Lab, function: str, text: str, log_dir: Path) -> None:
    """Have a function print a line; it is on its way to the log group when this returns."""
    lab.invoke(function, {"do": "print", "text": text})
    file = log_dir / f"{function}.log"
    until(lambda: file.exists() and text in file.read_text())


def logged(lab: Lab, function: str) -> list[str]:
    """The lines in the log group of a function; none where it has no group."""
    logs = lab.aws.client("logs")
    try:
        events = logs.filter_log_events(logGroupName=f"/aws/lambda/{function}")["events"]
    except logs.exceptions.ResourceNotFoundException:
        return []
    return [event["message"] for event in events]


def copy_line(lab: Lab, function: str, text: str, log_dir: Path) -> None:
    """Have a function print a line, and wait until it is in the log group, too."""
    print_line(lab, function, text, log_dir)
    until(lambda: text in logged(lab, function))


def test_output_reaches_the_file_and_the_log_group(lab: Lab, function: str, log_dir: Path) -> None:
    copy_line(lab, function, "a line to find", log_dir)


def test_a_late_line_makes_a_deleted_log_group_again(
    lab: Lab, function: str, log_dir: Path
) -> None:
    copy_line(lab, function, "early", log_dir)
    lab.aws.client("logs").delete_log_group(logGroupName=f"/aws/lambda/{function}")
    copy_line(lab, function, "late", log_dir)
    assert logged(lab, function) == ["late"]


@pytest.mark.parametrize("lacking", LOG_ACTIONS)
def test_lines_are_dropped_where_the_role_lacks_a_right(
    lab: Lab, function: str, lacking: str, log_dir: Path
) -> None:
    rights = (action for action in LOG_ACTIONS if action != lacking)
    muted = lab.function(Role=lab.role(*rights))
    print_line(lab, muted, "a line", log_dir)
    # All that is on its way is copied at a time: after the second, the first is done with.
    copy_line(lab, function, "first", log_dir)
    copy_line(lab, function, "second", log_dir)
    made = lab.aws.client("logs").describe_log_groups()["logGroups"]
    assert logged(lab, muted) == []
    assert (f"/aws/lambda/{muted}" in {group["logGroupName"] for group in made}) == (
        lacking != "logs:CreateLogGroup"
    )


def test_invocations_are_recorded(lab: Lab) -> None:
    name = lab.function()
    lab.invoke(name, {})
    lab.invoke(name, {"do": "fail"})
    rows = lab.invocations(name)
    assert [row["error"] for row in rows] == [None, "LaunchFailed"]
    assert [row["cold"] for row in rows] == [True, False]
    assert all(row["durationMillis"] > 0 for row in rows)
