import http.client
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from infra.local.aws import ControlError, EmbeddedAws, Options
from infra.local.aws.control import Control
from infra.local.aws.repairs import REPAIRS
from tests.local.aws.lab import Lab
from tests.waiting import until

SELF_TESTS = {
    "buckets-policies": "test_a_policy_with_a_condition_does_not_lock_the_bucket",
    "events-cloudformation": "test_everything_the_templates_declare_exists",
    "events-delivery": "test_a_missing_target_harms_neither_the_caller_nor_the_others",
    "events-refusals": "test_a_target_that_is_not_emulated_is_refused_when_it_is_put",
    "machines-clients": "test_many_executions_run_beside_each_other",
    "machines-execute": "test_a_task_runs_the_real_handler",
    "machines-outputs": "test_a_task_may_answer_with_execution_dates",
    "machines-start": "test_names_are_checked",
    "machines-stop": "test_a_stop_keeps_error_and_cause",
    "machines-templates": "test_event_passes_through_a_deployed_stack",
    "permissions-by-action": "test_a_missing_permission_is_recorded",
    "permissions-linked-roles": "test_linked_roles_have_the_names_that_iam_gives_them",
    "permissions-profiles": "test_instance_profiles_are_listed_by_path",
    "speed-answers": "test_an_answer_is_the_same_once_its_names_are_known",
    "speed-expressions": "test_an_expression_is_read_anew_each_time",
    "speed-models": "test_many_executions_run_beside_each_other",
    "speed-routing": "test_an_answer_is_the_same_once_its_names_are_known",
    "speed-templates": "test_a_template_is_written_in_json_or_yaml",
    "sqs-atomic-operations": "test_receivers_beside_each_other_never_share_a_message",
    "sqs-clock": "test_a_backlog_stays_cheap",
    "sqs-no-built-in-mapping": "test_a_small_batch_size_is_kept",
    "tables-atomic-operations": "test_a_transaction_that_fails_takes_back_nothing_of_others",
    "templates-failures": "test_a_resource_that_cannot_be_made_fails_the_stack",
    "templates-functions": "test_a_deployed_function_has_its_properties",
    "templates-lists": "test_an_entry_of_a_list_that_has_no_value_is_left_out",
    "templates-parameters": "test_everything_the_templates_declare_exists",
    "templates-tables": "test_a_deployed_function_has_its_properties",
    "templates-types": "test_everything_the_templates_declare_exists",
    "sqs-traces": "test_a_loop_over_a_queue_ends_in_the_dead_letters_after_sixteen_invocations",
    "templates-urls": "test_a_template_may_be_read_by_an_address_with_numbers",
}


def is_alive(pid: int) -> bool:
    """Return whether a process runs; a zombie does not count."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[-1].split()[0]
    except OSError:
        return False
    return state != "Z"


def await_end(pids: list[int]) -> None:
    until(lambda: not any(is_alive(pid) for pid in pids), f"the end of {pids}")


def test_every_repair_has_a_self_test() -> None:
    assert REPAIRS.keys() == SELF_TESTS.keys()
    text = "".join(file.read_text() for file in Path(__file__).parent.rglob("test_*.py"))
    assert [name for name in SELF_TESTS.values() if f"def {name}(" not in text] == []


def test_a_stopped_server_leaves_no_process() -> None:
    with EmbeddedAws(Options(workers=2)) as aws:
        lab = Lab(aws)
        name = lab.function()
        lab.invoke(name, {})
        aws.client("lambda").invoke(
            FunctionName=name,
            Payload=json.dumps({"do": "sleep", "seconds": 4}),
            InvocationType="Event",
        )
        pids = until(lambda: [*aws.control("status")["workers"]])
        assert aws.pid not in pids
    await_end([aws.pid, *pids])


def test_a_killed_server_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # It has no time to remove its files.
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with EmbeddedAws(Options(workers=2)) as aws:
        lab = Lab(aws)
        lab.invoke(lab.function(), {})
        pids = list(aws.control("status")["workers"])
        assert len(pids) == 1
        os.kill(aws.pid, signal.SIGKILL)
    await_end([aws.pid, *pids])


def test_a_reset_forgets_everything() -> None:
    with EmbeddedAws(Options(workers=2)) as aws:
        lab = Lab(aws)
        lab.invoke(lab.function(), {})
        url, _ = lab.queue()
        pids = list(aws.control("status")["workers"])
        aws.reset()
        await_end(pids)
        assert aws.client("sqs").list_queues().get("QueueUrls", []) == []
        assert aws.client("lambda").list_functions()["Functions"] == []
        assert aws.control("functions/invocations")["invocations"] == []
        assert lab.queue()[0] != url
        assert lab.invoke(lab.function(), {})[1] is None


def test_a_connection_is_kept(lab: Lab) -> None:
    path = "/_dovetail/status"
    connection = http.client.HTTPConnection(lab.aws.url.removeprefix("http://"))
    connection.request("POST", path, headers=lab.sign("dovetail", "POST", path))
    assert connection.getresponse().read()
    first = connection.sock
    headers = lab.sign("dovetail", "POST", path, b"{}")
    connection.request("POST", path, body=b"{}", headers=headers)
    assert connection.getresponse().status == 200
    assert connection.sock is first
    connection.close()


def test_a_bad_body_of_a_verb_is_refused(lab: Lab) -> None:
    path = "/_dovetail/status"
    connection = http.client.HTTPConnection(lab.aws.url.removeprefix("http://"))
    headers = lab.sign("dovetail", "POST", path, b"[1]")
    connection.request("POST", path, body=b"[1]", headers=headers)
    response = connection.getresponse()
    assert response.status == 400
    assert "not a JSON object" in json.loads(response.read())["error"]
    connection.close()


def test_what_moto_cannot_do_is_said_at_once(lab: Lab) -> None:
    with pytest.raises(ClientError) as caught:
        lab.aws.client("eks").describe_cluster_versions()
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] in {404, 501}
    with pytest.raises(ClientError) as caught:
        lab.aws.client("sqs").start_message_move_task(SourceArn=lab.queue()[1])
    assert caught.value.response["Error"]["Code"] == "NotEmulated"
    assert caught.value.response["ResponseMetadata"]["RetryAttempts"] == 0


def test_chunked_bodies_and_metadata_reach_s3(lab: Lab) -> None:
    s3 = lab.aws.client("s3")
    bucket = lab.name("bucket")
    s3.create_bucket(Bucket=bucket)
    connection = http.client.HTTPConnection(lab.aws.url.removeprefix("http://"))
    headers = lab.sign("s3", "PUT", f"/{bucket}/key", None)
    connection.request(
        "PUT",
        f"/{bucket}/key",
        body=iter([b"one ", b"two"]),
        headers={**headers, "Transfer-Encoding": "chunked"},
        encode_chunked=True,
    )
    assert connection.getresponse().status == 200
    connection.close()
    assert s3.get_object(Bucket=bucket, Key="key")["Body"].read() == b"one two"
    s3.put_object(Bucket=bucket, Key="other", Body=b"", Metadata={"plan": "p-1"})
    head = s3.head_object(Bucket=bucket, Key="other")
    assert (head["ContentLength"], head["Metadata"]) == (0, {"plan": "p-1"})


def test_a_control_registers_verbs_services_and_hooks() -> None:
    control = Control(url="http://127.0.0.1:1")
    order: list[str] = []

    @control.verb("echo")
    def echo(arguments: dict[str, Any]) -> Any:
        return arguments

    control.on_reset(lambda: order.append("reset"))
    control.on_stop(lambda: order.append("first"))
    control.on_stop(lambda: order.append("second"))
    control.reset()
    control.stop()
    assert control.call("echo", {"a": 1}) == {"a": 1}
    assert order == ["reset", "second", "first"]
    with pytest.raises(ValueError, match="'echo' is taken"):
        control.verb("echo")(echo)
    with pytest.raises(ControlError, match="not running"):
        control.emit_event("aws.ec2", "x", {})
