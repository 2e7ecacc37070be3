"""Selector terms of an EC2NodeClass: the fields of a term are AND-ed, the terms are OR-ed.

Source: https://karpenter.sh/docs/concepts/nodeclasses/ (2026-11).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, ClassVar, Final, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from shared.manifests.api.parts import Fault, Part, Schema, ValidationRule, refuse
from shared.model.ec2.selectors import TRUSTED_OWNERS, SelectorTerm
from shared.model.values import replace

# Names of families in an alias, and the `amiFamily` of each.
ALIAS_FAMILIES: Final[Mapping[str, str]] = {
    "al2": "AL2",
    "al2023": "AL2023",
    "bottlerocket": "Bottlerocket",
}
LATEST: Final = "latest"
WINDOWS: Final = "Windows instances are not launched; use a managed node group for them"
_ALIAS: Final = re.compile(r"([a-z0-9]+)@([-A-Za-z0-9_.]+)\Z")
_LONGEST_ALIAS: Final = 30
_OWNER_PATTERN: Final = "^([0-9]{12}|self|amazon|aws-marketplace)$"
_OWNER: Final = re.compile(r"(\d{12}|self|amazon|aws-marketplace)\Z")
_ALIAS_SHAPE: Final = Schema(
    maxLength=_LONGEST_ALIAS, pattern=f"^({'|'.join(ALIAS_FAMILIES)})@[-A-Za-z0-9_.]+$"
)
_TAGS_ALONE: Final = "an id leaves nothing to select: remove it or tags"


def _tags(given: dict[str, str]) -> dict[str, str]:
    remedy = "write a tag name and a value, or * for any value"
    if not given:
        # API servers accept it, as with Karpenter's CRD.
        refuse([Fault((), given, remedy)])
    refuse(Fault((k,), v, remedy) for k, v in given.items() if not k or not v)
    return given


Tags = Annotated[
    dict[str, str],
    AfterValidator(_tags),
    Field(default={}, max_length=20),
    Schema(
        ValidationRule("a tag name must not be empty", "self.all(key, size(key) > 0)"),
        additionalProperties={"type": "string", "minLength": 1, "maxLength": 256},
    ),
]
_Text = Annotated[str, Field(min_length=1), Schema(maxLength=1024)]


def _id_of(prefix: str) -> Schema:
    return Schema(maxLength=64, pattern=f"^{prefix}-[0-9a-z]+$")


class _Term(Part):
    """A term by tags or by id."""

    id_prefix: ClassVar[str]
    tags: Tags
    resource_id: str | None = Field(default=None, alias="id")

    @field_validator("resource_id")
    @classmethod
    def _is_an_id(cls, value: str) -> str:
        if not re.match(rf"{cls.id_prefix}-[0-9a-z]+\Z", value):
            refuse([Fault((), value, f"write an id that begins with {cls.id_prefix}-")])
        return value

    @property
    def asked(self) -> SelectorTerm:
        """The selector term that launches use."""
        ids = (self.resource_id,) if self.resource_id is not None else ()
        return SelectorTerm(tags={key: (value,) for key, value in self.tags.items()}, ids=ids)

    def given(self) -> list[str]:
        """Return the names of the term's fields, sorted."""
        return sorted(self.model_dump(by_alias=True, exclude_unset=True))


class SubnetTerm(_Term):
    """Subnets, by tags or by id."""

    id_prefix: ClassVar = "subnet"
    resource_id: Annotated[str, _id_of(id_prefix)] | None = Field(default=None, alias="id")

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        refuse(_exactly_one(self.given(), "tags or id"))
        return self


class SecurityGroupTerm(_Term):
    """Security groups, by tags, by id or by name."""

    id_prefix: ClassVar = "sg"
    resource_id: Annotated[str, _id_of(id_prefix)] | None = Field(default=None, alias="id")
    name: _Text | None = None

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        refuse(_exactly_one(self.given(), "tags, id or name"))
        return self

    @property
    def asked(self) -> SelectorTerm:
        """The selector term that launches use."""
        return replace(super().asked, names=_given(self.name))


class ImageTerm(_Term):
    """Images: an alias of a family's recommended one, an id, an SSM parameter, or a search."""

    id_prefix: ClassVar = "ami"
    resource_id: Annotated[str, _id_of(id_prefix)] | None = Field(default=None, alias="id")
    alias: Annotated[str, _ALIAS_SHAPE] | None = None
    ssm_parameter: _Text | None = None
    name: _Text | None = None
    owner: Annotated[str, Schema(maxLength=32, pattern=_OWNER_PATTERN)] | None = None

    @field_validator("alias")
    @classmethod
    def _names_a_family(cls, alias: str) -> str:
        found = _ALIAS.match(alias) if len(alias) <= _LONGEST_ALIAS else None
        if found is not None and found[1].startswith("windows"):
            refuse([Fault((), alias, WINDOWS)])
        if found is None or found[1] not in ALIAS_FAMILIES:
            families = ", ".join(ALIAS_FAMILIES)
            remedy = f"write family@version, such as al2023@latest; families are {families}"
            refuse([Fault((), alias, remedy)])
        return alias

    @field_validator("owner")
    @classmethod
    def _is_an_account(cls, owner: str) -> str:
        if not _OWNER.match(owner):
            refuse([Fault((), owner, "write an account number of 12 digits, self or amazon")])
        return owner

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        given = self.given()
        if not given or given == ["owner"]:
            remedy = "write alias, id, name, ssmParameter or tags"
            refuse([Fault((), given or None, remedy)])
        for alone in ("alias", "id"):
            if alone in given and len(given) > 1:
                refuse([Fault((), given, f"{alone} leaves nothing to select: remove the others")])
        return self

    @property
    def asked(self) -> SelectorTerm:
        """The selector term that launches use; an alias is no part of it."""
        return replace(
            super().asked,
            names=_given(self.name),
            owners=_given(self.owner) or (TRUSTED_OWNERS if self.name else ()),
            parameters=_given(self.ssm_parameter),
        )

    @property
    def family(self) -> str:
        """The `amiFamily` of its alias, empty without one."""
        return ALIAS_FAMILIES[self.alias.partition("@")[0]] if self.alias else ""

    @property
    def version(self) -> str:
        """The version in its alias, empty without one."""
        return self.alias.partition("@")[2] if self.alias else ""


def _given(value: str | None) -> tuple[str, ...]:
    return (value,) if value is not None else ()


def _exactly_one(given: list[str], known: str) -> Iterator[Fault]:
    if len(given) != 1:
        yield Fault((), given or None, f"write exactly one of {known}")


def _alone(name: str, others: Iterable[str]) -> ValidationRule:
    return ValidationRule(
        f"{name} leaves nothing to select: remove the others",
        f"!has(self.{name}) || !({' || '.join(f'has(self.{other})' for other in others)})",
    )


def _one_of(*names: str) -> ValidationRule:
    alternatives = (
        " && ".join(f"{'' if other == name else '!'}has(self.{other})" for other in names)
        for name in names
    )
    return ValidationRule(
        f"write exactly one of {', '.join(names)}",
        " || ".join(f"({alternative})" for alternative in alternatives),
    )


_SELECTING: Final = ("alias", "id", "name", "ssmParameter", "tags")
SubnetTerms = Annotated[
    list[Annotated[SubnetTerm, Schema(_one_of("tags", "id"))]], Field(min_length=1, max_length=30)
]
SecurityGroupTerms = Annotated[
    list[Annotated[SecurityGroupTerm, Schema(_one_of("tags", "id", "name"))]],
    Field(min_length=1, max_length=30),
]
_IMAGE_TERM: Final = Schema(
    ValidationRule(
        "write alias, id, name, ssmParameter or tags",
        " || ".join(f"has(self.{name})" for name in _SELECTING),
    ),
    _alone("alias", (*_SELECTING[1:], "owner")),
    _alone("id", (*_SELECTING[2:], "alias", "owner")),
)
ImageTerms = Annotated[
    list[Annotated[ImageTerm, _IMAGE_TERM]],
    Field(min_length=1, max_length=30),
    Schema(
        ValidationRule(
            "an alias must be the only term: remove it or the others",
            "size(self) == 1 || !self.exists(term, has(term.alias))",
        )
    ),
]
