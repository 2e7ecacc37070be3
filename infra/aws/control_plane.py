"""The control-plane stack: one per account and Region, for all clusters there."""

from typing import Any

from aws_cdk import Annotations, CfnOutput, Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.aws import function_statements
from infra.aws.bundling import NO_BYTECODE, function_code, target_interpreter
from infra.aws.components.alarms import Alarms
from infra.aws.components.archive import Archive
from infra.aws.components.event_routing import EventRouting
from infra.aws.components.ledger import LedgerStorage
from infra.aws.components.queries import Queries
from infra.aws.components.queues import Queues
from infra.aws.components.service_function import ServiceFunction, SharedFunctionProps
from infra.aws.components.timer_machine import TimerMachine
from infra.aws.config import RETENTIONS, Config
from infra.aws.environment import function_environment
from infra.aws.functions import FUNCTIONS, FunctionSpec, TimerStateMachine
from infra.aws.names import PARAMETERS, function_name, state_machine_arn

# SQS accepts up to 10,000 records a batch once there is a window.
BATCH_SIZE = 10_000
# How many batches provision takes at once; the rest of its concurrency is for the fast lane and for
# invocations for single clusters.
MAX_BATCHES = 10


class ControlPlaneStack(Stack):
    """Bus, queues, functions, timers, ledger, archive, rules, alarms and saved queries."""

    def __init__(
        self, scope: Construct, construct_id: str, *, config: Config, **options: Any
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            description="Dovetail: the node autoscaler's control plane",
            **options,
        )
        self._config = config
        if config.bundle == "full" and not target_interpreter():
            Annotations.of(self).add_warning_v2("dovetail:bytecode", NO_BYTECODE)
        keep = config.removal == "retain"
        provision = next(spec for spec in FUNCTIONS if spec.name == "provision")
        self._queues = Queues(
            self,
            "Queues",
            consumer_timeout=Duration.seconds(provision.timeout_seconds),
            window=Duration.seconds(config.batch_window_seconds),
        )
        self._ledger = LedgerStorage(self, "Ledger", keep=keep)
        self._archive = Archive(self, "Archive", keep=keep)
        functions = self._make_functions()
        self._feed_provision(functions["provision"])
        state_machines = {
            state_machine: TimerMachine(
                self,
                state_machine=state_machine,
                function=functions[state_machine.value],
                tracing=config.tracing,
            ).machine
            for state_machine in TimerStateMachine
        }
        routing = EventRouting(self, "Delivery", functions=functions, queues=self._queues)
        alarms = Alarms(self, "Alarms", topic_arn=config.alarm_topic)
        alarms.watch_queues(self._queues)
        if config.clusters:
            alarms.watch_heartbeat()
        alarms.watch_functions(functions)
        alarms.watch_sweep()
        alarms.watch_catalogue()
        alarms.watch_ledger(self._ledger.table)
        alarms.watch_timers(state_machines)
        Queries(
            self, "Queries", log_groups={n: function.log_group for n, function in functions.items()}
        )
        outputs = {
            "BusName": routing.bus.event_bus_name,
            "WakeQueueUrl": self._queues.wake.queue_url,
            "WakeFailuresUrl": self._queues.wake_failures.queue_url,
            "WakeFailuresArn": self._queues.wake_failures.queue_arn,
            "DeadLettersUrl": self._queues.dead_letters.queue_url,
            "LedgerTable": self._ledger.table.table_name,
            "ArchiveBucket": self._archive.bucket.bucket_name,
        }
        for name, value in outputs.items():
            CfnOutput(self, name, value=value)

    def _make_functions(self) -> dict[str, lambda_.Function]:
        props = SharedFunctionProps(
            code=function_code(self._config.bundle),
            retention=RETENTIONS[self._config.log_retention_days],
            failures=self._queues.dead_letters,
            subnets=self._config.subnets,
            security_groups=self._config.security_groups,
            tracing=self._config.tracing,
            reserved=self._config.concurrency == "reserved",
        )
        resources = self._resources()
        return {
            spec.name: ServiceFunction(
                self,
                spec=spec,
                props=props,
                environment=function_environment(spec.settings, resources, self._config.settings),
                statements=self._statements(spec),
            ).function
            for spec in FUNCTIONS
        }

    def _resources(self) -> dict[str, str]:
        return {
            "table": self._ledger.table.table_name,
            "bucket": self._archive.bucket.bucket_name,
            "queue_url": self._queues.wake.queue_url,
            "dead_letter_url": self._queues.dead_letters.queue_url,
            "cluster_parameters": PARAMETERS,
            "bind_function": function_name("bind"),
            "provision_function": function_name("provision"),
            "sweep_function": function_name("sweep"),
            **{
                f"{state_machine.value}_machine": state_machine_arn(self, state_machine)
                for state_machine in TimerStateMachine
            },
        }

    def _statements(self, spec: FunctionSpec) -> list[iam.PolicyStatement]:
        queues = self._queues
        return [
            *(
                function_statements.ledger_statements(self._ledger.table)
                if spec.uses_ledger
                else ()
            ),
            *function_statements.bucket_statements(spec, self._archive.bucket),
            *function_statements.queue_statements(spec, queues.wake, queues.dead_letters),
            *function_statements.cluster_statements(spec, self),
            *function_statements.start_statements(spec, self),
            *function_statements.catalogue_statements(spec, self),
        ]

    def _feed_provision(self, function: lambda_.Function) -> None:
        function.add_event_source_mapping(
            "Wake",
            event_source_arn=self._queues.wake.queue_arn,
            batch_size=BATCH_SIZE,
            max_batching_window=Duration.seconds(self._config.batch_window_seconds),
            max_concurrency=MAX_BATCHES,
            report_batch_item_failures=True,
        )
