"""Selectors of subnets, security groups and images."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

# As the value of a tag: any value.
ANY_VALUE: Final = "*"
# Whose images are taken by name: any account may share one with all accounts under any name.
TRUSTED_OWNERS: Final = ("amazon", "self")


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectorTerm:
    """What is asked for: of each field that is given one value is enough, and all fields must hold.

    Attributes:
        tags: Tag name to values, `*` for any value; all of these tags.
        ids: Of subnets, security groups or images.
        names: Of security groups or images; `*` means any letters.
        owners: Accounts of images; empty for any.
        parameters: Parameters of Systems Manager that hold ids of images.
    """

    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
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


# What any of the terms finds; nothing without terms.
Selector = tuple[SelectorTerm, ...]


def describe_selector(selector: Selector) -> str:
    """Return a selector as people write it."""
    return " or ".join(term.describe() for term in selector) or "(none given)"


def tagged(name: str, value: str = ANY_VALUE) -> Selector:
    """Return the selector of what has a tag."""
    return (SelectorTerm(tags={name: (value,)}),)
