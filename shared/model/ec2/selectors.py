"""Selectors of subnets, security groups and images."""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import field

from shared.model.values import HashableValue

# The value of a tag that matches any value.
ANY_VALUE: Final = "*"
# Owners whose images may be selected by name: any account may share an image under any name.
TRUSTED_OWNERS: Final = ("amazon", "self")


class SelectorTerm(HashableValue, frozen=True, kw_only=True):
    """One term of a selector: a resource must match all given fields, each by one of its values.

    Attributes:
        tags: Tag name to values, `*` for any value; all of these tags must match.
        ids: Ids of subnets, security groups or images.
        names: Names of security groups or images; `*` matches any characters.
        owners: Accounts of images; empty for any.
        parameters: Systems Manager parameters that hold ids of images.
    """

    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ids: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()

    def describe(self) -> str:
        """Return the term as people write it, tags sorted."""
        return ", ".join(self._parts())

    def _parts(self) -> Iterator[str]:
        for name, values in sorted(self.tags.items()):
            yield f"{name}={','.join(values)}"
        for what, some in (
            ("id", self.ids),
            ("name", self.names),
            ("owner", self.owners),
            ("ssmParameter", self.parameters),
        ):
            if some:
                yield f"{what} {','.join(some)}"


# A selector matches what any of its terms matches; nothing without terms.
Selector = tuple[SelectorTerm, ...]


def describe_selector(selector: Selector) -> str:
    """Return a selector as people write it."""
    return " or ".join(term.describe() for term in selector) or "(none given)"


def tagged(name: str, value: str = ANY_VALUE) -> Selector:
    """Return the selector that matches a tag."""
    return (SelectorTerm(tags={name: (value,)}),)
