"""What every AMI family answers."""

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from shared.ami_families.node_settings import NodeSettings, whole_maps
from shared.model import labels as keys
from shared.model.encodable import REMEDY
from shared.model.errors import InvalidManifestError
from shared.model.kubernetes.taints import Taint
from shared.model.provisioner import BlockDevice, KubeletConfiguration
from shared.model.resources import Resources

# Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/user-data.html (2026-08): 16 KB
# before it is written as base64.
USER_DATA_LIMIT_BYTES: Final = 16 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """What a machine needs to know to join its cluster.

    Attributes:
        certificate_authority: Base64 of the cluster's certificate, as EKS gives it.
        service_cidr: Addresses of the cluster's services, as `172.20.0.0/16`.
        labels: Of the node to be; what a kubelet may not give itself is left out when written.
        taints: Of the node to be, startup taints among them, in the order they are written.
        instance_store: Whether the instance's own NVMe disks become what pods write to.
    """

    cluster: str
    endpoint: str
    certificate_authority: str
    service_cidr: str
    labels: Mapping[str, str] = field(hash=False)
    taints: tuple[Taint, ...]
    kubelet: KubeletConfiguration = KubeletConfiguration()
    instance_store: bool = False

    def __post_init__(self) -> None:
        """Refuse labels and taints that Kubernetes does not accept.

        They end in command lines and unit files, where other characters mean something else.

        Raises:
            InvalidManifestError: For the first of them.
        """
        pairs = [*self.labels.items(), *((taint.key, taint.value) for taint in self.taints)]
        for key, value in pairs:
            if not (keys.is_key(key) and keys.is_value(value)):
                raise InvalidManifestError(
                    field=f"label or taint {key!r} of a node",
                    value=value,
                    remedy="write keys and values as Kubernetes accepts them for labels",
                )

    @property
    def dns_addresses(self) -> tuple[str, ...]:
        """Where the cluster's DNS answers: what the user says, else what EKS gives it.

        Source: https://docs.aws.amazon.com/eks/latest/userguide/cni-custom-network.html (2026-08):
        the tenth address of the cluster's services.
        """
        if self.kubelet.cluster_dns or not self.service_cidr:
            return self.kubelet.cluster_dns
        return (str(ipaddress.ip_network(self.service_cidr)[10]),)

    @property
    def is_ipv6(self) -> bool:
        """Whether the cluster's services have addresses of the sixth version."""
        return ":" in self.service_cidr


# No machine is told less. Certificates of EKS have 1100 bytes or more before they become base64.
_LEAST: Final = Joining(
    cluster="c",
    endpoint="https://e",
    certificate_authority="A" * 1400,
    service_cidr="",
    labels={},
    taints=(),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRequest:
    """For which machines an image is looked for.

    Attributes:
        version: Of the cluster, as `1.33`.
        architecture: `amd64` or `arm64`.
        capacity: Of the instance type: accelerators need an image with their driver.
        release: Version of the image, such as `v20260120`; empty for the recommended one.
    """

    version: str
    architecture: str
    capacity: Resources = Resources()
    release: str = ""

    @property
    def minor(self) -> int:
        """The second number of the version, 0 when there is none."""
        number = self.version.partition(".")[2]
        return int(number) if number.isdecimal() else 0

    @property
    def machine(self) -> str:
        """The architecture as the kernel calls it."""
        return "x86_64" if self.architecture == "amd64" else self.architecture


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One AMI family.

    Attributes:
        name: As `amiFamily` names it.
        parameter: Returns the SSM parameter that names the recommended image; None where there is
            none to recommend.
        write: Returns user data from what a machine must know and what the user adds.
        check: Raises InvalidManifestError when the user's part cannot be understood.
        settings: Returns what the user's part sets on a node, as far as it can be read.
        disks: Given to machines whose user names none; empty leaves them to the image.
        pods_per_core: Whether its kubelet is told `podsPerCore`.
        lacks: Families of instance types that its images do not boot.
        by_accelerators: Whether it has images of their own for machines with some accelerators.
        last_minor: The last minor version of Kubernetes that has images of it; None for any.
        by_flags: Whether its kubelet is told by flags, which replace whole maps.
        reserves_for_max_pods: Whether memory for the kubelet follows `maxPods`, not the limit by
            network interfaces.
    """

    name: str
    parameter: Callable[[ImageRequest], str] | None
    write: Callable[[Joining, str], str]
    check: Callable[[str], object]
    settings: Callable[[str], NodeSettings]
    disks: tuple[BlockDevice, ...]
    pods_per_core: bool = True
    lacks: frozenset[str] = frozenset()
    by_accelerators: bool = True
    last_minor: int | None = None
    by_flags: bool = False
    reserves_for_max_pods: bool = False

    def has_ended(self, version: str) -> bool:
        """Return whether there are no images of it any more for a version of Kubernetes."""
        minor = ImageRequest(version=version, architecture="").minor
        return self.last_minor is not None and minor > self.last_minor

    def further_disks(self, disks: Sequence[BlockDevice]) -> int:
        """Return how many attachments of a machine its disks take, besides that of the first.

        Args:
            disks: That the user gives it; what the family has by itself is there besides these.
        """
        named = {disk.device_name for disk in disks}
        own = [disk for disk in self.disks if disk.device_name not in named]
        return max(len(disks) + len(own) - 1, 0)

    def understood(self, kubelet: KubeletConfiguration) -> KubeletConfiguration:
        """Return the settings as its kubelet takes them, without those it is never told."""
        found = replace(kubelet, **whole_maps(kubelet)) if self.by_flags else kubelet
        return found if self.pods_per_core else replace(found, pods_per_core=None)

    def user_data(self, joining: Joining, custom: str = "") -> str:
        """Return the user data of a machine, plain text, not yet base64.

        Args:
            custom: The user's own, in a form this family understands.

        Raises:
            InvalidManifestError: If `custom` cannot be understood, both together are too long, or
                something to write is no character.
        """
        try:
            text = self.write(joining, custom)
        except RecursionError as error:
            raise wrong("", custom, "is nested too deeply") from error
        refuse_too_long(text, custom)
        return text

    def refuse_wrong(self, custom: str) -> None:
        """Check the user's own user data, by itself and with the least that makes machines join.

        Raises:
            InvalidManifestError: Names line or part, and what to write instead.
        """
        refuse_too_long(custom, custom)
        if custom.strip():
            self.check(custom)
            self.user_data(_LEAST, custom)


def wrong(where: str, value: str, remedy: str) -> InvalidManifestError:
    """Return the error for a place in user data, its value shortened to one line."""
    place = f"userData, {where}" if where else "userData"
    line = value.strip().partition("\n")[0]
    return InvalidManifestError(field=place, value=line[:60], remedy=remedy)


def refuse_too_long(text: str, custom: str) -> None:
    """Raise InvalidManifestError when EC2 would not take the text, or not so much of it.

    Args:
        custom: The user's own part of it.
    """
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise wrong("", ascii(text[error.start]), REMEDY) from error
    if size > USER_DATA_LIMIT_BYTES:
        both = "" if text == custom else " together with what makes a machine join"
        limit = f"EC2 takes {USER_DATA_LIMIT_BYTES}; fetch the rest at boot"
        raise wrong("", custom, f"is {size} bytes long{both}, {limit}")
