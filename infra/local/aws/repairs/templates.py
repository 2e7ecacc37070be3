"""CloudFormation: failures become failed stacks, properties are not lost."""

import logging
from importlib import import_module
from typing import Any
from urllib.parse import urlparse

from infra.local.aws.backends import backend, moto_name
from infra.local.aws.moto_patches import repair, replace
from infra.local.aws.templates.resource_types import add_resource_types

_URL_READERS = ("utils", "models", "responses")
_LOG = logging.getLogger(__name__)


@repair("templates-types")
def add_types() -> None:
    """Create the resource types moto leaves out without a word."""
    add_resource_types()


@repair("templates-urls")
def read_template_urls() -> None:
    """A template URL with an IP address names the bucket in its path."""
    modules = [import_module(f"moto.cloudformation.{name}") for name in _URL_READERS]
    stock: Any = modules[0].get_stack_from_s3_url

    def get_stack_from_s3_url(template_url: str, account_id: str, partition: str) -> str:
        parts = urlparse(template_url)
        if (parts.hostname or "").replace(".", "").isdigit():
            template_url = f"http://localhost{parts.path}"
        return str(stock(template_url, account_id=account_id, partition=partition))

    for module in modules:
        replace(module, "get_stack_from_s3_url", get_stack_from_s3_url)


@repair("templates-lists")
def leave_out_no_values() -> None:
    """An entry of a list that is AWS::NoValue is left out, as a property of an object is.

    Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/pseudo-parameter-reference.html
    (2026-12).
    """
    from moto.cloudformation import parsing

    stock: Any = parsing.clean_json

    def clean_json(resource_json: Any, resources_map: Any) -> Any:
        made = stock(resource_json, resources_map)
        if isinstance(resource_json, list):
            return [entry for entry in made if entry is not None]
        return made

    replace(parsing, "clean_json", clean_json, parameters=("resource_json", "resources_map"))


@repair("templates-failures")
def fail_stacks() -> None:
    """A resource that cannot be made fails the stack with its reason, as CloudFormation does."""
    from moto.cloudformation.models import Stack

    stock_create = Stack.create_resources

    def create_resources(self: Any) -> None:
        try:
            stock_create(self)
        except Exception as error:  # noqa: BLE001 - any failure of any moto service ends here
            _fail(self, error)

    replace(Stack, "create_resources", create_resources)


def _fail(stack: Any, error: Exception) -> None:
    reason = f"{type(error).__name__}: {error}"
    _LOG.warning("stack %s failed: %s", stack.name, reason, exc_info=error)
    stack.status = "CREATE_FAILED"
    stack.stack_status_reason = reason
    stack._add_stack_event("CREATE_FAILED", resource_status_reason=reason)


@repair("templates-functions")
def keep_function_properties() -> None:
    """Architectures, log group, recursion, tracing of AWS::Lambda::Function."""
    function_class = moto_name("awslambda.models", "LambdaFunction")
    stock = function_class.create_from_cloudformation_json.__func__
    stock_configuration = function_class.get_configuration

    def create(
        cls: type, /, name: str, template: Any, account: str, region: str, **rest: Any
    ) -> Any:
        properties = template["Properties"]
        function = stock(cls, name[:64], template, account, region, **rest)
        function.architectures = properties.get("Architectures") or ["x86_64"]
        function.logging_config = properties.get("LoggingConfig")
        function.recursive_loop = properties.get("RecursiveLoop", "Terminate")
        function.tracing_config = properties.get("TracingConfig") or {"Mode": "PassThrough"}
        return function

    def get_configuration(self: Any, on_create: bool = False) -> Any:  # noqa: FBT001, FBT002 - moto's
        configuration = stock_configuration(self, on_create)
        default = {"LogFormat": "Text", "LogGroup": self.logs_group_name}
        configuration["LoggingConfig"] = default | (getattr(self, "logging_config", None) or {})
        return configuration

    replace(function_class, "create_from_cloudformation_json", classmethod(create))
    replace(function_class, "get_configuration", get_configuration)


@repair("templates-tables")
def keep_table_properties() -> None:
    """Time to live and point-in-time recovery of AWS::DynamoDB::Table."""
    table_class = moto_name("dynamodb.models.table", "Table")
    stock = table_class.create_from_cloudformation_json.__func__

    def create(
        cls: type, /, name: str, template: Any, account: str, region: str, **rest: Any
    ) -> Any:
        table = stock(cls, name, template, account, region, **rest)
        lifetime = template["Properties"].get("TimeToLiveSpecification")
        if lifetime:
            backend("dynamodb", account, region).update_time_to_live(name, lifetime)
        return table

    replace(table_class, "create_from_cloudformation_json", classmethod(create))


@repair("templates-parameters")
def read_parameter_tags() -> None:
    """Tags of AWS::SSM::Parameter are a map in templates, unlike those of other types."""
    parameter_class = moto_name("ssm.models", "Parameter")
    stock = parameter_class.create_from_cloudformation_json.__func__

    def create(
        cls: Any, /, name: str, template: Any, account: str, region: str, **rest: Any
    ) -> Any:
        tags = template["Properties"].get("Tags")
        if isinstance(tags, dict):
            rows = [{"Key": key, "Value": value} for key, value in sorted(tags.items())]
            template["Properties"]["Tags"] = rows
        return stock(cls, name, template, account, region, **rest)

    replace(parameter_class, "create_from_cloudformation_json", classmethod(create))
