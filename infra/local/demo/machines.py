"""What the simulated kubelets report, by instance type."""

from typing import Any, Final

from shared.catalog.reading import embedded_catalog, load_catalog
from shared.model.resources import Resources

_PLAIN: Final = frozenset({"cpu", "memory", "pods", "ephemeral-storage"})


def machines() -> dict[str, Any]:
    """Return capacity, allocatable, extended resources and EBS volumes of every type."""
    return {
        one.name: {
            "capacity": _plain(one.capacity),
            "allocatable": _plain(one.allocatable),
            "extended": {k: str(v) for k, v in one.capacity.items if k not in _PLAIN},
            "volumes": one.volume_limit,
        }
        for one in load_catalog(embedded_catalog()).instance_types
    }


def _plain(amounts: Resources) -> dict[str, str]:
    return {k: v for k, v in amounts.to_quantities().items() if k in _PLAIN}
