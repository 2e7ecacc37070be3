"""Alarms for the ways the control plane can fail."""

from collections.abc import Mapping
from typing import Any

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_events as events
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_stepfunctions as stepfunctions
from constructs import Construct

from infra.aws.components.queues import Queues
from infra.aws.names import BUS, Timer, construct_name

MINUTE = Duration.minutes(1)
FIVE_MINUTES = Duration.minutes(5)


class Alarms(Construct):
    """Each alarm says in its description what is wrong and for whom."""

    def __init__(self, scope: Construct, construct_id: str, *, topic_arn: str) -> None:
        super().__init__(scope, construct_id)
        self._action = None
        if topic_arn:
            topic = sns.Topic.from_topic_arn(self, "Topic", topic_arn)
            self._action = actions.SnsAction(topic)

    def watch_queues(self, queues: Queues) -> None:
        """Ring when anything was given up, or when wake-ups are not taken."""
        given_up = {"WakeFailures": queues.wake_failures, "DeadLetters": queues.dead_letters}
        for name, queue in given_up.items():
            self._ring(
                f"{name}NotEmpty",
                f"A message lies in {name}: something was not done",
                metric=queue.metric_approximate_number_of_messages_visible(
                    period=MINUTE, statistic="Maximum"
                ),
                threshold=1,
                evaluation_periods=1,
            )
        self._ring(
            "WakeQueueOld",
            "A wake-up has waited for five minutes: pods may be pending unseen",
            metric=queues.wake.metric_approximate_age_of_oldest_message(
                period=MINUTE, statistic="Maximum"
            ),
            threshold=300,
            evaluation_periods=1,
        )

    def watch_heartbeat(self, rule: events.IRule) -> None:
        """Ring when no forwarder has spoken for three of its five-minute beats."""
        self._ring(
            "HeartbeatMissing",
            "No forwarder has sent a heartbeat for a quarter of an hour",
            metric=cloudwatch.Metric(
                namespace="AWS/Events",
                metric_name="MatchedEvents",
                dimensions_map={"EventBusName": BUS, "RuleName": rule.rule_name},
                statistic="Sum",
                period=FIVE_MINUTES,
            ),
            threshold=1,
            evaluation_periods=3,
            comparison_operator=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
            treat_missing_data=cloudwatch.TreatMissingData.BREACHING,
        )

    def watch_functions(self, functions: Mapping[str, lambda_.IFunction]) -> None:
        """Ring when a function fails in two of five minutes (one failure is repeated anyway)."""
        for name, function in functions.items():
            self._ring(
                f"{construct_name(name)}Errors",
                f"Function {name} fails again and again",
                metric=function.metric_errors(period=MINUTE, statistic="Sum"),
                threshold=1,
                evaluation_periods=5,
                datapoints_to_alarm=2,
            )

    def watch_timers(self, machines: Mapping[Timer, stepfunctions.IStateMachine]) -> None:
        """Ring when an execution failed: a node may be left without its timer."""
        for timer, machine in machines.items():
            self._ring(
                f"{construct_name(timer.value)}TimerFailed",
                f"An execution of {timer.machine_name} failed",
                metric=machine.metric_failed(period=FIVE_MINUTES, statistic="Sum"),
                threshold=1,
                evaluation_periods=1,
            )

    def _ring(self, construct_id: str, description: str, **options: Any) -> None:
        """Make an alarm; by default it rings at its threshold and is silent without data."""
        rules = {
            "comparison_operator": (
                cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
            ),
            "treat_missing_data": cloudwatch.TreatMissingData.NOT_BREACHING,
            **options,
        }
        alarm = cloudwatch.Alarm(self, construct_id, alarm_description=description, **rules)
        if self._action is not None:
            alarm.add_alarm_action(self._action)
