"""One function with a role and a log group of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_destinations as destinations
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.aws.acknowledgements import acknowledge, allow
from infra.aws.functions import FunctionPlan
from infra.aws.names import METRICS_NAMESPACE, construct_name, function_name, function_role_name
from infra.aws.rights import interface_statements, log_statements, trace_statements


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all functions share.

    Attributes:
        code: The asset.
        retention: Of their logs.
        failures: Queue for asynchronous calls that failed for good.
        subnets: Where the functions that call a cluster stand; empty for Lambda's own network.
        security_groups: Of their network interfaces.
        tracing: Whether X-Ray follows calls.
        reserved: Whether each function has the concurrency of its plan to itself.
    """

    code: lambda_.Code
    retention: logs.RetentionDays
    failures: sqs.IQueue
    subnets: tuple[str, ...] = ()
    security_groups: tuple[str, ...] = ()
    tracing: bool = False
    reserved: bool = True


class ServiceFunction(Construct):
    """A Lambda function of Dovetail.

    Attributes:
        function: The function.
    """

    def __init__(
        self,
        scope: Construct,
        *,
        plan: FunctionPlan,
        surroundings: Surroundings,
        environment: Mapping[str, str],
        statements: Sequence[iam.PolicyStatement],
    ) -> None:
        super().__init__(scope, construct_name(plan.name))
        log_group = logs.LogGroup(
            self,
            "Log",
            log_group_name=f"/aws/lambda/{function_name(plan.name)}",
            retention=surroundings.retention,
            removal_policy=RemovalPolicy.DESTROY,
        )
        role = iam.Role(
            self,
            "Role",
            role_name=function_role_name(plan.name),
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            description=plan.purpose,
        )
        # What calls no cluster needs no way to its endpoint.
        private = surroundings.subnets if plan.right is not None else ()
        allow(
            role,
            [
                *log_statements(log_group.log_group_arn),
                *statements,
                *interface_statements(plan, Stack.of(self), private, surroundings.security_groups),
                *(trace_statements() if surroundings.tracing else ()),
            ],
        )
        self.function = lambda_.Function(
            self,
            "Function",
            function_name=function_name(plan.name),
            description=plan.purpose,
            code=surroundings.code,
            handler=f"functions.{plan.name}.handler.handler",
            runtime=lambda_.Runtime.PYTHON_3_13,
            architecture=lambda_.Architecture.ARM_64,
            memory_size=plan.memory_mib,
            timeout=Duration.seconds(plan.timeout_seconds),
            role=role,
            log_group=log_group,
            reserved_concurrent_executions=plan.concurrency if surroundings.reserved else None,
            recursive_loop=(
                lambda_.RecursiveLoop.ALLOW
                if plan.allows_loops
                else lambda_.RecursiveLoop.TERMINATE
            ),
            environment={
                **environment,
                "POWERTOOLS_SERVICE_NAME": plan.name,
                "POWERTOOLS_METRICS_NAMESPACE": METRICS_NAMESPACE,
                "POWERTOOLS_TRACE_DISABLED": "false" if surroundings.tracing else "true",
            },
        )
        made = self.function.node.default_child
        assert isinstance(made, lambda_.CfnFunction)
        if private:
            # Ids are enough for Lambda; the construct would look the VPC up.
            made.vpc_config = lambda_.CfnFunction.VpcConfigProperty(
                subnet_ids=list(private), security_group_ids=list(surroundings.security_groups)
            )
        if surroundings.tracing:
            # Not by the construct, which allows X-Ray a second time.
            made.tracing_config = lambda_.CfnFunction.TracingConfigProperty(mode="Active")
        acknowledge(
            self.function, "L1", "all functions share one bundle, built and tested for this runtime"
        )
        if plan.asynchronous:
            kept = destinations.SqsDestination(surroundings.failures)
            self.function.configure_async_invoke(
                on_failure=kept if plan.async_failures_kept else None,
                retry_attempts=plan.async_retries,
                max_event_age=Duration.seconds(plan.async_max_age_seconds),
            )
