from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest
from aws_cdk import App, Duration, Stack, assertions

from functions.cli.doctor.prerequisites import LEAST_CONCURRENCY
from infra.aws.components.alarms import Alarms
from infra.aws.components.archive import Archive
from infra.aws.components.ledger import LedgerStorage
from infra.aws.components.queues import Queues
from infra.aws.functions import FUNCTIONS
from shared.provisioning.decisions.bases import MAX_BASE_AGE
from shared.settings import PREFIX
from tests.infra.templates import Resource, Template

DAY = timedelta(days=1)

ROOT = Path(__file__).resolve().parents[3]
PLANS = {plan.name: plan for plan in FUNCTIONS}


def _functions(template: Template) -> dict[str, Resource]:
    """Return the functions by the name of their package."""
    return {
        resource.properties["Handler"].split(".")[1]: resource
        for resource in template.of("AWS::Lambda::Function")
    }


def test_functions_that_wake_themselves_are_exempt_from_loop_detection_and_no_others(
    control_plane: Template,
) -> None:
    found = {
        name: function.properties["RecursiveLoop"]
        for name, function in _functions(control_plane).items()
    }

    assert {name for name, value in found.items() if value == "Allow"} == {"provision", "bind"}
    assert set(found.values()) == {"Allow", "Terminate"}


def test_every_queue_has_a_dead_letter_queue_or_is_one(control_plane: Template) -> None:
    queues = {resource.logical_id: resource for resource in control_plane.of("AWS::SQS::Queue")}
    wake = control_plane.one("AWS::SQS::Queue", "QueuesWakeFE")
    redrive = wake.raw["Properties"]["RedrivePolicy"]

    assert len(queues) == 3
    assert redrive["maxReceiveCount"] == 5
    assert redrive["deadLetterTargetArn"]["Fn::GetAtt"][0].startswith("QueuesWakeFailures")
    without = {name for name, queue in queues.items() if "RedrivePolicy" not in queue.properties}
    assert {name[:17] for name in without} == {"QueuesWakeFailure", "QueuesDeadLetters"}


def test_queues_are_encrypted(control_plane: Template) -> None:
    queues = control_plane.of("AWS::SQS::Queue")
    assert all(queue.properties["SqsManagedSseEnabled"] is True for queue in queues)


def test_visibility_outlasts_six_attempts_of_provision(control_plane: Template) -> None:
    provision = _functions(control_plane)["provision"]
    visibility = control_plane.one("AWS::SQS::Queue", "QueuesWakeFE").properties[
        "VisibilityTimeout"
    ]

    assert visibility >= 6 * provision.properties["Timeout"]


def test_provision_is_fed_in_large_batches_with_partial_failures(control_plane: Template) -> None:
    (mapping,) = control_plane.of("AWS::Lambda::EventSourceMapping")

    assert mapping.properties["BatchSize"] == 10_000
    assert mapping.properties["MaximumBatchingWindowInSeconds"] == 1
    assert mapping.properties["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping.properties["FunctionName"] == "dovetail-provision"
    # Fewer than may run at once: a full queue leaves some to the fast lane.
    concurrent = mapping.properties["ScalingConfig"]["MaximumConcurrency"]
    assert 2 <= concurrent < PLANS["provision"].concurrency


def test_each_function_has_concurrency_that_no_other_takes(control_plane: Template) -> None:
    reserved = {
        name: function.properties["ReservedConcurrentExecutions"]
        for name, function in _functions(control_plane).items()
    }
    assert reserved == {name: plan.concurrency for name, plan in PLANS.items()}
    assert min(reserved.values()) > 0
    # What `doctor --prerequisites` asks for; Lambda wants 100 left.
    assert sum(reserved.values()) + 100 == LEAST_CONCURRENCY


@pytest.mark.parametrize("name", sorted(PLANS))
def test_the_environment_of_a_function_satisfies_its_settings(
    control_plane: Template, name: str
) -> None:
    variables = _functions(control_plane)[name].properties["Environment"]["Variables"]
    model = PLANS[name].settings
    settings = model.from_environment(variables)

    given = {key for key in variables if key.startswith(PREFIX)}
    assert given == {f"{PREFIX}{field.upper()}" for field in model.__struct_fields__}
    assert settings.bucket.startswith("ArchiveBucket")
    assert variables["POWERTOOLS_SERVICE_NAME"] == name
    assert variables["POWERTOOLS_METRICS_NAMESPACE"] == "Dovetail"
    assert variables["POWERTOOLS_TRACE_DISABLED"] == "true"


def test_timers_named_in_the_environment_are_the_machines_of_the_template(
    control_plane: Template,
) -> None:
    names = {
        resource.properties["StateMachineName"]
        for resource in control_plane.of("AWS::StepFunctions::StateMachine")
    }
    variables = _functions(control_plane)["sweep"].properties["Environment"]["Variables"]
    named = {
        variables[f"DOVETAIL_{kind}_MACHINE"].rsplit(":", 1)[1]
        for kind in ("EMPTINESS", "EXPIRATION", "REGISTRATION", "REPLACEMENT", "TERMINATION")
    }

    assert named == names
    functions = {
        resource.properties["FunctionName"]
        for resource in control_plane.of("AWS::Lambda::Function")
    }
    assert variables["DOVETAIL_BIND_FUNCTION"] in functions
    assert variables["DOVETAIL_PROVISION_FUNCTION"] in functions


@pytest.mark.parametrize("name", sorted(PLANS))
def test_a_function_runs_on_arm_with_its_own_role_and_kept_logs(
    control_plane: Template, name: str
) -> None:
    functions = _functions(control_plane)
    function = functions[name]
    roles = [resource.raw["Properties"]["Role"]["Fn::GetAtt"][0] for resource in functions.values()]
    group = f"/aws/lambda/{function.properties['FunctionName']}"
    log = control_plane.one("AWS::Logs::LogGroup", LogGroupName=group)

    assert function.properties["Runtime"] == "python3.13"
    assert function.properties["Architectures"] == ["arm64"]
    assert function.properties["MemorySize"] == (
        1024 if name in {"provision", "replacement"} else 512
    )
    assert function.properties["Timeout"] == (120 if name == "provision" else 60)
    assert roles.count(function.raw["Properties"]["Role"]["Fn::GetAtt"][0]) == 1
    assert log.properties["RetentionInDays"] == 30


@pytest.mark.parametrize("name", sorted(PLANS))
def test_a_handler_named_in_the_template_exists(name: str) -> None:
    source = ROOT / "functions" / name / "handler.py"

    assert source.is_file()
    assert "def handler(" in source.read_text()


def test_asynchronous_calls_end_in_the_dead_letters(control_plane: Template) -> None:
    found = {
        resource.properties["FunctionName"]: resource
        for resource in control_plane.of("AWS::Lambda::EventInvokeConfig")
    }
    fast_lane = found["dovetail-provision"].properties

    assert set(found) == {
        f"dovetail-{plan.name.replace('_', '-')}" for plan in FUNCTIONS if plan.asynchronous
    }
    for name, resource in found.items():
        if name == "dovetail-provision":
            continue
        target = resource.raw["Properties"]["DestinationConfig"]["OnFailure"]["Destination"]
        assert target["Fn::GetAtt"][0].startswith("QueuesDeadLetters")
    # What fails there comes by the queue or is found by sweep: no alarm may ring for it.
    assert "DestinationConfig" not in fast_lane
    assert fast_lane["MaximumRetryAttempts"] == 2
    assert fast_lane["MaximumEventAgeInSeconds"] == 600


def test_the_ledger_is_one_recoverable_table_that_outlives_the_stack(
    control_plane: Template,
) -> None:
    (table,) = control_plane.of("AWS::DynamoDB::Table")

    assert table.properties["KeySchema"] == [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ]
    assert {
        attribute_definition["AttributeType"]
        for attribute_definition in table.properties["AttributeDefinitions"]
    } == {"S"}
    assert table.properties["BillingMode"] == "PAY_PER_REQUEST"
    assert table.properties["TimeToLiveSpecification"] == {
        "AttributeName": "expires_at",
        "Enabled": True,
    }
    recovery = table.properties["PointInTimeRecoverySpecification"]
    assert recovery["PointInTimeRecoveryEnabled"] is True
    assert table.properties["DeletionProtectionEnabled"] is True
    assert table.raw["DeletionPolicy"] == "Retain"
    assert "GlobalSecondaryIndexes" not in table.properties


def test_the_archive_is_private_encrypted_and_forgets_decisions(control_plane: Template) -> None:
    (bucket,) = control_plane.of("AWS::S3::Bucket")
    rules = bucket.properties["LifecycleConfiguration"]["Rules"]

    days = {rule["Prefix"]: timedelta(days=rule["ExpirationInDays"]) for rule in rules}
    # Launches hold user data, in which people keep secrets.
    assert days.keys() == {"decisions/", "bases/", "launches/", "copies/"}
    assert days["launches/"] == days["copies/"] == DAY
    # S3 rounds up to midnight: the last decision that names a base is there for a day more.
    assert days["bases/"] >= days["decisions/"] + DAY + MAX_BASE_AGE
    assert {rule["Status"] for rule in rules} == {"Enabled"}
    assert "VersioningConfiguration" not in bucket.properties
    assert all(bucket.properties["PublicAccessBlockConfiguration"].values())
    assert "BucketEncryption" in bucket.properties
    assert bucket.raw["DeletionPolicy"] == "Retain"


def test_a_stack_for_trying_out_leaves_nothing_behind() -> None:
    app = App()
    stack = Stack(app, "S")
    LedgerStorage(stack, "Ledger", keep=False)
    Archive(stack, "Archive", keep=False)
    template = assertions.Template.from_stack(stack)

    template.has_resource("AWS::DynamoDB::Table", {"DeletionPolicy": "Delete"})
    template.has_resource("AWS::S3::Bucket", {"DeletionPolicy": "Delete"})
    template.has_resource_properties("AWS::DynamoDB::Table", {"DeletionProtectionEnabled": False})


def test_alarms_are_sent_to_the_topic_that_is_given_and_their_end_too() -> None:
    topic = "arn:aws:sns:eu-west-1:123456789012:ring"
    stack = Stack(App(), "S")
    queues = Queues(
        stack, "Queues", consumer_timeout=Duration.seconds(120), window=Duration.seconds(1)
    )
    Alarms(stack, "Alarms", topic_arn=topic).watch_queues(queues)

    template = assertions.Template.from_stack(stack)
    template.resource_count_is("AWS::CloudWatch::Alarm", 3)
    template.all_resources_properties(
        "AWS::CloudWatch::Alarm", {"AlarmActions": [topic], "OKActions": [topic]}
    )


def _alarms(template: Template) -> Mapping[str, Resource]:
    return {
        resource.logical_id[6:-8]: resource for resource in template.of("AWS::CloudWatch::Alarm")
    }


def test_there_is_an_alarm_for_each_way_to_fail(control_plane: Template) -> None:
    names = set(_alarms(control_plane))

    assert {"WakeFailuresNotEmpty", "DeadLettersNotEmpty", "WakeQueueOld", "HeartbeatMissing"} < (
        names
    )
    assert {name for name in names if name.endswith("Errors")} == {
        f"{''.join(word.capitalize() for word in name.split('_'))}Errors" for name in PLANS
    }
    assert {name for name in names if name.endswith("TimerFailed")} == {
        "EmptinessTimerFailed",
        "ExpirationTimerFailed",
        "RegistrationTimerFailed",
        "ReplacementTimerFailed",
        "TerminationTimerFailed",
    }


def _missing(template: Template, name: str, *metric: str) -> dict[str, str]:
    """Return the dimensions of an alarm that rings while a metric is missing."""
    alarm = _alarms(template)[name].properties

    assert alarm["TreatMissingData"] == "breaching"
    assert alarm["ComparisonOperator"] == "LessThanThreshold"
    assert (alarm["Namespace"], alarm["MetricName"]) == metric
    return {dimension["Name"]: dimension["Value"] for dimension in alarm["Dimensions"]}


def test_silence_of_the_forwarder_rings(control_plane: Template) -> None:
    dimensions = _missing(control_plane, "HeartbeatMissing", "AWS/Events", "MatchedEvents")
    assert dimensions["EventBusName"] == "dovetail"
    rule = control_plane.one("AWS::Events::Rule", Name=dimensions["RuleName"])
    assert rule.properties["EventPattern"]["detail-type"] == ["heartbeat"]


def test_a_sweep_that_does_not_run_rings_whatever_the_forwarders_send(
    control_plane: Template,
) -> None:
    dimensions = _missing(control_plane, "SweepMissing", "Dovetail", "SweepRounds")
    assert dimensions == {"service": "sweep"}


def test_no_alarm_watches_the_id_of_a_rule_where_its_name_belongs(
    control_plane: Template, clusters: Mapping[str, Template]
) -> None:
    for template in (control_plane, *clusters.values()):
        for name, alarm in _alarms(template).items():
            for dimension in alarm.properties.get("Dimensions", ()):
                assert "|" not in dimension["Value"], name
