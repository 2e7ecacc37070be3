"""The setup of a Region's instances, applied to the rows of its catalog."""

from typing import Final

from msgspec import Struct

from shared.instance_types import overhead
from shared.instance_types.branch_interfaces import POD_INTERFACE, branch_interfaces_of
from shared.instance_types.document import TypeRow
from shared.instance_types.facts import max_pods_of
from shared.instance_types.pod_addresses import DEFAULT_NETWORK, PodNetwork
from shared.model import labels as keys
from shared.model.resources import MEMORY

# Rows that lack one of these have a fixed overhead or pod limit.
_NEEDED: Final = frozenset({"kube_reserved", "eviction_threshold", "network", "vm_overhead_mib"})


class InstanceSetup(Struct, frozen=True, kw_only=True):
    """The setup of the instances of a Region.

    Attributes:
        network: How the cluster's pods get their addresses.
        memory_percent: The percentage of an instance's memory that hypervisor and kernel keep.
            None for the estimate of all types; with the estimate's percentage, a type with a
            measured overhead has that.
    """

    network: PodNetwork = DEFAULT_NETWORK
    memory_percent: float | None = None

    def applied(self, row: TypeRow) -> TypeRow:
        """Return a row recomputed for this setup; a row without the parts is unchanged."""
        if not row.keys() >= _NEEDED:
            return row
        max_pods, image_max_pods = max_pods_of(row, self.network), max_pods_of(row)
        vm_mib = self._overhead_mib(row)
        # Images count interfaces, however the cluster's CNI gives pods their addresses.
        kube_mib = overhead.kube_reserved_memory_mib(image_max_pods)
        memory = mib(vm_mib + kube_mib + overhead.EVICTION_MEMORY_MIB)
        extended = dict(row.get("extended", {}))
        extended[POD_INTERFACE] = branch_interfaces_of(row) if self.network.pod_interfaces else 0
        found: TypeRow = {
            **row,
            "max_pods": max_pods,
            "labels": dict(sorted({**row["labels"], keys.INSTANCE_PODS: str(max_pods)}.items())),
            "overhead": {**row["overhead"], MEMORY: memory},
            "vm_overhead_mib": vm_mib,
            "kube_reserved": {**row["kube_reserved"], MEMORY: mib(kube_mib)},
            "image_max_pods": image_max_pods,
            "extended": {name: count for name, count in extended.items() if count},
        }
        if image_max_pods == max_pods:
            del found["image_max_pods"]
        if not found["extended"]:
            del found["extended"]
        return found

    def _overhead_mib(self, row: TypeRow) -> int:
        percent = self.memory_percent
        if percent == overhead.VM_MEMORY_OVERHEAD_PERCENT:
            measured = overhead.MEASURED_OVERHEAD_MIB.get(row["name"])
            if measured is not None:
                return measured
        if percent is None:
            percent = overhead.VM_MEMORY_OVERHEAD_PERCENT
        return overhead.vm_overhead_mib(row["memory_mib"], row["arch"], percent)


DEFAULT_SETUP: Final = InstanceSetup()


def mib(amount: int) -> str:
    """Return an amount in MiB; unlike `format_bytes` never in GiB, so that rows compare easily."""
    return f"{amount}Mi"
