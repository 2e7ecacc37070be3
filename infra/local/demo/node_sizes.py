"""What the simulated kubelets report, by instance type."""

from typing import Any, Final

from shared.instance_types.catalog import embedded_text, load_catalog
from shared.instance_types.instance_setup import InstanceSetup
from shared.instance_types.overhead import VM_MEMORY_OVERHEAD_PERCENT
from shared.model.resources import Resources

_PLAIN: Final = frozenset({"cpu", "memory", "pods", "ephemeral-storage"})


def node_sizes() -> dict[str, Any]:
    """Return capacity, allocatable, extended resources and EBS volumes of every type."""
    measured = InstanceSetup(memory_percent=VM_MEMORY_OVERHEAD_PERCENT)
    return {
        instance_type.name: {
            "capacity": _plain(instance_type.capacity),
            "allocatable": _plain(instance_type.allocatable),
            "extended": {k: str(v) for k, v in instance_type.capacity.items if k not in _PLAIN},
            "volumes": instance_type.volume_limit,
        }
        for instance_type in load_catalog(embedded_text(), measured).instance_types
    }


def _plain(amounts: Resources) -> dict[str, str]:
    return {k: v for k, v in amounts.to_quantities().items() if k in _PLAIN}
