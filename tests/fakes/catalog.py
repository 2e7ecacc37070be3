"""A catalogue of a few instance types."""

from collections.abc import Iterable

from shared.instance_types.catalog import embedded_catalog
from shared.model.ec2.instance_types import InstanceType
from shared.model.values import replace


class FakeCatalog:
    """Implements shared.ports.Catalog: the types given, or some of the embedded ones."""

    def __init__(self, instance_types: Iterable[InstanceType] = ()) -> None:
        self._types = tuple(sorted(instance_types, key=lambda instance_type: instance_type.name))
        self.calls = 0
        self.missing = ""

    @classmethod
    def embedded(cls, *names: str, zones: Iterable[str] = ()) -> "FakeCatalog":
        """Return the embedded types of these names (all without any), in these zones only."""
        catalog = embedded_catalog()
        wanted = frozenset(zones) or {
            way.zone for instance_type in catalog.instance_types for way in instance_type.offerings
        }
        return cls(
            replace(
                instance_type,
                offerings=tuple(way for way in instance_type.offerings if way.zone in wanted),
            )
            for instance_type in catalog.instance_types_in(wanted)
            if not names or instance_type.name in names
        )

    def instance_types(self) -> tuple[InstanceType, ...]:
        self.calls += 1
        return () if self.missing else self._types

    def problem(self) -> str:
        return self.missing

    def keep(self, *names: str) -> None:
        """Drop all types but these."""
        self._types = tuple(type_ for type_ in self._types if type_.name in names)
