"""What the models of custom resources are made of, and the refusals that they give.

A model says what a field is, for both sides: the functions read stored objects with it, and
`make crds` makes the schema that API servers check. The functions report every wrong field, with
what to write instead. A bound in a `Shape` belongs to the schema alone.
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, TypeVar, get_args

from annotated_types import Ge, Le
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

from shared.manifests.problems import FieldProblem

_STRING: Final = "write a string, in quotes if it looks like a number"
_OBJECT: Final = "write an object with named fields"
_REMEDIES: Final[Mapping[str, str]] = {
    "bool_type": "write true or false, without quotes",
    "dict_type": _OBJECT,
    "model_attributes_type": _OBJECT,
    "model_type": _OBJECT,
    "string_type": _STRING,
    "string_unicode": _STRING,
}
_QUOTED: Final = re.compile("'([^']*)'")
_NUMBER_ERRORS: Final = ("greater_than_equal", "int_type", "less_than_equal")
_UNKNOWN_ERRORS: Final = ("extra_forbidden", "invalid_key")


class Part(BaseModel):
    """One object of a custom resource: null counts as absent, an unknown field is wrong.

    Attributes:
        advice: What to do with fields that belong elsewhere, by name.
    """

    model_config = ConfigDict(
        strict=True, extra="forbid", defer_build=True, alias_generator=to_camel
    )
    advice: ClassVar[Mapping[str, str]] = {}

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """What `kubectl get` prints of an object besides its name."""

    name: str
    type: str
    path: str
    description: str = ""
    wide: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """Names of a kind, and how `kubectl` shows it.

    Attributes:
        file: Name of the manifest of its definition.
    """

    file: str
    group: str
    version: str
    kind: str
    plural: str
    description: str
    columns: tuple[Column, ...]

    @property
    def api_version(self) -> str:
        """Return what manifests write as apiVersion."""
        return f"{self.group}/{self.version}"


class CustomResource(Part):
    """A document of its own kind; apiVersion and kind may be absent, as in a typed list."""

    definition: ClassVar[Definition]


class Rule:
    """A rule that API servers check, written in the Common Expression Language.

    Only these functions are used: has, all, exists, in, size, matches, startsWith.
    """

    def __init__(self, message: str, cel: str) -> None:
        self.message = message
        self.cel = " ".join(cel.split())


class Shape:
    """What the schema says of a value besides its type, and the rules that it adds."""

    def __init__(self, *rules: Rule, **more: Any) -> None:
        self.rules = rules
        self.more = more

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return the schema of the value with these additions."""
        rules = [{"message": rule.message, "rule": rule.cel} for rule in self.rules]
        added = {"x-kubernetes-validations": rules} if rules else {}
        return {**handler(core), **self.more, **added}


class Choice:
    """A string out of a few."""

    def __init__(self, *choices: str) -> None:
        self.choices = choices

    def __get_pydantic_core_schema__(
        self, source: type[Any], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Return the schema that accepts these strings."""
        return literal_schema(list(self.choices))


Whole32 = Annotated[int, Shape(format="int32")]
Whole64 = Annotated[int, Shape(format="int64")]


@dataclass(frozen=True, slots=True)
class Fault:
    """What a validator found wrong.

    Attributes:
        loc: The path from the value that was validated; empty for the value itself.
        field: A name for the last part of the path where a field's part is meant.
    """

    loc: tuple[str | int, ...]
    value: object
    remedy: str
    field: str = ""


def refuse(faults: Iterable[Fault]) -> None:
    """Refuse the value that is validated if anything was found wrong in it.

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


def read(part: type[P], raw: object, path: str, problems: list[FieldProblem]) -> P | None:
    """Return an object as its model, None after adding what is wrong in it to `problems`.

    Args:
        path: Where the object is, such as `spec.provider`; empty for a document.
    """
    try:
        return part.model_validate(raw)
    except ValidationError as error:
        problems.extend(
            _problem(part, path, details) for details in error.errors(include_url=False)
        )
        return None


def _problem(root: type[Part], path: str, details: ErrorDetails) -> FieldProblem:
    loc = tuple(name for name in details["loc"] if name != "[key]")
    context = details.get("ctx", {})
    shown = [path] if path else []
    for name in loc:
        if isinstance(name, int):
            shown[-1:] = [f"{shown[-1]}[{name}]" if shown else f"[{name}]"]
        else:
            shown.append(str(name))
    if context.get("field"):
        shown[-1:] = [context["field"]]
    missing = details["type"] == "missing"
    return FieldProblem(
        field=".".join(shown),
        value=None if missing else details["input"],
        remedy=_remedy(root, loc, details),
    )


def _remedy(root: type[Part], loc: tuple[str | int, ...], details: ErrorDetails) -> str:
    """Return what to write instead of a wrong value."""
    kind, context = details["type"], details.get("ctx", {})
    if kind == "fault":
        return str(context["remedy"])
    if kind in _REMEDIES:
        return _REMEDIES[kind]
    part = _owner(root, loc)
    field = part.fields_by_name().get(str(loc[-1])) if loc else None
    if kind in _UNKNOWN_ERRORS:
        return _unknown(part, str(loc[-1]))
    if kind == "literal_error":
        return f"use one of {', '.join(_QUOTED.findall(context['expected']))}"
    if field is None:
        return str(details["msg"])
    if kind == "missing":
        said = field.description or str(loc[-1])
        return f"write {said[0].lower()}{said[1:]}"
    if kind in _NUMBER_ERRORS:
        return _whole_number(field)
    if kind == "list_type" and inner_part(field.annotation) is None:
        return "write a list of strings, numbers in quotes"
    return "write a list of objects" if kind == "list_type" else str(details["msg"])


def _unknown(part: type[Part], name: str) -> str:
    known = part.fields_by_name()
    if name in part.advice:
        return part.advice[name]
    spec = inner_part(known["spec"].annotation) if issubclass(part, CustomResource) else None
    if spec is not None and name in spec.fields_by_name():
        return f"move it under spec: spec.{name}"
    near = difflib.get_close_matches(name, sorted(known), n=1)
    advice = f"write {near[0]}" if near else f"known fields are {', '.join(sorted(known))}"
    return f"unknown field; {advice}"


def _whole_number(field: FieldInfo) -> str:
    least = next(bound.ge for bound in field.metadata if isinstance(bound, Ge))
    most = [bound.le for bound in field.metadata if isinstance(bound, Le)]
    bounds = f"from {least} to {most[0]}" if most else f"of {least} or more"
    return f"write a whole number {bounds}"


def _owner(root: type[Part], loc: tuple[str | int, ...]) -> type[Part]:
    """Return the innermost part on the way to a value."""
    part = root
    for name in loc[:-1]:
        field = part.fields_by_name().get(str(name))
        part = (inner_part(field.annotation) if field is not None else None) or part
    return part


def inner_part(annotation: object) -> type[Part] | None:
    """Return the part that a field is, or holds a list of; None for other fields."""
    if isinstance(annotation, type) and issubclass(annotation, Part):
        return annotation
    found = (inner_part(entry) for entry in get_args(annotation))
    return next((entry for entry in found if entry is not None), None)
