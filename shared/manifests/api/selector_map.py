"""Selectors of an AWSNodeTemplate: maps of tags, all of which must hold.

Source: https://karpenter.sh/v0.31/concepts/node-templates/ (2023-09).
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, Final

from pydantic import AfterValidator

from shared.manifests.api.parts import Fault, Schema, ValidationRule, refuse
from shared.model.ec2.selectors import TRUSTED_OWNERS, SelectorTerm
from shared.model.ec2.selectors import Selector as Terms

_IDS: Final = "aws-ids"
_OWNERS: Final = "aws::owners"
_NAME: Final = "aws::name"
# Keys of selectors that are no tags, and their normalized names.
_SPELLINGS: Final[Mapping[str, str]] = {_IDS: _IDS, "aws::ids": _IDS}
_IMAGE_SPELLINGS: Final[Mapping[str, str]] = {**_SPELLINGS, _OWNERS: _OWNERS, _NAME: _NAME}
_OWNER: Final = re.compile(r"(\d{12}|self|amazon|aws-marketplace)\Z")


def _selector(
    id_prefix: str, spellings: Mapping[str, str], given: dict[str, str]
) -> dict[str, str]:
    """Return tag names and values; a value may list several, separated by commas."""
    refuse(_selector_faults(id_prefix, spellings, given))
    return {
        spellings.get(name, name): ",".join(item.strip() for item in value.split(","))
        for name, value in given.items()
    }


def _selector_faults(
    id_prefix: str, spellings: Mapping[str, str], given: dict[str, str]
) -> Iterator[Fault]:
    for name, value in given.items():
        values = [item.strip() for item in value.split(",")]
        meant = spellings.get(name)
        if not name or not all(values):
            yield Fault((name,), value, "write a tag name and a value, or * for any value")
            continue
        if meant == _IDS and len(given) > 1:
            yield Fault((name,), value, "ids leave nothing to select: remove the other keys")
        if meant == _IDS and not all(item.startswith(id_prefix) for item in values):
            remedy = f"write ids that begin with {id_prefix}, separated by commas"
            yield Fault((name,), value, remedy)
        if meant == _OWNERS and not all(map(_OWNER.match, values)):
            remedy = "write account numbers, self or amazon, separated by commas"
            yield Fault((name,), value, remedy)


def selector_of(given: Mapping[str, str]) -> Terms:
    """Return the selector of a map of tags; empty for an empty map.

    Args:
        given: Tag name to value, or several separated by commas; `aws-ids` likewise.
    """
    tags = {name: tuple(value.split(",")) for name, value in given.items()}
    ids = tags.pop(_IDS, ())
    return (SelectorTerm(tags=tags, ids=ids),) if given else ()


def image_selector_of(given: Mapping[str, str]) -> Terms:
    """Return the selector of an `amiSelector`, where `aws::name` and `aws::owners` are no tags.

    Where it names neither owners nor ids, images must be this account's or Amazon's.
    """
    found = []
    for term in selector_of(given):
        tags = dict(term.tags)
        names, owners = tags.pop(_NAME, ()), tags.pop(_OWNERS, ())
        trusted = owners or (() if term.ids else TRUSTED_OWNERS)
        found.append(SelectorTerm(tags=tags, ids=term.ids, names=names, owners=trusted))
    return tuple(found)


_SELECTOR: Final = Schema(
    ValidationRule("a tag name must not be empty", "self.all(key, size(key) > 0)"),
    ValidationRule(
        "ids leave nothing to select; remove the other keys",
        "size(self) == 1 || !self.exists(key, key in ['aws-ids', 'aws::ids'])",
    ),
    maxProperties=20,
    additionalProperties={"type": "string", "minLength": 1, "maxLength": 1000},
)
SubnetSelectorMap = Annotated[
    dict[str, str], AfterValidator(partial(_selector, "subnet-", _SPELLINGS)), _SELECTOR
]
SecurityGroupSelectorMap = Annotated[
    dict[str, str], AfterValidator(partial(_selector, "sg-", _SPELLINGS)), _SELECTOR
]
ImageSelectorMap = Annotated[
    dict[str, str], AfterValidator(partial(_selector, "ami-", _IMAGE_SPELLINGS)), _SELECTOR
]
