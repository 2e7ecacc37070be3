"""The shape of the catalogue as JSON: the file in the package, in S3 and behind `--catalog`."""

from typing import Final, NotRequired, TypedDict

VERSION: Final = 1


class OfferingRow(TypedDict):
    """One way to buy a type; `interpolated` is written only where it is true."""

    zone: str
    capacity_type: str
    price_micros_per_hour: int
    interpolated: NotRequired[bool]


class GpuRow(TypedDict):
    """Accelerators of one kind, under the resource name pods ask for."""

    resource: str
    count: int
    name: str


class NetworkRow(TypedDict):
    """Network interfaces: of all cards, of the default one, and IPv4 addresses of each."""

    interfaces: int
    default_card: int
    addresses: int


class TypeRow(TypedDict):
    """One instance type.

    `memory_mib` is what EC2 sells. `overhead` is all that pods cannot have, so that allocatable =
    capacity - overhead for each resource; `max_pods` is final. The optional keys say what the
    overhead is made of, so that kubelet settings can be applied exactly:
    overhead = vm_overhead_mib + kube_reserved + eviction_threshold. `extended` has pieces of
    further resources by name; `ebs_volumes` is how many EBS volumes pods can have attached, where
    it is not the usual number; `image_max_pods` is the pod limit that machine images compute for
    themselves, where it is not `max_pods`; `network` is what both are computed from.
    """

    name: str
    arch: str
    vcpus: int
    memory_mib: int
    max_pods: int
    gpus: list[GpuRow]
    labels: dict[str, str]
    overhead: dict[str, str]
    offerings: list[OfferingRow]
    storage_gib: NotRequired[int]
    vm_overhead_mib: NotRequired[int]
    kube_reserved: NotRequired[dict[str, str]]
    eviction_threshold: NotRequired[dict[str, str]]
    extended: NotRequired[dict[str, int]]
    ebs_volumes: NotRequired[int]
    image_max_pods: NotRequired[int]
    network: NotRequired[NetworkRow]


class CatalogDocument(TypedDict):
    """The whole catalogue; `date` is the ISO date of the prices."""

    version: int
    region: str
    source: str
    date: str
    types: list[TypeRow]
