"""Picks: which values the custom labels of new nodes may get; they do not restrict offerings."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from shared.model.provisioner import Provisioner
from shared.model.requirements import Requirement, Requirements
from shared.planning.rules.provisioner_offerings import free_requirements

# Per Provisioner and plan; each pick repeats the full list of what it could launch.
MOST_PICKS: Final = 32
_MOST_PREFERRED: Final = 8
_Pick = tuple[tuple[str, str], ...]


class Picks:
    """The picks of one Provisioner that some demands need.

    A Provisioner may allow several values of a custom label; a node has one. For each demand a
    value that it accepts is picked: one that is picked already, else the smallest that both allow.

    Args:
        deciding_keys: Keys whose values also decide on topology or DaemonSets: a demand whose terms
            name several of their values gets them all.

    Attributes:
        checks: Number of terms and picks that were checked.
    """

    def __init__(self, provisioner: Provisioner, deciding_keys: Iterable[str] = ()) -> None:
        self._free = {
            free_requirement.key: free_requirement
            for free_requirement in free_requirements(provisioner)
        }
        self._deciding_keys = frozenset(deciding_keys)
        self._found: dict[_Pick, None] = {}
        self._preferred = 0
        self.checks = 0

    def __len__(self) -> int:
        """Return the number of picks."""
        return len(self._found)

    def pick_for_preference(self, wanted: Requirements) -> None:
        """Pick values for a preference, if the limits allow: without a pick it is not kept."""
        if len(self._found) < MOST_PICKS and self._preferred < _MOST_PREFERRED:
            before = len(self._found)
            self.pick_for((wanted,))
            self._preferred += len(self._found) - before

    def pick_for(self, alternatives: Sequence[Requirements]) -> bool:
        """Pick values for some OR-ed terms; return whether the limit on picks allowed all of them.

        Terms that differ only in the values of custom labels share one pick. Terms that no pick
        satisfies are left out.
        """
        if not self._free:
            return True
        groups: dict[tuple[object, ...], list[tuple[_Pick, list[Requirement]]]] = {}
        self.checks += len(alternatives)
        for term in alternatives:
            asked = [requirement for requirement in term if requirement.key in self._free]
            pick = self._smallest(asked)
            if pick:
                rest = tuple(
                    requirement for requirement in term if requirement.key not in self._free
                )
                deciding = tuple(entry for entry in pick if entry[0] in self._deciding_keys)
                groups.setdefault((rest, deciding), []).append((pick, asked))
        complete = True
        for same in groups.values():
            if not any(pick in self._found or self._is_served(asked) for pick, asked in same):
                complete = self._add(min(pick for pick, _ in same)) and complete
        return complete

    def _smallest(self, asked: Iterable[Requirement]) -> _Pick:
        """Return the smallest values that both allow; empty if a label has no such value."""
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
        """Return whether a pick of exactly these labels is accepted."""
        if all(
            len(requirement.values) == 1 and not requirement.complement for requirement in asked
        ):
            return False
        self.checks += len(self._found)
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

        Each value of a topology key is combined with each pick that lacks the key, up to
        `MOST_PICKS` in all.
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
    picks.pick_for(alternatives)
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
