"""Base classes of the models of custom resources, and the errors of their validation.

A model defines fields for both sides: the functions read stored objects with it, and `make crds`
generates the schema that API servers check. The functions report every wrong field, with what to
write instead. What a `Schema` adds, such as a minimum, only the API server checks.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, ClassVar, Final, TypeVar, get_args

from annotated_types import Ge, Le
from msgspec import Struct
from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, ErrorDetails, InitErrorDetails, PydanticCustomError
from pydantic_core.core_schema import literal_schema

from shared.manifests.problems import FieldProblem, Section, unknown_field_remedy

_STRING: Final = "write a string, in quotes if it looks like a number"
_OBJECT: Final = "write an object with named fields"
_REMEDIES: Final[Mapping[str, str]] = {
    "bool_type": "write true or false, without quotes",
    "dict_type": _OBJECT,
    "list_type": "write a list of strings, numbers in quotes",
    "model_attributes_type": _OBJECT,
    "model_type": _OBJECT,
    "string_too_short": "write at least one character",
    "string_type": _STRING,
    "string_unicode": _STRING,
    "too_short": "write at least one entry",
}
_QUOTED: Final = re.compile("'([^']*)'")
_NUMBER_ERRORS: Final = ("greater_than_equal", "int_type", "less_than_equal")
_UNKNOWN_ERRORS: Final = ("extra_forbidden", "invalid_key")


class Part(BaseModel):
    """One object of a custom resource: null counts as absent, an unknown field is wrong.

    Attributes:
        advice: What to do with fields that belong elsewhere, by name.
        refused: The fields of `advice` that Karpenter knows, with their types. They are in the
            schema, with a rule that refuses them: an API server drops unknown fields silently.
    """

    model_config = ConfigDict(
        strict=True, extra="forbid", defer_build=True, alias_generator=to_camel
    )
    advice: ClassVar[Mapping[str, str]] = {}
    refused: ClassVar[Mapping[str, str]] = {}

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {key: entry for key, entry in value.items() if entry is not None}

    @classmethod
    def fields_by_name(cls) -> dict[str, FieldInfo]:
        """Return the fields by their names in manifests."""
        return {str(field.alias): field for field in cls.model_fields.values()}


P = TypeVar("P", bound=Part)


class PrinterColumn(Struct, frozen=True, kw_only=True):
    """A column that `kubectl get` prints besides the name."""

    name: str
    type: str
    path: str
    description: str = ""
    wide: bool = False


class ValidationRule:
    """A rule that API servers check, written in the Common Expression Language.

    Only these functions are used: has, all, exists, in, size, matches, startsWith.
    """

    def __init__(self, message: str, cel: str) -> None:
        self.message = message
        self.cel = " ".join(cel.split())

    @property
    def as_schema(self) -> dict[str, str]:
        """Return the rule in the format of schemas."""
        return {"message": self.message, "rule": self.cel}


class CustomResourceDefinition(Struct, frozen=True, kw_only=True):
    """Names of a kind, and how `kubectl` shows it.

    Attributes:
        file: Name of the manifest of the CRD, below infra/cluster.
        rules: Rules about whole documents.
        short_names: Other names that `kubectl` accepts.
    """

    file: str
    api_version: str
    kind: str
    plural: str
    description: str
    columns: tuple[PrinterColumn, ...]
    rules: tuple[ValidationRule, ...] = ()
    short_names: tuple[str, ...] = ()


class CustomResource(Part):
    """A document of its own kind; apiVersion and kind may be absent, as in a typed list."""

    definition: ClassVar[CustomResourceDefinition]


class Schema:
    """Keywords and validation rules that the CRD schema gets beside the type of a field.

    Lists, maps and strings need limits: API servers refuse rules whose cost has no bound.
    """

    def __init__(self, *rules: ValidationRule, **more: Any) -> None:
        self.rules = rules
        self.keywords = more

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return the schema of the value with these additions."""
        rules = [rule.as_schema for rule in self.rules]
        added = {"x-kubernetes-validations": rules} if rules else {}
        return {**handler(core), **self.keywords, **added}


class AllowedValues:
    """A string that must be one of these values (an enum in the CRD)."""

    def __init__(self, *choices: str) -> None:
        self.choices = choices

    def __get_pydantic_core_schema__(
        self, source: type[Any], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Return the schema that accepts these strings."""
        return literal_schema(list(self.choices))


QUANTITY: Final[dict[str, Any]] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": "^[+]?([0-9]+([.][0-9]*)?|[.][0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$",
    "x-kubernetes-int-or-string": True,
}
Int32 = Annotated[int, Schema(format="int32")]
Int64 = Annotated[int, Schema(format="int64")]


class Fault(Struct, frozen=True):
    """A fault that a validator found.

    Attributes:
        loc: The path from the validated value; empty for the value itself.
        field: What to call the last part of the path, if that is no field of its own.
    """

    loc: tuple[str | int, ...]
    value: object
    remedy: str
    field: str = ""


def refuse_entries(given: dict[str, Any], *checks: Callable[[Section], object]) -> None:
    """Refuse the entries of a map that fail checks of a section."""
    problems: list[FieldProblem] = []
    for check in checks:
        check(Section(given, "", problems))
    refuse(Fault((problem.field,), problem.value, problem.remedy) for problem in problems)


def checked_quantities(given: dict[str, Any]) -> dict[str, Any]:
    """Return a map of resources to quantities, none of them negative.

    Raises:
        ValidationError: With each entry that is none.
    """
    refuse_entries(given, Section.resources_with_zeros)
    return given


def refuse(faults: Iterable[Fault]) -> None:
    """Refuse the validated value if it has faults.

    Raises:
        ValidationError: With each fault.
    """
    errors = [
        InitErrorDetails(
            type=PydanticCustomError(
                "fault", "{remedy}", {"remedy": fault.remedy, "field": fault.field}
            ),
            loc=fault.loc,
            input=fault.value,
        )
        for fault in faults
    ]
    if errors:
        raise ValidationError.from_exception_data("part", errors)


def read_part(
    part: type[P], raw: object, path: str, problems: list[FieldProblem], context: object = None
) -> P | None:
    """Return an object as its model, None after adding what is wrong in it to `problems`.

    Args:
        path: Path of the object, such as `spec.provider`; empty for a document.
        context: Context for the validators of its fields.
    """
    try:
        return part.model_validate(raw, context=context)
    except ValidationError as error:
        # A field that is missing is often one whose name is misspelt.
        found = sorted(error.errors(include_url=False), key=lambda one: one["type"] == "missing")
        problems.extend(_problem(part, path, details) for details in found)
        return None


def _problem(root: type[Part], path: str, details: ErrorDetails) -> FieldProblem:
    part, names = _place(root, details["loc"])
    shown = [path] if path else []
    for name in names:
        if isinstance(name, int) and shown:
            shown[-1] += f"[{name}]"
        else:
            shown.append(str(name))
    if within := details.get("ctx", {}).get("field"):
        shown[-1] = within
    return FieldProblem(
        field=".".join(shown),
        value=None if _says_nothing(details) else details["input"],
        remedy=_remedy(part, names[-1] if names else "", details),
    )


def _says_nothing(details: ErrorDetails) -> bool:
    """Return whether there is no value, or one whose contents do not matter."""
    unknown = details["type"] in _UNKNOWN_ERRORS
    has_contents = isinstance(details["input"], (dict, list)) and bool(details["input"])
    return details["type"] == "missing" or (unknown and has_contents)


def _remedy(part: type[Part], name: str | int, details: ErrorDetails) -> str:
    """Return what to write instead of a wrong value."""
    kind, context = details["type"], details.get("ctx", {})
    field = part.fields_by_name().get(str(name))
    if kind == "fault":
        return str(context["remedy"])
    if kind in _UNKNOWN_ERRORS:
        return _unknown(part, str(name))
    if kind == "literal_error":
        return f"use one of {', '.join(_QUOTED.findall(context['expected']))}"
    if kind == "missing" and field is not None:
        described = str(field.description)
        return f"write {described[0].lower()}{described[1:]}"
    if kind in _NUMBER_ERRORS and field is not None:
        return _whole_number(field)
    if kind == "too_long":
        return f"write at most {context['max_length']} entries"
    if kind == "list_type" and field is not None and inner_part(field.annotation) is not None:
        return "write a list of objects"
    return _REMEDIES.get(kind, details["msg"])


def _unknown(part: type[Part], name: str) -> str:
    known = part.fields_by_name()
    if name in part.advice:
        return part.advice[name]
    spec = inner_part(known["spec"].annotation) if issubclass(part, CustomResource) else None
    if spec is not None and name in spec.fields_by_name():
        return f"move it under spec: spec.{name}"
    return unknown_field_remedy(name, known)


def _whole_number(field: FieldInfo) -> str:
    least = next(bound.ge for bound in field.metadata if isinstance(bound, Ge))
    most = [bound.le for bound in field.metadata if isinstance(bound, Le)]
    bounds = f"from {least} to {most[0]}" if most else f"of {least} or more"
    return f"write a whole number {bounds}"


def _place(
    root: type[Part], loc: tuple[str | int, ...]
) -> tuple[type[Part], tuple[str | int, ...]]:
    """Return the innermost part around a value, and the value's path in the manifest."""
    names: list[str | int] = []
    part = root
    inner: type[Part] | None = root
    for name in loc:
        if isinstance(name, int) or inner is None:
            names.append(name)
            continue
        part = inner
        # A wrong default is reported under the name of the model's attribute.
        field = part.model_fields.get(name) or part.fields_by_name().get(name)
        names.append(name if field is None else str(field.alias))
        inner = None if field is None else inner_part(field.annotation)
    return part, tuple(names)


def inner_part(annotation: object) -> type[Part] | None:
    """Return the part that a field has, alone or in a list; None for other fields."""
    if isinstance(annotation, type) and issubclass(annotation, Part):
        return annotation
    found = (inner_part(entry) for entry in get_args(annotation))
    return next((entry for entry in found if entry is not None), None)
