import http.client
import json
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from tests.local.aws.lab import Lab, package


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
    assert 4_000 < answer["left"] <= 5_000


def test_a_function_runs_under_its_own_role(lab: Lab) -> None:
    name = lab.function(Timeout=20)
    role = lab.aws.client("lambda").get_function(FunctionName=name)["Configuration"]["Role"]
    caller, _ = lab.invoke(name, {"do": "caller"})
    role_name = role.rsplit("/", 1)[-1]
    assert caller == f"arn:aws:sts::123456789012:assumed-role/{role_name}/{name}"


def test_a_warm_environment_is_used_again(lab: Lab, function: str) -> None:
    pids = {lab.invoke(function, {})[0]["pid"] for _ in range(20)}
    assert len(pids) == 1
    assert [row["cold"] for row in lab.invocations(function)] == [True] + [False] * 19


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
    name = lab.function(Timeout=1)
    before, _ = lab.invoke(name, {})
    answer, error = lab.invoke(name, {"do": "sleep", "seconds": 9})
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


def test_output_reaches_the_file_and_the_log_group(lab: Lab, function: str, log_dir: Path) -> None:
    lab.invoke(function, {"do": "print", "text": "a line to find"})
    logs = lab.aws.client("logs")
    group = f"/aws/lambda/{function}"

    def found() -> bool:
        try:
            events = logs.filter_log_events(logGroupName=group, filterPattern="")["events"]
        except ClientError:
            return False
        return any("a line to find" in event["message"] for event in events)

    lab.wait(found)
    assert "a line to find" in (log_dir / f"{function}.log").read_text()


def test_invocations_are_recorded(lab: Lab) -> None:
    name = lab.function()
    lab.invoke(name, {})
    lab.invoke(name, {"do": "fail"})
    rows = lab.invocations(name)
    assert [row["error"] for row in rows] == [None, "LaunchFailed"]
    assert [row["cold"] for row in rows] == [True, False]
    assert all(row["durationMillis"] > 0 for row in rows)
