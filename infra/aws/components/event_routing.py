"""Which events start which function.

Rules on Dovetail's bus, rules for events of EC2 and AWS Health, and schedules.
"""

from collections.abc import Mapping

from aws_cdk import Duration, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.aws.components.queues import Queues
from infra.aws.names import BUS, HEARTBEAT_RULE

# One source for each cluster; functions compare it with the cluster that the message names.
SOURCES = events.Match.prefix("dovetail.")


class EventRouting(Construct):
    """The bus and every rule.

    Attributes:
        bus: The bus the forwarders send to.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        functions: Mapping[str, lambda_.IFunction],
        queues: Queues,
    ) -> None:
        super().__init__(scope, construct_id)
        self._functions = functions
        self._queues = queues
        self.bus = events.EventBus(
            self, "Bus", event_bus_name=BUS, description="What forwarders of all clusters see"
        )
        self._wake_rules()
        self._to_function("NodeEmpty", "emptiness", _ours("node-empty"), bus=self.bus)
        self._to_function("NodeReady", "bind", _ours("node-ready"), bus=self.bus)
        self._to_function("NodeDeleted", "termination", _ours("node-deleted"), bus=self.bus)
        self._to_function(
            "Heartbeat",
            "heartbeat",
            _ours("heartbeat"),
            bus=self.bus,
            rule_name=HEARTBEAT_RULE,
            retries=0,
        )
        self._interruption_rules()
        self._on_schedule("EveryMinute", "sweep", Duration.minutes(1))
        # It writes twice a day, and at once if there is no catalogue.
        self._on_schedule("EveryHour", "refresh_catalog", Duration.hours(1), retries=2)
        self._after_deployment()

    def _wake_rules(self) -> None:
        events.Rule(
            self,
            "Wake",
            description="Queues what may need new nodes",
            event_bus=self.bus,
            event_pattern=_ours("pod-pending", "provisioner-changed"),
            targets=[
                targets.SqsQueue(self._queues.wake, dead_letter_queue=self._queues.dead_letters)
            ],
        )
        events.Rule(
            self,
            "FastLane",
            description="Takes the first pending pod after a quiet time straight to provision",
            event_bus=self.bus,
            event_pattern=events.EventPattern(
                source=SOURCES, detail_type=["pod-pending"], detail={"leading": [True]}
            ),
            targets=[
                # The queue delivers the same event, so a retry here is useless.
                targets.LambdaFunction(
                    self._functions["provision"],
                    dead_letter_queue=self._queues.dead_letters,
                    retry_attempts=0,
                    max_event_age=Duration.seconds(60),
                )
            ],
        )

    def _interruption_rules(self) -> None:
        ec2 = {
            "SpotInterruption": "EC2 Spot Instance Interruption Warning",
            "ReservationInterruption": "EC2 Capacity Reservation Instance Interruption Warning",
            "Rebalance": "EC2 Instance Rebalance Recommendation",
        }
        for name, detail_type in ec2.items():
            pattern = events.EventPattern(source=["aws.ec2"], detail_type=[detail_type])
            self._to_function(name, "interrupt", pattern)
        self._to_function(
            "StateChange",
            "interrupt",
            events.EventPattern(
                source=["aws.ec2"],
                detail_type=["EC2 Instance State-change Notification"],
                detail={"state": ["stopping", "stopped", "shutting-down", "terminated"]},
            ),
        )
        self._to_function(
            "ScheduledChange",
            "interrupt",
            events.EventPattern(
                source=["aws.health"],
                detail_type=["AWS Health Event"],
                detail={"service": ["EC2"], "eventTypeCategory": ["scheduledChange"]},
            ),
        )

    def _after_deployment(self) -> None:
        """Write the catalogue as soon as this stack is complete.

        Not a custom resource: prices that cannot be read must not roll back a deployment.
        Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/stack-event-bridge.html
        (2026-11).
        """
        complete = ["CREATE_COMPLETE", "UPDATE_COMPLETE"]
        self._to_function(
            "Deployed",
            "refresh_catalog",
            events.EventPattern(
                source=["aws.cloudformation"],
                detail_type=["CloudFormation Stack Status Change"],
                detail={
                    "stack-id": [Stack.of(self).stack_id],
                    "status-details": {"status": complete},
                },
            ),
        )

    def _to_function(
        self,
        construct_id: str,
        name: str,
        pattern: events.EventPattern,
        *,
        bus: events.IEventBus | None = None,
        rule_name: str | None = None,
        retries: int = 185,
    ) -> None:
        events.Rule(
            self,
            construct_id,
            rule_name=rule_name,
            description=f"Wakes {name}",
            event_bus=bus,
            event_pattern=pattern,
            targets=[
                targets.LambdaFunction(
                    self._functions[name],
                    dead_letter_queue=self._queues.dead_letters,
                    retry_attempts=retries,
                    max_event_age=Duration.hours(1),
                )
            ],
        )

    def _on_schedule(
        self, construct_id: str, name: str, every: Duration, *, retries: int = 0
    ) -> None:
        events.Rule(
            self,
            construct_id,
            description=f"Wakes {name} again and again",
            schedule=events.Schedule.rate(every),
            targets=[
                # The next scheduled event does what this one could not.
                targets.LambdaFunction(
                    self._functions[name],
                    dead_letter_queue=self._queues.dead_letters,
                    retry_attempts=retries,
                    max_event_age=Duration.minutes(10 if retries else 1),
                )
            ],
        )


def _ours(*kinds: str) -> events.EventPattern:
    return events.EventPattern(source=SOURCES, detail_type=list(kinds))
