"""Selector terms as the selectors of launches: a map of tags, all of which must hold.

A map says less than a list of terms. Terms that differ in one thing become one map whose values
are separated by commas; others cannot be said, and are reported.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from shared.manifests.api.selector_terms import ImageTerm, SecurityGroupTerm, SubnetTerm

_IDS: Final = "aws-ids"
_NAME: Final = "aws::name"
_OWNERS: Final = "aws::owners"
_SEPARATOR: Final = ","
_NOTHING: Final[Mapping[str, str]] = {_IDS: "none"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """What terms select.

    Attributes:
        selector: As launches use it; one that finds nothing when it cannot be said, since an empty
            one would find what carries the cluster's own tag.
        unsaid: What cannot be said in one selector, for people; empty when all can.
    """

    selector: Mapping[str, str] = field(default_factory=dict, hash=False)
    unsaid: str = ""


def select(terms: Sequence[SubnetTerm | SecurityGroupTerm | ImageTerm]) -> Selected:
    """Return the selector that finds what any of the terms finds."""
    maps = [_said(term) for term in terms]
    if not all(maps):
        return Selected(selector=_NOTHING, unsaid="a term by name or by SSM parameter")
    if any(_SEPARATOR in value for said in maps for value in said.values()):
        return Selected(selector=_NOTHING, unsaid="a value with a comma")
    known = {tuple(sorted(said)) for said in maps}
    differing = [key for key in maps[0] if len({said.get(key) for said in maps}) > 1]
    if len(known) > 1 or len(differing) > 1:
        return Selected(selector=_NOTHING, unsaid="terms that differ in more than one thing")
    joined = {key: _SEPARATOR.join(_distinct(said[key] for said in maps)) for key in maps[0]}
    return Selected(selector=joined)


def _said(term: SubnetTerm | SecurityGroupTerm | ImageTerm) -> dict[str, str]:
    """Return a term as a map, empty when it has something that a map cannot say."""
    return dict(_entries(term)) if _has_a_map(term) else {}


def _has_a_map(term: SubnetTerm | SecurityGroupTerm | ImageTerm) -> bool:
    if isinstance(term, SecurityGroupTerm):
        return term.name is None
    return not isinstance(term, ImageTerm) or term.ssm_parameter is None


def _entries(term: SubnetTerm | SecurityGroupTerm | ImageTerm) -> Iterator[tuple[str, str]]:
    yield from term.tags.items()
    if term.resource_id is not None:
        yield _IDS, term.resource_id
    if isinstance(term, ImageTerm):
        if term.name is not None:
            yield _NAME, term.name
        if term.owner is not None:
            yield _OWNERS, term.owner


def _distinct(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))
