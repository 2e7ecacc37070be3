"""Constraints on labels, as an exact set algebra.

A requirement is the set of values its key may take: a finite set, or all values but a finite set,
within inclusive integer bounds, and, as one more possible "value", the label's absence.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct

from shared.model import labels

# What a 64-bit integer can hold, and the longest value a label may have.
_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1
_LONGEST: Final = 63


class Operator(StrEnum):
    """The operator of a requirement."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"
    GTE = "Gte"
    LTE = "Lte"


# The operators that pods and Provisioners may use; NodePools may use all.
KUBERNETES_OPERATORS: Final = (
    Operator.IN,
    Operator.NOT_IN,
    Operator.EXISTS,
    Operator.DOES_NOT_EXIST,
    Operator.GT,
    Operator.LT,
)


class Requirement(Struct, frozen=True, kw_only=True):
    """The values one label key may take.

    Attributes:
        key: Label key, aliases already normalised.
        complement: Whether `values` are the forbidden ones instead of the allowed ones.
        values: Allowed or forbidden values.
        minimum: Inclusive lower bound on the value read as an integer, or None.
        maximum: Inclusive upper bound, or None.
        absent: Whether a node without the label satisfies the requirement.
    """

    key: str
    complement: bool = True
    values: frozenset[str] = frozenset()
    minimum: int | None = None
    maximum: int | None = None
    absent: bool = False

    @classmethod
    def parse(
        cls,
        key: str,
        operator: str,
        values: Iterable[str] = (),
        known: Iterable[str] = KUBERNETES_OPERATORS,
    ) -> "Requirement":
        """Return the requirement written as key, operator and values in a manifest.

        Args:
            known: The operators that the manifest may use.

        Raises:
            ValueError: If the operator is unknown or its number of values is wrong.

        Example:
            >>> Requirement.parse("beta.kubernetes.io/arch", "In", ["arm64"]).key
            'kubernetes.io/arch'
        """
        key = labels.normalize(key)
        given = tuple(values)
        if operator not in known:
            raise ValueError(f"operator {operator!r} is unknown; use one of {', '.join(known)}")
        match operator:
            case Operator.IN:
                if not given:
                    raise ValueError("operator In needs at least one value")
                return cls(key=key, complement=False, values=frozenset(given))
            case Operator.NOT_IN:
                if not given:
                    raise ValueError("operator NotIn needs at least one value")
                return cls(key=key, values=frozenset(given), absent=True)
            case Operator.EXISTS | Operator.DOES_NOT_EXIST:
                if given:
                    raise ValueError(f"operator {operator} takes no values")
                if operator == Operator.EXISTS:
                    return cls(key=key)
                return cls(key=key, complement=False, absent=True)
        bound = _single_integer(operator, given)
        if operator in (Operator.GT, Operator.GTE):
            return cls(key=key, minimum=bound + (operator == Operator.GT))
        return cls(key=key, maximum=bound - (operator == Operator.LT))

    @classmethod
    def of(cls, key: str, *values: str) -> "Requirement":
        """Return the requirement that the key has one of the values."""
        return cls(key=labels.normalize(key), complement=False, values=frozenset(values))

    def allows(self, value: str | None) -> bool:
        """Return whether a label value (None: the label is absent) satisfies the requirement."""
        if value is None:
            return self.absent
        return self._in_bounds(value) and (value in self.values) is not self.complement

    def intersect(self, other: "Requirement") -> "Requirement":
        """Return the requirement that satisfies both. Both must have the same key."""
        minimum = _pick(max, self.minimum, other.minimum)
        maximum = _pick(min, self.maximum, other.maximum)
        absent = self.absent and other.absent
        if self.complement and other.complement:
            complement, values = True, self.values | other.values
        elif self.complement:
            complement, values = False, other.values - self.values
        elif other.complement:
            complement, values = False, self.values - other.values
        else:
            complement, values = False, self.values & other.values
        met = Requirement(
            key=self.key,
            complement=complement,
            values=values,
            minimum=minimum,
            maximum=maximum,
            absent=absent,
        )
        return met.normalized()

    def normalized(self) -> "Requirement":
        """Return the canonical form of the set: bounds applied to values, empty ranges made empty.

        A range that contains an integer is never empty, whatever is forbidden: `5` may be written
        `05`, which kube-scheduler reads as the same number.
        """
        bounded = frozenset(v for v in self.values if self._in_bounds(v))
        if not self.complement:
            return Requirement(key=self.key, complement=False, values=bounded, absent=self.absent)
        low = _LEAST if self.minimum is None else self.minimum
        high = _MOST if self.maximum is None else self.maximum
        if low > high:
            return Requirement(key=self.key, complement=False, absent=self.absent)
        return Requirement(
            key=self.key,
            complement=True,
            values=bounded,
            minimum=self.minimum,
            maximum=self.maximum,
            absent=self.absent,
        )

    def is_empty(self) -> bool:
        """Return whether no node can satisfy it, labelled or not."""
        form = self.normalized()
        return not form.complement and not form.values and not form.absent

    def has_value(self) -> bool:
        """Return whether some concrete label value satisfies it."""
        form = self.normalized()
        return form.complement or bool(form.values)

    def describe(self) -> str:
        """Return the requirement as people write it, values sorted."""
        if not self.complement:
            if self.values:
                return f"{self.key} in [{', '.join(sorted(self.values))}]"
            return f"{self.key} absent" if self.absent else f"{self.key} has no possible value"
        parts = []
        if self.values:
            parts.append(f"not in [{', '.join(sorted(self.values))}]")
        if self.minimum is not None:
            parts.append(f">= {self.minimum}")
        if self.maximum is not None:
            parts.append(f"<= {self.maximum}")
        return f"{self.key} {' and '.join(parts) or ('any or absent' if self.absent else 'exists')}"

    def _in_bounds(self, value: str) -> bool:
        if self.minimum is None and self.maximum is None:
            return True
        number = _integer(value)
        if number is None:
            return False
        return (self.minimum is None or number >= self.minimum) and (
            self.maximum is None or number <= self.maximum
        )


class Requirements(Struct, frozen=True):
    """Requirements that must all hold; one per key, sorted by key."""

    items: tuple[Requirement, ...] = ()

    @classmethod
    def of(cls, many: Iterable[Requirement]) -> "Requirements":
        """Return the requirements, those about the same key intersected."""
        by_key: dict[str, Requirement] = {}
        for requirement in many:
            known = by_key.get(requirement.key)
            by_key[requirement.key] = (
                requirement.normalized() if known is None else known.intersect(requirement)
            )
        return cls(tuple(by_key[key] for key in sorted(by_key)))

    @classmethod
    def from_labels(cls, values: Mapping[str, str]) -> "Requirements":
        """Return one `In` requirement per label."""
        return cls.of(Requirement.of(key, value) for key, value in values.items())

    def __iter__(self) -> Iterator[Requirement]:
        return iter(self.items)

    def __bool__(self) -> bool:
        return bool(self.items)

    def get(self, key: str) -> Requirement | None:
        """Return the requirement about a key, or None."""
        for item in self.items:
            if item.key == key:
                return item
        return None

    def merge(self, other: "Requirements") -> "Requirements":
        """Return all of both, the same keys intersected."""
        return Requirements.of((*self.items, *other.items))

    def empty_keys(self) -> tuple[str, ...]:
        """Return the keys, sorted, whose requirement no node can satisfy."""
        return tuple(item.key for item in self.items if item.is_empty())

    def allow_labels(self, values: Mapping[str, str]) -> bool:
        """Return whether a node with exactly these labels satisfies all requirements."""
        return all(item.allows(values.get(item.key)) for item in self.items)

    def first_refusing(self, values: Mapping[str, str]) -> Requirement | None:
        """Return the first requirement, by key, that a node with these labels fails, or None."""
        for item in self.items:
            if not item.allows(values.get(item.key)):
                return item
        return None


def _single_integer(operator: str, values: tuple[str, ...]) -> int:
    number = _integer(values[0]) if len(values) == 1 else None
    if number is None:
        given = repr(values[0])[:80] if len(values) == 1 else f"{len(values)} values"
        raise ValueError(f"operator {operator} needs exactly one integer, not {given}")
    return number


def _integer(text: str) -> int | None:
    """Return the number as kube-scheduler reads it: decimal, leading zeros allowed, 64 bits."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > _LONGEST:
        return None
    number = int(text)
    return number if _LEAST <= number <= _MOST else None


def _pick(choose: Callable[[int, int], int], element: int | None, other: int | None) -> int | None:
    if element is None or other is None:
        return other if element is None else element
    return choose(element, other)
