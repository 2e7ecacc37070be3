"""Labels, annotations, requirements and taints of nodes.

Source: https://karpenter.sh/v0.31/concepts/provisioners/ (2023-09).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, ValidationInfo, WithJsonSchema, field_validator

from shared.manifests.api.parts import AllowedValues, Fault, Part, Schema, ValidationRule, refuse
from shared.manifests.api.status import DATE_TIME
from shared.manifests.problems import key_fault, value_fault
from shared.model import labels as keys
from shared.model.dialect import Dialect
from shared.model.kubernetes.taints import Effect
from shared.model.nearest import nearest
from shared.model.requirements import (
    KUBERNETES_OPERATORS,
    Operator,
    Requirement,
    Requirements,
)

_KNOWN_VALUES: Final = (
    (keys.CAPACITY_TYPE, ("on-demand", "spot")),
    (keys.ARCH, ("amd64", "arm64")),
    (keys.OS, ("linux",)),
    (keys.INSTANCE_TENANCY, ("default",)),
)
_TYPE_KEYS: Final = (
    keys.INSTANCE_TYPE,
    keys.INSTANCE_FAMILY,
    keys.INSTANCE_CATEGORY,
    keys.INSTANCE_GENERATION,
)
# Keys of one domain share most of their letters.
_NEAR: Final = 0.9
_OF_OTHERS: Final = (
    "this key belongs to Kubernetes, Karpenter or Dovetail; use one of your own domain"
)


def _controls(allowed: str) -> str:
    return (
        "this annotation belongs to Dovetail or Karpenter; of their annotations only "
        f"{allowed} may be set"
    )


def label_key_fault(key: str) -> str | None:
    """Return what to change in the key of a user's label, None when it may be used."""
    return key_fault(key) or (meant_key(key, _OF_OTHERS) if keys.is_restricted(key) else None)


def meant_key(key: str, otherwise: str) -> str:
    """Return what to write instead of a key that belongs to others: the known one it resembles."""
    usable = [name for name in keys.WELL_KNOWN if not keys.is_restricted(name)]
    near = "" if key in keys.WELL_KNOWN else nearest(key, usable, _NEAR)
    return f"unknown key; write {near}" if near else otherwise


def _annotation_key_fault(allowed: str, key: str) -> str | None:
    return key_fault(key) or (
        _controls(allowed) if keys.is_control_annotation(key, allowed) else None
    )


def refused_by(fault: Callable[[str], str | None]) -> AfterValidator:
    """Return a validator that refuses strings for which the function returns a remedy."""

    def check(value: str) -> str:
        remedy = fault(value)
        refuse([Fault((), value, remedy)] if remedy else [])
        return value

    return AfterValidator(check)


def checked_labels(
    key_fault_of: Callable[[str], str | None], given: dict[str, str]
) -> dict[str, str]:
    """Return labels whose keys and values may be used."""
    faults = ((key, key_fault_of(key) or value_fault(given[key])) for key in given)
    refuse(Fault((key,), given[key], remedy) for key, remedy in faults if remedy)
    return given


def checked_annotations(allowed: str, given: dict[str, str]) -> dict[str, str]:
    """Return annotations; refuse Dovetail's and Karpenter's own, except the allowed one."""
    faults = ((key, _annotation_key_fault(allowed, key)) for key in given)
    refuse(Fault((key,), given[key], remedy) for key, remedy in faults if remedy)
    return given


def _domains(names: Iterable[str]) -> str:
    return "|".join(name.replace(".", "[.]") for name in names)


def allowed_key_rule(key: str, reserved: tuple[str, ...] = keys.RESTRICTED_DOMAINS) -> str:
    """Return the CEL expression that a user may set or require the label key.

    Args:
        reserved: Domains that the dialect of the document reserves.
    """
    known = sorted(
        f"'{name}'" for name in (*keys.WELL_KNOWN, *keys.ALIASES) if not keys.is_restricted(name)
    )
    return (
        f"(!{key}.matches('^([^/]*[.])?({_domains(reserved)})/')"
        f" || {key}.matches('^([^/]*[.])?({_domains(keys.EXCEPTED_DOMAINS)})/')"
        f" || {key} in [{', '.join(known)}])"
    )


_KEY_PATTERN: Final = (
    "^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
)
_VALUE: Final[Mapping[str, object]] = {
    "maxLength": 63,
    "pattern": "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$",
}
_KEY_RULE: Final = (
    "is a name of at most 63 characters, after a domain and a slash if you like, without spaces"
)
KEY: Final = Schema(
    ValidationRule(f"a key {_KEY_RULE}", f"self.matches('{_KEY_PATTERN}')"),
    minLength=1,
    maxLength=316,
)


def label_schema(message: str, reserved: tuple[str, ...] = keys.RESTRICTED_DOMAINS) -> Schema:
    """Return the schema of labels.

    Args:
        message: Message for a key that may not be set.
        reserved: Domains that the dialect of the document reserves.
    """
    return Schema(
        ValidationRule(
            f"a label key {_KEY_RULE}",
            f"self.all(key, size(key) <= 316 && key.matches('{_KEY_PATTERN}'))",
        ),
        ValidationRule(message, f"self.all(key, {allowed_key_rule('key', reserved)})"),
        maxProperties=100,
        additionalProperties={"type": "string", **_VALUE},
    )


def annotation_schema(allowed: str) -> Schema:
    """Return the schema of annotations.

    Args:
        allowed: The only annotation of Dovetail and Karpenter that may be set.
    """
    return Schema(
        ValidationRule(
            _controls(allowed),
            f"self.all(key, !key.matches('^({_domains(keys.CONTROL_DOMAINS)})/')"
            f" || key == '{allowed}')",
        ),
        maxProperties=100,
    )


Labels = Annotated[
    dict[str, str],
    AfterValidator(partial(checked_labels, label_key_fault)),
    label_schema(_OF_OTHERS),
]
Annotations = Annotated[
    dict[str, str],
    AfterValidator(partial(checked_annotations, keys.DO_NOT_CONSOLIDATE)),
    annotation_schema(keys.DO_NOT_CONSOLIDATE),
]
LabelKey = Annotated[str, refused_by(label_key_fault), KEY]
TaintKey = Annotated[str, refused_by(key_fault), KEY]
Value = Annotated[str, refused_by(value_fault), Schema(**_VALUE)]


def _parsed(key: str, operator: str, values: Iterable[str]) -> Requirement:
    # The field of each model restricts operators to those of its dialect.
    return Requirement.parse(key, operator, values, tuple(Operator))


class NodeRequirement(Part):
    """What nodes must answer about one label."""

    key: LabelKey = Field(description="A label of nodes, such as kubernetes.io/arch")
    operator: Annotated[str, AllowedValues(*KUBERNETES_OPERATORS)] = Field(
        description=f"One of {', '.join(KUBERNETES_OPERATORS)}"
    )
    values: Annotated[list[Value], Schema(maxItems=1000)] = Field(default=[], validate_default=True)

    @field_validator("values")
    @classmethod
    def _fit_the_operator(cls, values: list[str], info: ValidationInfo) -> list[str]:
        if {"key", "operator"} <= info.data.keys():
            try:
                # A negative bound is refused before: no label value begins with a minus.
                _parsed(info.data["key"], info.data["operator"], values)
            except ValueError as error:
                refuse([Fault((), values, str(error))])
        return values

    @property
    def requirement(self) -> Requirement:
        """Return the Requirement of the model."""
        return _parsed(self.key, self.operator, self.values)


def requirement_schema(
    *rules: ValidationRule, bounds: Iterable[str] = (Operator.GT, Operator.LT)
) -> Schema:
    """Return the schema of a requirement.

    Args:
        rules: Rules of its dialect.
        bounds: Operators that compare with a number.
    """
    named = tuple(bounds)
    return Schema(
        ValidationRule(
            "In and NotIn need values",
            "!(self.operator in ['In', 'NotIn']) || (has(self.values) && size(self.values) > 0)",
        ),
        ValidationRule(
            "Exists and DoesNotExist take no values",
            """!(self.operator in ['Exists', 'DoesNotExist'])
            || !has(self.values) || size(self.values) == 0""",
        ),
        ValidationRule(
            f"{', '.join(named[:-1])} and {named[-1]} need one value, a whole number of 0 or more",
            f"""!(self.operator in [{", ".join(f"'{name}'" for name in named)}])
            || (has(self.values) && size(self.values) == 1
            && self.values.all(value, value.matches('^[0-9]{{1,9}}$')))""",
        ),
        *rules,
    )


_REQUIREMENT: Final = requirement_schema(ValidationRule(_OF_OTHERS, allowed_key_rule("self.key")))
NodeRequirements = Annotated[list[Annotated[NodeRequirement, _REQUIREMENT]], Schema(maxItems=50)]


class NodeTaint(Part):
    """A taint of nodes."""

    key: TaintKey = Field(description="A key, such as example.com/name")
    value: Value = ""
    effect: Annotated[str, AllowedValues(*Effect)] = Field(
        description=f"One of {', '.join(Effect)}"
    )
    time_added: Annotated[Any, WithJsonSchema(DATE_TIME)] = None


NodeTaints = Annotated[
    list[NodeTaint],
    Schema(
        maxItems=50,
        **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["key", "effect"]},
    ),
]


def repeated_taints(seen: Iterable[NodeTaint], more: Iterable[NodeTaint]) -> Iterator[Fault]:
    """Yield a fault for each taint of `more` whose key and effect another taint has."""
    known = {(taint.key, taint.effect) for taint in seen}
    for number, taint in enumerate(more):
        if (taint.key, taint.effect) in known:
            remedy = f"another taint has this key with effect {taint.effect}"
            yield Fault((number, "key"), taint.key, remedy)
        known.add((taint.key, taint.effect))


def all_requirements(
    labels: Mapping[str, str], requirements: Iterable[NodeRequirement]
) -> tuple[Requirement, ...]:
    """Return the requirements of nodes; labels count as requirements."""
    asked = [Requirement.of(key, value) for key, value in labels.items()]
    return (*asked, *(requirement.requirement for requirement in requirements))


def contradictions(asked: Iterable[Requirement]) -> Iterator[Fault]:
    """Yield a fault for each label whose requirements no node can satisfy."""
    given = tuple(asked)
    merged = Requirements.of(given)
    for key in merged.empty_keys():
        parts = " and ".join(
            requirement.describe() for requirement in given if requirement.key == key
        )
        yield Fault((), parts, "no value satisfies all of these; loosen one")
    for key, known in _KNOWN_VALUES:
        wanted = merged.get(key)
        if wanted is None or wanted.is_empty() or any(wanted.allows(value) for value in known):
            continue
        yield Fault((), wanted.describe(), f"allow at least one of {', '.join(known)}")


def with_defaults(asked: Iterable[Requirement], dialect: Dialect) -> Requirements:
    """Return requirements merged, with a dialect's defaults for keys that none mentions."""
    merged = Requirements.of(asked)
    mentioned = {requirement.key for requirement in merged}
    defaults = [
        requirement
        for requirement in dialect.default_requirements
        if requirement.key not in mentioned
    ]
    if mentioned.isdisjoint(_TYPE_KEYS):
        defaults.extend(dialect.default_type_requirements)
    return merged.merge(Requirements.of(defaults))
