"""The summary of a catalog that is printed with its prices."""

from msgspec import Struct

from shared.instance_types.catalog import Catalog


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

    def __str__(self) -> str:
        return (
            f"{self.type_count} instance types in {self.region}, prices of {self.date}, "
            f"{self.interpolated_count} of them interpolated; {self.source}"
        )


def summarize(catalog: Catalog) -> CatalogSummary:
    """Return size, age and origin of the catalog; `str()` of it is one line for people."""
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
