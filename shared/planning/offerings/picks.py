"""Picks: which values the custom labels of new nodes may get; they choose no offering."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from shared.model.provisioner import Provisioner
from shared.model.requirements import Requirement, Requirements
from shared.scheduling.provisioner_offerings import free_requirements

# By one provisioner in one plan; each is a full list of what it could buy.
MOST_PICKS: Final = 32
_MOST_PREFERRED: Final = 8
_Pick = tuple[tuple[str, str], ...]


class Picks:
    """The picks of one provisioner that some demands ask for.

    A provisioner may allow several values of a label of the user's own; a node has one. For each
    demand a value it accepts is picked: the smallest one both allow, or one that is picked already.

    Args:
        telling: Keys whose values matter beside the demand itself: a demand that accepts
            several of them gets them all.

    Attributes:
        looks: How many terms and picks were looked at.
    """

    def __init__(self, provisioner: Provisioner, telling: Iterable[str] = ()) -> None:
        self._free = {
            free_requirement.key: free_requirement
            for free_requirement in free_requirements(provisioner)
        }
        self._telling = frozenset(telling)
        self._found: dict[_Pick, None] = {}
        self._preferred = 0
        self.looks = 0

    def __len__(self) -> int:
        """Return how many values, or groups of them, are picked."""
        return len(self._found)

    def prefer(self, wanted: Requirements) -> None:
        """Pick what a preference needs, where there is room: one without a pick is not kept."""
        if len(self._found) < MOST_PICKS and self._preferred < _MOST_PREFERRED:
            before = len(self._found)
            self.want((wanted,))
            self._preferred += len(self._found) - before

    def want(self, alternatives: Sequence[Requirements]) -> bool:
        """Pick what some OR-ed terms need; return whether there was room for all of it.

        Terms that differ in nothing but the values of custom labels are served by one pick. Those
        that no pick serves are left out.
        """
        if not self._free:
            return True
        groups: dict[tuple[object, ...], list[tuple[_Pick, list[Requirement]]]] = {}
        self.looks += len(alternatives)
        for term in alternatives:
            asked = [requirement for requirement in term if requirement.key in self._free]
            pick = self._smallest(asked)
            if pick:
                rest = tuple(
                    requirement for requirement in term if requirement.key not in self._free
                )
                told = tuple(entry for entry in pick if entry[0] in self._telling)
                groups.setdefault((rest, told), []).append((pick, asked))
        room = True
        for same in groups.values():
            if not any(pick in self._found or self._is_served(asked) for pick, asked in same):
                room = self._add(min(pick for pick, _ in same)) and room
        return room

    def _smallest(self, asked: Iterable[Requirement]) -> _Pick:
        """Return the smallest values that both allow; none if one label has no such value."""
        found: list[tuple[str, str]] = []
        for requirement in asked:
            both = requirement.intersect(self._free[requirement.key])
            value = some_value(both)
            if value is not None:
                found.append((both.key, value))
            elif not both.absent:
                return ()
        return tuple(found)

    def _is_served(self, asked: Sequence[Requirement]) -> bool:
        """Return whether a pick of the same labels, and no others, is accepted."""
        if all(
            len(requirement.values) == 1 and not requirement.complement for requirement in asked
        ):
            return False
        self.looks += len(self._found)
        return any(
            len(pick) == len(asked)
            and all(
                requirement.key == key and requirement.allows(value)
                for requirement, (key, value) in zip(asked, pick, strict=True)
            )
            for pick in self._found
        )

    def _add(self, pick: _Pick) -> bool:
        if len(self._found) >= MOST_PICKS:
            return False
        self._found[pick] = None
        return True

    def listed(self, topology_keys: Iterable[str] = ()) -> tuple[dict[str, str], ...]:
        """Return the picks, the empty one first.

        Of a topology key each value is picked once with each of the others, as long as there are
        not too many.
        """
        chosen: list[dict[str, str]] = [{}, *(dict(pick) for pick in sorted(self._found))]
        for key in topology_keys:
            if key in self._free and not self._free[key].complement:
                chosen += [
                    {**pick, key: value}
                    for pick in chosen
                    if key not in pick
                    for value in sorted(self._free[key].values)
                ][: max(MOST_PICKS - len(chosen), 0)]
        return tuple({tuple(sorted(entry.items())): entry for entry in chosen}.values())


def label_choices(
    provisioner: Provisioner, alternatives: Sequence[Requirements]
) -> tuple[Mapping[str, str], ...]:
    """Return the picks of custom labels that one pod's terms ask for, the empty pick first."""
    picks = Picks(provisioner)
    picks.want(alternatives)
    return picks.listed()


def some_value(wanted: Requirement) -> str | None:
    """Return the smallest value a requirement lists, else a simple one that it allows, or None."""
    form = wanted.normalized()
    if not form.complement:
        return min(form.values, default=None)
    start = form.minimum if form.minimum is not None else 0
    if form.maximum is not None:
        start = min(start, form.maximum)
    numbers = [str(start + step) for step in range(len(form.values) + 1)]
    words = ["x" * length for length in range(1, len(form.values) + 2)]
    return next((word for word in (*words, *numbers) if form.allows(word)), None)
