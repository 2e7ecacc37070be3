"""Cuts a failing case down to what it takes to fail."""

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from tests.scheduler_oracle.clusters.seeded_random import Json

Fails = Callable[[Json], bool]
Path = tuple[str | int, ...]

# Parts of a case of which whole entries may go, and the least that must stay.
_LISTS: Final = (
    ("pods", 1),
    ("nodes", 0),
    ("slots", 0),
    ("daemonsets", 0),
    ("provisioners", 1),
    ("types", 1),
    ("unavailable", 0),
    ("claims", 0),
    ("volumes", 0),
)
# What a reader needs in any document: never cut.
_KEPT: Final = frozenset(
    {
        "apiVersion",
        "containers",
        "kind",
        "name",
        "namespace",
        "provider",
        "providerID",
        "requirements",
        "uid",
    }
)
# Other parts, and the least they can be.
_PARTS: Final[Json] = {
    "settings": {"improve_iterations": 0},
    "csi_nodes": [],
    "volume_limits": {},
    "storage_classes": [],
}
_MOST_TRIES: Final = 3000


def shrink(case: Json, fails: Fails) -> Json:
    """Return a smaller case for which `fails` still holds; `fails` must hold for `case`."""
    tries = [_MOST_TRIES]

    def still(smaller: Json) -> bool:
        tries[0] -= 1
        return tries[0] > 0 and fails(smaller)

    before = None
    while before != case and tries[0] > 0:
        before = case
        for part, least in _LISTS:
            case = _drop_entries(case, part, least, still)
        case = _drop_fields(case, still)
    return case


def _drop_entries(case: Json, part: str, least: int, still: Fails) -> Json:
    """Drop halves, quarters and so on of a list, down to single entries."""
    size = max(len(case[part]) // 2, 1)
    while size:
        start = 0
        while start < len(case[part]):
            kept = [*case[part][:start], *case[part][start + size :]]
            smaller = {**case, part: kept}
            if len(kept) >= least and still(smaller):
                case = smaller
            else:
                start += size
        size //= 2
    return case


def _drop_fields(case: Json, still: Fails) -> Json:
    """Drop single fields and entries inside the documents, outer ones first."""
    for part in ("pods", "provisioners", "daemonsets", "nodes", "slots"):
        for number in range(len(case[part])):
            paths = sorted(_paths(case[part][number]), key=len)
            for path in paths:
                if not _may_go(case[part][number], path):
                    continue
                smaller = copy.deepcopy(case)
                _delete(smaller[part][number], path)
                if still(smaller):
                    case = smaller
    for name, least in _PARTS.items():
        plainer = {**case, name: least}
        if case.get(name, least) != least and still(plainer):
            case = plainer
    return case


def _paths(thing: Any, before: Path = ()) -> Iterator[Path]:
    """Yield where something may be cut; entries of lists from the last to the first."""
    if isinstance(thing, dict):
        items: Sequence[tuple[str | int, Any]] = list(thing.items())
    elif isinstance(thing, list):
        items = list(reversed(list(enumerate(thing))))
    else:
        return
    for key, value in items:
        if key not in _KEPT:
            yield (*before, key)
        yield from _paths(value, (*before, key))


def _may_go(thing: Any, path: Path) -> bool:
    """Return whether something is still there and may be cut: of `values` one always stays."""
    above: Any = None
    for key in path:
        if isinstance(key, int):
            if not isinstance(thing, list) or key >= len(thing):
                return False
        elif not isinstance(thing, dict) or key not in thing:
            return False
        above, thing = thing, thing[key]
    return path[-2:-1] != ("values",) or len(above) > 1


def _delete(thing: Any, path: Path) -> None:
    for key in path[:-1]:
        thing = thing[key]
    del thing[path[-1]]
