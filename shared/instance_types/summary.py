"""The summary of a catalog that is printed with its prices."""

import datetime as dt
from typing import Final

from msgspec import Struct

from shared.instance_types.catalog import Catalog

# Older prices are called old where a figure in dollars stands.
_FRESH_DAYS: Final = 30
_DAYS_OF_A_MONTH: Final = 365.25 / 12


class CatalogSummary(Struct, frozen=True, kw_only=True):
    """Size, age and origin of a catalog.

    Attributes:
        type_count: Number of instance types.
        offering_count: Number of offerings: type, zone and capacity type.
        interpolated_count: Number of types with at least one price that is their family's rate
            instead of a row of the source.
    """

    region: str
    date: str
    source: str
    type_count: int
    offering_count: int
    interpolated_count: int

    def line(self, today: dt.date) -> str:
        """Return where and of when the prices are, and how to have today's where they are old."""
        days = (today - dt.date.fromisoformat(self.date)).days
        if days <= _FRESH_DAYS:
            return f"prices of {self.date} in {self.region}"
        months = round(days / _DAYS_OF_A_MONTH)
        age = f"{months} months" if months > 1 else f"{days} days"
        return (
            f"prices of {self.date} in {self.region}, {age} old: `dovetail catalog` writes today's"
        )

    def __str__(self) -> str:
        """Return the pedigree."""
        return (
            f"{self.type_count} instance types in {self.region}, prices of {self.date}, "
            f"{self.interpolated_count} of them interpolated; {self.source}"
        )


def summarize(catalog: Catalog) -> CatalogSummary:
    """Return size, age and origin of the catalog."""
    types = catalog.instance_types
    return CatalogSummary(
        region=catalog.region,
        date=catalog.date,
        source=catalog.source,
        type_count=len(types),
        offering_count=sum(len(type_.offerings) for type_ in types),
        interpolated_count=sum(
            any(offering.interpolated for offering in type_.offerings) for type_ in types
        ),
    )
