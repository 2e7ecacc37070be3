"""The JSON format of the catalog: of the file in the package, in S3 and of `--catalog`."""

from typing import Final, NotRequired, TypedDict

VERSION: Final = 1


class OfferingRow(TypedDict):
    """One offering of a type; `interpolated` is written only where it is true."""

    zone: str
    capacity_type: str
    price_micros_per_hour: int
    interpolated: NotRequired[bool]


class GpuRow(TypedDict):
    """Accelerators of one kind, with the resource name that pods request."""

    resource: str
    count: int
    name: str


class NetworkRow(TypedDict):
    """Network interfaces of all cards and of the default card, and IPv4 addresses of each."""

    interfaces: int
    default_card: int
    addresses: int


class TypeRow(TypedDict):
    """One instance type.

    `memory_mib` is the memory that EC2 advertises. `overhead` is all that pods cannot use, so that
    allocatable = capacity - overhead for each resource; `max_pods` is final. The optional keys are
    the parts of the overhead, so that kubelet settings can be applied exactly:
    overhead = vm_overhead_mib + kube_reserved + eviction_threshold. `extended` has counts of
    further resources by name; `ebs_volumes` is how many EBS volumes pods can have attached, where
    it is not the default; `image_max_pods` is the pod limit that images compute for themselves,
    where it is not `max_pods`; both limits are computed from `network`.
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
    """The whole catalog; `date` is the ISO date of the prices."""

    version: int
    region: str
    source: str
    date: str
    types: list[TypeRow]
