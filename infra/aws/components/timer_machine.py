"""One timer: a state machine that waits and lets its function take a step, again and again."""

from pathlib import Path
from typing import Final

from aws_cdk import Aws, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as stepfunctions
from constructs import Construct

from infra.aws.acknowledge import acknowledge, add_statements
from infra.aws.function_statements import trace_statements
from infra.aws.functions import TimerStateMachine
from infra.aws.names import construct_name, state_machine_arn

DEFINITION: Final = Path(__file__).parent.parent / "state_machines" / "timer.asl.json"


class TimerMachine(Construct):
    """A standard workflow over the definition all timers share.

    Attributes:
        machine: The state machine.
    """

    def __init__(
        self,
        scope: Construct,
        *,
        state_machine: TimerStateMachine,
        function: lambda_.IFunction,
        tracing: bool = False,
    ) -> None:
        super().__init__(scope, f"{construct_name(state_machine.value)}Machine")
        role = iam.Role(
            self,
            "Role",
            # Only executions of this state machine may assume the role.
            # Source:
            # https://docs.aws.amazon.com/step-functions/latest/dg/procedure-create-iam-role.html
            # (2026-11).
            assumed_by=iam.ServicePrincipal(
                "states.amazonaws.com",
                conditions={
                    "StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID},
                    "ArnLike": {"aws:SourceArn": state_machine_arn(Stack.of(self), state_machine)},
                },
            ),
            description=f"Lets {state_machine.machine_name} call its function",
        )
        add_statements(
            role,
            [
                iam.PolicyStatement(
                    sid="TakeStep",
                    actions=["lambda:InvokeFunction"],
                    resources=[function.function_arn],
                ),
                *(trace_statements(samples=True) if tracing else ()),
            ],
        )
        self.machine = stepfunctions.StateMachine(
            self,
            "Machine",
            state_machine_name=state_machine.machine_name,
            state_machine_type=stepfunctions.StateMachineType.STANDARD,
            definition_body=stepfunctions.DefinitionBody.from_string(
                DEFINITION.read_text(encoding="utf-8")
            ),
            definition_substitutions={"FunctionArn": function.function_arn},
            role=role,
            removal_policy=RemovalPolicy.DESTROY,
        )
        if tracing:
            cfn_state_machine = self.machine.node.default_child
            assert isinstance(cfn_state_machine, stepfunctions.CfnStateMachine)
            cfn_state_machine.tracing_configuration = (
                stepfunctions.CfnStateMachine.TracingConfigurationProperty(enabled=True)
            )
        acknowledge(
            self.machine,
            "SF1",
            "standard workflows keep the history of each execution for 90 days by themselves",
        )
        acknowledge(
            self.machine,
            "SF2",
            "a timer is one call after a long wait; what it did is in the function's log",
        )
