"""What moto and the SDK work out anew for each request, value and session, kept instead.

Nothing else changes. Without it, half of the server's time goes there.
"""

import functools
import json
from importlib import import_module
from typing import Any

from infra.local.aws.backends import moto_name
from infra.local.aws.moto_patches import add, repair, replace


@repair("speed-models")
def keep_models() -> None:
    """The SDK's descriptions of services, which each session of the SDK reads anew."""
    loaders: Any = import_module("botocore.loaders")
    stock_load = loaders.JSONFileLoader.load_file
    stock_list = loaders.Loader.list_available_services
    files: dict[str, Any] = {}
    services: dict[str, Any] = {}

    def load_file(self: Any, file_path: str) -> Any:
        if file_path not in files:
            files[file_path] = stock_load(self, file_path)
        return files[file_path]

    def list_available_services(self: Any, type_name: str) -> Any:
        if type_name not in services:
            services[type_name] = stock_list(self, type_name)
        return services[type_name]

    replace(loaders.JSONFileLoader, "load_file", load_file)
    replace(loaders.Loader, "list_available_services", list_available_services)


@repair("speed-routing")
def keep_names() -> None:
    """The names of moto's packages, and of the methods of each class that answers."""
    backends: Any = import_module("moto.backends")
    responses: Any = import_module("moto.core.responses")
    packages = frozenset(backends.list_of_moto_modules())
    stock = responses.method_names_from_class
    replace(backends, "list_of_moto_modules", lambda: packages)
    replace(
        responses, "method_names_from_class", functools.cache(lambda owner: frozenset(stock(owner)))
    )


@repair("speed-answers")
def keep_attribute_names() -> None:
    """The names that a member of an answer may have in moto's own objects, by their class.

    And which members are transformed, and which names of elements are fit for XML.
    """
    serialize: Any = import_module("moto.core.serialize")
    xml: Any = import_module("xmltodict")
    picker_class, missing = serialize.XFormedAttributePicker, serialize.MISSING
    stock_keys, stock_call = picker_class.get_possible_keys, picker_class.__call__

    def get_possible_keys(self: Any, context: Any) -> Any:
        # A shape is the member of one structure and lives as long as the service's model.
        known = vars(context.shape).setdefault("dovetail_names", {})
        asked = (context.key, type(context.obj))
        if asked not in known:
            known[asked] = tuple(dict.fromkeys(stock_keys(self, context)))
        return known[asked]

    def call(self: Any, context: Any) -> Any:
        kept = vars(self)
        if "dovetail_transformed" not in kept:
            # Paths that end with the member's name.
            paths = self.response_transformers
            kept["dovetail_transformed"] = {path.rpartition(".")[2] for path in paths}
        if context.key in kept["dovetail_transformed"]:
            return stock_call(self, context)
        for key in self.get_possible_keys(context):
            value = serialize.get_value(context.obj, key, missing)
            if value is not missing:
                return value
        return None

    replace(picker_class, "get_possible_keys", get_possible_keys)
    replace(picker_class, "__call__", call)
    replace(xml, "_validate_name", functools.cache(xml._validate_name))


@repair("speed-expressions")
def keep_node_types() -> None:
    """The types of nodes that each pass over a DynamoDB expression looks for."""
    nodes: Any = import_module("moto.dynamodb.parsing.ast_nodes")
    stock = nodes.DepthFirstTraverser.nodes_to_be_processed
    is_a: Any = functools.cache(issubclass)

    def nodes_to_be_processed(self: Any) -> Any:
        kept = vars(self)
        if "dovetail_types" not in kept:
            kept["dovetail_types"] = stock(self)
        return kept["dovetail_types"]

    replace(nodes.DepthFirstTraverser, "nodes_to_be_processed", nodes_to_be_processed)
    # They are abstract classes, which Python asks at length.
    add(nodes, "isinstance", lambda found, kinds: is_a(type(found), kinds))


@repair("speed-templates")
def read_json_templates() -> None:
    """A template in JSON is read as JSON; as YAML, which it is too, that takes seconds."""
    stack_class = moto_name("cloudformation.models", "Stack")
    stock = stack_class.parse_template

    def parse_template(template: str) -> Any:
        try:
            return json.loads(template)
        except ValueError:
            return stock(template)

    replace(stack_class, "parse_template", staticmethod(parse_template))
