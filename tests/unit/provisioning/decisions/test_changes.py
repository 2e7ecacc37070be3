"""Changes of sorted collections: what is found and written down gives the same again."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.model.codec import CodecError
from shared.provisioning.decisions.changes import applied, changes

_ANY = st.lists(st.integers(min_value=0, max_value=400), max_size=300)


def equal(was: int, now: int) -> bool:
    return was == now


def plain(base: list[int], now: list[int]) -> dict[str, Any]:
    found = changes(list(base), now, lambda value: value, equal)
    return {"removed": list(found.removed), "added": [list(entry) for entry in found.added]}


@given(base=_ANY, now=_ANY)
def test_changes_of_any_order_give_the_same_again(base: list[int], now: list[int]) -> None:
    assert applied(base, plain(base, now)) == now


@given(
    base=st.sets(st.integers(max_value=10_000)),
    removed=st.sets(st.integers(max_value=10_000)),
    added=st.sets(st.integers(max_value=10_000)),
)
def test_of_sorted_collections_only_what_differs_is_named(
    base: set[int], removed: set[int], added: set[int]
) -> None:
    now = sorted((base - removed) | added)
    found = changes(sorted(base), now, lambda value: value, equal)
    assert [now[place] for place, _ in found.added] == sorted(set(now) - base)
    assert [sorted(base)[place] for place in found.removed] == sorted(base - set(now))


def test_what_stayed_is_replaced_by_the_newer_object() -> None:
    base = [("a", 1), ("b", 1)]
    now = [("a", 2), ("b", 1)]
    found = changes(base, now, lambda value: value[0], lambda was, comes: was[0] == comes[0])
    assert len(found) == 0
    assert all(was is comes for was, comes in zip(base, now, strict=True))


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (None, "must be what was removed and added"),
        ({"removed": []}, "must be what was removed and added"),
        ({"removed": 1, "added": []}, "removed: must be a list of places"),
        ({"removed": [True], "added": []}, "removed: must be a list of places"),
        ({"removed": [2], "added": []}, "removed: names place 2, which is not there"),
        ({"removed": [1, 1], "added": []}, "removed: names place 1, which is not there"),
        ({"removed": [], "added": {}}, "added: must be a list"),
        ({"removed": [], "added": [[0]]}, "added.0: must be a place and a value"),
        ({"removed": [], "added": [[3, "c"]]}, "added.0: is at a place that is not there"),
        ({"removed": [], "added": [[1, "c"], [0, "d"]]}, "added.1: is at a place"),
    ],
)
def test_what_are_no_changes_is_refused(written: object, told: str) -> None:
    with pytest.raises(CodecError, match=told):
        applied(["a", "b"], written)
