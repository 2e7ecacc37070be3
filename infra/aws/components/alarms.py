"""Alarms for the ways the control plane can fail.

Each alarm's description says what is wrong and names the page of docs/operations that says where
to look and what to do.
"""

from collections.abc import Mapping
from typing import Any, Final

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_stepfunctions as stepfunctions
from constructs import Construct

from infra.aws.components.queues import Queues
from infra.aws.functions import TimerStateMachine
from infra.aws.metrics import metric, metric_spec
from infra.aws.names import BUS, HEARTBEAT_RULE, METRICS_NAMESPACE, construct_name

MINUTE = Duration.minutes(1)
FIVE_MINUTES = Duration.minutes(5)
DAY = Duration.days(1)
PAGES: Final = "docs/operations"
# The functions' operations on the ledger.
_LEDGER_OPERATIONS: Final = (
    dynamodb.Operation.DELETE_ITEM,
    dynamodb.Operation.GET_ITEM,
    dynamodb.Operation.QUERY,
    dynamodb.Operation.TRANSACT_WRITE_ITEMS,
    dynamodb.Operation.UPDATE_ITEM,
)


class AlarmFactory:
    """Makes alarms that notify one SNS topic, or none, when they fire and when they are OK."""

    def __init__(self, scope: Construct, *, topic_arn: str) -> None:
        self._scope = scope
        self._action = None
        if topic_arn:
            topic = sns.Topic.from_topic_arn(scope, "Topic", topic_arn)
            self._action = actions.SnsAction(topic)

    def add(self, construct_id: str, description: str, *, page: str, **options: Any) -> None:
        """Add an alarm; by default it fires at its threshold, and missing data is healthy.

        Args:
            description: What happened, to what.
            page: The runbook's name in docs/operations, without `.md`.
        """
        rules = {
            "comparison_operator": (
                cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
            ),
            "treat_missing_data": cloudwatch.TreatMissingData.NOT_BREACHING,
            **options,
        }
        alarm = cloudwatch.Alarm(
            self._scope,
            construct_id,
            alarm_description=f"{description}: {PAGES}/{page}.md",
            **rules,
        )
        if self._action is not None:
            alarm.add_alarm_action(self._action)
            alarm.add_ok_action(self._action)

    def add_when_silent(
        self,
        construct_id: str,
        description: str,
        *,
        page: str,
        metric: cloudwatch.IMetric,
        periods: int,
    ) -> None:
        """Add an alarm for a metric that has had no value above zero for some periods."""
        self.add(
            construct_id,
            description,
            page=page,
            metric=metric,
            threshold=1,
            evaluation_periods=periods,
            comparison_operator=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
            treat_missing_data=cloudwatch.TreatMissingData.BREACHING,
        )


class Alarms(Construct):
    """The alarms that all clusters share."""

    def __init__(self, scope: Construct, construct_id: str, *, topic_arn: str) -> None:
        super().__init__(scope, construct_id)
        self._alarms = AlarmFactory(self, topic_arn=topic_arn)

    def watch_queues(self, queues: Queues) -> None:
        """Add alarms for abandoned messages, and for wake-ups that wait too long."""
        unprocessed = {"WakeFailures": queues.wake_failures, "DeadLetters": queues.dead_letters}
        for name, queue in unprocessed.items():
            self._alarms.add(
                f"{name}NotEmpty",
                f"Queue {name} holds messages that were not processed",
                page="dead-letters",
                metric=queue.metric_approximate_number_of_messages_visible(
                    period=MINUTE, statistic="Maximum"
                ),
                threshold=1,
                evaluation_periods=1,
            )
        self._alarms.add(
            "WakeQueueOld",
            "A wake-up has waited for 5 minutes: pending pods may not be planned for",
            page="wake-queue-old",
            metric=queues.wake.metric_approximate_age_of_oldest_message(
                period=MINUTE, statistic="Maximum"
            ),
            threshold=300,
            evaluation_periods=1,
        )

    def watch_heartbeat(self) -> None:
        """Add an alarm for three consecutive missing heartbeats of all forwarders."""
        self._alarms.add_when_silent(
            "HeartbeatMissing",
            "No forwarder has sent a heartbeat for 15 minutes",
            page="forwarder-silent",
            metric=cloudwatch.Metric(
                namespace="AWS/Events",
                metric_name="MatchedEvents",
                dimensions_map={"EventBusName": BUS, "RuleName": HEARTBEAT_RULE},
                statistic="Sum",
                period=FIVE_MINUTES,
            ),
            periods=3,
        )

    def watch_functions(self, functions: Mapping[str, lambda_.Function]) -> None:
        """Add alarms for functions that fail in two of five minutes; one failure is retried."""
        for name, function in functions.items():
            self._alarms.add(
                f"{construct_name(name)}Errors",
                f"Function {name} fails repeatedly",
                page="function-errors",
                metric=function.metric_errors(period=MINUTE, statistic="Sum"),
                threshold=1,
                evaluation_periods=5,
                datapoints_to_alarm=2,
            )
        self._alarms.add(
            "FunctionsThrottled",
            "Lambda throttles functions of this account and Region",
            page="lambda-outage",
            metric=cloudwatch.Metric(
                namespace="AWS/Lambda", metric_name="Throttles", statistic="Sum", period=MINUTE
            ),
            threshold=1,
            evaluation_periods=5,
            datapoints_to_alarm=3,
        )
        provision = functions["provision"]
        assert provision.timeout is not None
        self._alarms.add(
            "ProvisionSlow",
            "The duration of function provision is near its time-out",
            page="provision-slow",
            metric=provision.metric_duration(period=FIVE_MINUTES, statistic="Maximum"),
            threshold=800 * provision.timeout.to_seconds(),
            evaluation_periods=3,
            datapoints_to_alarm=2,
        )

    def watch_sweep(self) -> None:
        """Add an alarm for a sweep that does not run: it acts on everything that events missed.

        Each cluster's sweep also invokes the function, so its invocations do not show it.
        """
        self._alarms.add_when_silent(
            "SweepMissing",
            "Function sweep has not looked over the clusters for 10 minutes",
            page="lambda-outage",
            metric=metric(metric_spec("SweepRounds")),
            periods=2,
        )

    def watch_catalogue(self) -> None:
        """Add an alarm for a catalogue older than a day: its prices are out of date."""
        self._alarms.add_when_silent(
            "CatalogueOld",
            "No catalogue of instance types has been written for a day",
            page="catalogue-old",
            metric=cloudwatch.Metric(
                namespace=METRICS_NAMESPACE,
                metric_name=metric_spec("CatalogInstanceTypes").name,
                dimensions_map={"service": "refresh_catalog"},
                statistic="Minimum",
                period=DAY,
            ),
            periods=1,
        )

    def watch_ledger(self, table: dynamodb.ITable) -> None:
        """Add an alarm for a ledger that fails: nothing is launched without it."""
        self._alarms.add(
            "LedgerFails",
            "DynamoDB fails on the ledger, nothing is launched meanwhile",
            page="ledger-lost",
            metric=table.metric_system_errors_for_operations(
                operations=list(_LEDGER_OPERATIONS), period=MINUTE
            ),
            threshold=1,
            evaluation_periods=5,
            datapoints_to_alarm=3,
        )
        self._alarms.add(
            "LedgerThrottled",
            "DynamoDB throttles the ledger",
            page="ledger-lost",
            metric=table.metric_throttled_requests_for_operations(
                operations=list(_LEDGER_OPERATIONS), period=MINUTE
            ),
            threshold=1,
            evaluation_periods=5,
            datapoints_to_alarm=3,
        )

    def watch_timers(
        self, state_machines: Mapping[TimerStateMachine, stepfunctions.IStateMachine]
    ) -> None:
        """Add alarms for failed executions: a node may be left without its timer."""
        for state_machine, construct in state_machines.items():
            self._alarms.add(
                f"{construct_name(state_machine.value)}TimerFailed",
                f"An execution of {state_machine.machine_name} failed",
                page="timer-failed",
                metric=construct.metric_failed(period=FIVE_MINUTES, statistic="Sum"),
                threshold=1,
                evaluation_periods=1,
            )
