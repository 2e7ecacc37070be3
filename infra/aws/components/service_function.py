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

from infra.aws.acknowledge import acknowledge, add_statements
from infra.aws.function_statements import interface_statements, log_statements, trace_statements
from infra.aws.functions import FunctionSpec
from infra.aws.names import METRICS_NAMESPACE, construct_name, function_name, function_role_name


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFunctionProps:
    """What all functions share.

    Attributes:
        code: The asset.
        retention: Retention of their logs.
        failures: Queue for asynchronous calls that failed for good.
        subnets: Subnets of the functions that call a cluster; empty for Lambda's own network.
        security_groups: Security groups of the network interfaces of these functions.
        tracing: Whether X-Ray follows calls.
        reserved: Whether each function's concurrency is reserved for it.
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
        spec: FunctionSpec,
        props: SharedFunctionProps,
        environment: Mapping[str, str],
        statements: Sequence[iam.PolicyStatement],
    ) -> None:
        super().__init__(scope, construct_name(spec.name))
        log_group = logs.LogGroup(
            self,
            "Log",
            log_group_name=f"/aws/lambda/{function_name(spec.name)}",
            retention=props.retention,
            removal_policy=RemovalPolicy.DESTROY,
        )
        role = iam.Role(
            self,
            "Role",
            role_name=function_role_name(spec.name),
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            description=spec.purpose,
        )
        # A function that calls no cluster needs no network path to an endpoint.
        private = props.subnets if spec.cluster_role is not None else ()
        add_statements(
            role,
            [
                *log_statements(log_group.log_group_arn),
                *statements,
                *interface_statements(spec, Stack.of(self), private, props.security_groups),
                *(trace_statements() if props.tracing else ()),
            ],
        )
        self.function = lambda_.Function(
            self,
            "Function",
            function_name=function_name(spec.name),
            description=spec.purpose,
            code=props.code,
            handler=f"functions.{spec.name}.handler.handler",
            runtime=lambda_.Runtime.PYTHON_3_13,
            architecture=lambda_.Architecture.ARM_64,
            memory_size=spec.memory_mib,
            timeout=Duration.seconds(spec.timeout_seconds),
            role=role,
            log_group=log_group,
            reserved_concurrent_executions=spec.concurrency if props.reserved else None,
            recursive_loop=(
                lambda_.RecursiveLoop.ALLOW
                if spec.allows_loops
                else lambda_.RecursiveLoop.TERMINATE
            ),
            environment={
                **environment,
                "POWERTOOLS_SERVICE_NAME": spec.name,
                "POWERTOOLS_METRICS_NAMESPACE": METRICS_NAMESPACE,
                "POWERTOOLS_TRACE_DISABLED": "false" if props.tracing else "true",
            },
        )
        cfn_function = self.function.node.default_child
        assert isinstance(cfn_function, lambda_.CfnFunction)
        if private:
            # Lambda needs only ids; the construct would look up the VPC.
            cfn_function.vpc_config = lambda_.CfnFunction.VpcConfigProperty(
                subnet_ids=list(private), security_group_ids=list(props.security_groups)
            )
        if props.tracing:
            # Not through the construct, which would allow X-Ray a second time.
            cfn_function.tracing_config = lambda_.CfnFunction.TracingConfigProperty(mode="Active")
        acknowledge(
            self.function, "L1", "all functions share one bundle, built and tested for this runtime"
        )
        if spec.asynchronous:
            kept = destinations.SqsDestination(props.failures)
            self.function.configure_async_invoke(
                on_failure=kept if spec.async_failures_kept else None,
                retry_attempts=spec.async_retries,
                max_event_age=Duration.seconds(spec.async_max_age_seconds),
            )
