"""Step Functions: machines of templates really run; names, input size and stops are checked."""

import copy
import json
import re
import threading
import time
import uuid
from typing import Any

from infra.local.aws.backends import machine_backend, moto_name
from infra.local.aws.clients import own_access
from infra.local.aws.moto_patches import repair, replace

_NAME = re.compile(r"^[^\s<>{}\[\]?*\"#%\\^|~`$&,;:/\x00-\x1f\x7f-\x9f]{1,80}$")
_MAX_INPUT_BYTES = 262_144
_CLIENTS: dict[tuple[str, str], Any] = {}
_CLIENTS_LOCK = threading.Lock()
_START_LOCK = threading.RLock()


@repair("machines-execute")
def run_machines() -> None:
    """Interpret state machines, also those that CloudFormation made."""
    from moto.core.config import default_user_config
    from moto.stepfunctions import models

    default_user_config["stepfunctions"] = {"execute_state_machine": True}
    parser_backends = moto_name("stepfunctions.parser.models", "stepfunctions_parser_backends")
    replace(models, "stepfunctions_backends", parser_backends)


@repair("machines-start")
def check_starts() -> None:
    """Refuse bad names and large inputs, give nameless executions a name, start one at a time."""
    from moto.stepfunctions.exceptions import InvalidExecutionInput, InvalidName

    machines = moto_name("stepfunctions.parser.models", "StepFunctionsParserBackend")
    stock = machines.start_execution

    def start_execution(
        self: Any,
        state_machine_arn: str,
        name: str | None = None,
        execution_input: str | None = None,
        trace_header: Any = None,
    ) -> Any:
        if name is not None and not _NAME.match(name):
            raise InvalidName(f"Invalid Name: '{name}'")
        if len((execution_input or "").encode()) > _MAX_INPUT_BYTES:
            raise InvalidExecutionInput(f"Input is longer than {_MAX_INPUT_BYTES} bytes")
        with _START_LOCK:
            return stock(
                self, state_machine_arn, name or str(uuid.uuid4()), execution_input, trace_header
            )

    replace(machines, "start_execution", start_execution)


@repair("machines-stop")
def keep_the_cause_of_a_stop() -> None:
    """StopExecution keeps error and cause, and works in the instant after the start."""
    from moto.stepfunctions.parser.backend.execution import Execution
    from moto.stepfunctions.responses import StepFunctionResponse

    stock_stop = Execution.stop
    stock_response = StepFunctionResponse.stop_execution

    def stop(self: Any, stop_date: Any, error: str | None, cause: str | None) -> None:
        for _ in range(200):
            if self.exec_worker is not None and self.exec_worker.env is not None:
                break
            time.sleep(0.005)  # the interpreter's thread makes its environment first
        if self.status == "RUNNING":
            self.error, self.cause = error or self.error, cause or self.cause
            stock_stop(self, stop_date, error, cause)

    def stop_execution(self: Any) -> Any:
        arn = self._get_param("executionArn")
        execution = self.stepfunction_backend.describe_execution(arn)
        if execution.status == "RUNNING":
            execution.error = self._get_param("error")
            execution.cause = self._get_param("cause")
        return stock_response(self)

    replace(Execution, "stop", stop)
    replace(StepFunctionResponse, "stop_execution", stop_execution)


@repair("machines-outputs")
def write_outputs_as_json() -> None:
    """An output is JSON text, also a lone string; a date in it becomes text."""
    from moto.core.responses import ActionResult
    from moto.stepfunctions.parser.asl.utils.encoding import to_json_str
    from moto.stepfunctions.responses import StepFunctionResponse

    stock = StepFunctionResponse.describe_execution

    def describe_execution(self: Any) -> Any:
        execution = self.stepfunction_backend.describe_execution(self._get_param("executionArn"))
        if execution.output is not None and not isinstance(execution.output, str):
            execution.output = json.loads(to_json_str(execution.output))
        described: Any = stock(self)
        if "output" in described.result:
            text = to_json_str(execution.output)
            return ActionResult(described.result | {"output": text})
        return described

    replace(StepFunctionResponse, "describe_execution", describe_execution)


@repair("machines-clients")
def share_clients() -> None:
    """Tasks use one SDK client for each service; moto builds one for each task (15 ms CPU)."""
    import boto3
    import moto.stepfunctions.parser.asl.component.state.exec.state_task.lambda_eval_utils as tasks
    from botocore.config import Config

    def client_for(region: str, service: str, state_credentials: Any = None) -> Any:
        del state_credentials
        with _CLIENTS_LOCK:
            if (region, service) not in _CLIENTS:
                access = own_access()
                _CLIENTS[region, service] = boto3.session.Session(
                    aws_access_key_id=access.key_id,
                    aws_secret_access_key=access.secret,
                    region_name=region,
                ).client(
                    service,
                    endpoint_url=access.url,
                    config=Config(
                        parameter_validation=False,
                        retries={"total_max_attempts": 1},
                        connect_timeout=60,
                        read_timeout=1_000,
                        max_pool_connections=256,
                    ),
                )
            return _CLIENTS[region, service]

    replace(tasks, "boto_client_for", client_for)


@repair("machines-templates")
def read_templates() -> None:
    """Definitions with substitutions, and the attributes templates ask for."""
    machine = moto_name("stepfunctions.models", "StateMachine")
    cfn_to_api_tags = moto_name("stepfunctions.models", "cfn_to_api_tags")

    def create(
        _cls: type, /, name: str, template: Any, account: str, region: str, **_rest: Any
    ) -> Any:
        properties = template["Properties"]
        return machine_backend(account, region).create_state_machine(
            properties.get("StateMachineName", name)[:80],
            _definition(properties),
            properties.get("RoleArn", ""),
            tags=cfn_to_api_tags(properties.get("Tags", [])),
            loggingConfiguration=_lower_first(properties.get("LoggingConfiguration")),
            sm_type=properties.get("StateMachineType", "STANDARD"),
        )

    stock_has = machine.has_cfn_attr.__func__
    stock_get = machine.get_cfn_attribute

    def has_cfn_attr(cls: type, /, attribute: str) -> bool:
        return attribute == "Arn" or stock_has(cls, attribute)

    def get_cfn_attribute(self: Any, attribute: str) -> Any:
        return self.arn if attribute == "Arn" else stock_get(self, attribute)

    replace(machine, "create_from_cloudformation_json", classmethod(create))
    replace(machine, "has_cfn_attr", classmethod(has_cfn_attr))
    replace(machine, "get_cfn_attribute", get_cfn_attribute)


def _definition(properties: dict[str, Any]) -> str:
    text = str(properties["DefinitionString"])
    for key, value in sorted((properties.get("DefinitionSubstitutions") or {}).items()):
        text = text.replace("${" + key + "}", json.dumps(str(value))[1:-1])
    return text


def _lower_first(value: Any) -> Any:
    if isinstance(value, dict):
        return {key[:1].lower() + key[1:]: _lower_first(row) for key, row in value.items()}
    if isinstance(value, list):
        return [_lower_first(row) for row in value]
    return copy.copy(value)


def stop_all_executions() -> None:
    """Abort every running execution, so that no timer of a forgotten world wakes later."""
    from datetime import UTC, datetime

    parser_backends = moto_name("stepfunctions.parser.models", "stepfunctions_parser_backends")
    for regions in list(parser_backends.values()):
        for region in list(regions.values()):
            for machine in region.state_machines:
                for execution in machine.executions:
                    if execution.status == "RUNNING":
                        execution.stop(datetime.now(UTC), None, "reset")
