"""Reliable prices from a table that has zeros and outliers.

Within one family and generation EC2's prices are nearly linear in size: a rate for each vCPU, or
each GiB (the small sizes of burstable families all have two vCPUs), and with accelerators a rate
for each vCPU and each accelerator. The model that explains most of a family's rows is used for the
family; rows that it does not explain are outliers.
"""

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from itertools import combinations
from typing import Final

from msgspec import Struct

from shared.instance_types.facts import Fact, accelerator_count_of, instance_family_of

# A row further from its family's line than this is an outlier. Rows of a wrong column are 5 to 10 %
# above the line, rounding in the table moves a row by less than 1 %.
TOLERANCE: Final = Fraction(3, 100)

_MICROS: Final = 10**6


class Price(Struct, frozen=True, kw_only=True, order=True):
    """One price, and whether it is the family's rate instead of a row of the table."""

    micros_per_hour: int
    interpolated: bool = False


class _Size(Struct, frozen=True, kw_only=True, order=True):
    """The size of an instance type, which its price depends on."""

    name: str
    vcpus: int
    memory_mib: int
    accelerators: int


class _Line(Struct, frozen=True, kw_only=True):
    """Micro-dollars per hour for each vCPU, MiB and accelerator, one of them above zero."""

    per_vcpu: Fraction = Fraction(0)
    per_mib: Fraction = Fraction(0)
    per_accelerator: Fraction = Fraction(0)

    def price(self, size: _Size) -> Fraction:
        return (
            self.per_vcpu * size.vcpus
            + self.per_mib * size.memory_mib
            + self.per_accelerator * size.accelerators
        )

    def deviation(self, size: _Size, micros: int) -> Fraction:
        """Return how far the row is from the line, relative to the line."""
        expected = self.price(size)
        return abs(micros - expected) / expected


_Rows = Mapping[_Size, int]


def to_micros(usd_per_hour: str | float) -> int:
    """Return a price in millionths of a dollar, rounded, zero when it is no usable price.

    Example:
        >>> to_micros(0.096), to_micros("0.0960000000"), to_micros(0.0), to_micros("")
        (96000, 96000, 0, 0)
    """
    try:
        micros = round(Fraction(str(usd_per_hour)) * _MICROS)
    except (ValueError, ZeroDivisionError):
        return 0
    return max(0, micros)


def listed_prices(usd_per_hour: Mapping[str, str | float]) -> dict[str, Price]:
    """Return the prices of a reliable table: its rows above zero."""
    micros = {name: to_micros(usd) for name, usd in usd_per_hour.items()}
    return {name: Price(micros_per_hour=m) for name, m in sorted(micros.items()) if m > 0}


def repaired_prices(
    facts: Iterable[Fact], usd_per_hour: Mapping[str, str | float]
) -> dict[str, Price]:
    """Return a price for every type of a family that has at least one usable row.

    A row is used unchanged if it is above zero and within `TOLERANCE` of its family's line;
    otherwise the type gets the line's price, marked `interpolated`. Types of families without any
    usable row are left out: a price from another family would be arbitrary.

    Args:
        facts: Rows of DescribeInstanceTypes.
        usd_per_hour: On-demand price by type; missing types, zeros and outliers are allowed.
    """
    listed = listed_prices(usd_per_hour)
    families: dict[str, list[_Size]] = {}
    for size in sorted(_size_of(fact) for fact in facts):
        families.setdefault(instance_family_of(size.name), []).append(size)
    prices: dict[str, Price] = {}
    for sizes in families.values():
        rows = {s: listed[s.name].micros_per_hour for s in sizes if s.name in listed}
        if rows:
            line = _line_of(rows, all_accelerated=all(size.accelerators for size in sizes))
            prices |= {size.name: _price_of(size, rows.get(size), line) for size in sizes}
    return dict(sorted(prices.items()))


def _size_of(fact: Fact) -> _Size:
    return _Size(
        name=fact["InstanceType"],
        vcpus=fact["VCpuInfo"]["DefaultVCpus"],
        memory_mib=fact["MemoryInfo"]["SizeInMiB"],
        accelerators=accelerator_count_of(fact),
    )


def _price_of(size: _Size, listed: int | None, line: _Line) -> Price:
    if listed is not None and line.deviation(size, listed) <= TOLERANCE:
        return Price(micros_per_hour=listed)
    return Price(micros_per_hour=max(1, round(line.price(size))), interpolated=True)


def _line_of(rows: _Rows, *, all_accelerated: bool) -> _Line:
    """Return the line that explains most rows; ties go to the lower kind, then the closer line.

    A price by accelerators alone is possible only where every size of the family has some.
    """
    candidates = [
        *((0, line) for line in _accelerated_lines(rows)),
        (2, _Line(per_vcpu=_median_rate(rows, lambda size: size.vcpus))),
        (3, _Line(per_mib=_median_rate(rows, lambda size: size.memory_mib))),
    ]
    if all_accelerated:
        rate = _median_rate(rows, lambda size: size.accelerators)
        candidates.append((1, _Line(per_accelerator=rate)))

    def rank(candidate: tuple[int, _Line]) -> tuple[int, int, Fraction, Fraction, Fraction]:
        kind, line = candidate
        close = [line.deviation(size, micros) for size, micros in rows.items()]
        explained = [deviation for deviation in close if deviation <= TOLERANCE]
        distance = sum(explained, Fraction(0))
        return (-len(explained), kind, distance, line.per_vcpu, line.per_accelerator)

    return min(candidates, key=rank)[1]


def _accelerated_lines(rows: _Rows) -> Iterable[_Line]:
    """Yield the line through each two rows with different ratios of vCPUs to accelerators."""
    for (size, micros_one), (two, micros_two) in combinations(sorted(rows.items()), 2):
        determinant = size.vcpus * two.accelerators - two.vcpus * size.accelerators
        if determinant == 0:
            continue
        per_vcpu = Fraction(
            micros_one * two.accelerators - micros_two * size.accelerators, determinant
        )
        per_accelerator = Fraction(micros_two * size.vcpus - micros_one * two.vcpus, determinant)
        if per_vcpu > 0 and per_accelerator > 0:
            yield _Line(per_vcpu=per_vcpu, per_accelerator=per_accelerator)


def _median_rate(rows: _Rows, measure: Callable[[_Size], int]) -> Fraction:
    """Return the median of price per unit; of an even number the lower of the middle two.

    Rows of a wrong column are more expensive than their family, so the lower is more likely right.
    """
    rates = sorted(Fraction(micros, measure(size)) for size, micros in rows.items())
    return rates[(len(rates) - 1) // 2]
