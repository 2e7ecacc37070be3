"""The interface of AMI families."""

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from shared.instance_types.ami_families.node_settings import NodeSettings, maps_as_flags_set_them
from shared.model import labels as keys
from shared.model.errors import InvalidManifestError
from shared.model.kubernetes.taints import Taint
from shared.model.provisioner import BlockDevice, KubeletConfiguration
from shared.model.resources import Resources
from shared.model.surrogates import SURROGATE_REMEDY
from shared.model.values import replace

# Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/user-data.html (2026-08): 16 KB
# before it is written as base64.
USER_DATA_LIMIT_BYTES: Final = 16 * 1024


class BootstrapOptions(Struct, frozen=True, kw_only=True):
    """What an instance needs to join its cluster.

    Attributes:
        certificate_authority: Base64 of the cluster's certificate, as EKS returns it.
        service_cidr: Addresses of the cluster's services, as `172.20.0.0/16`.
        labels: Labels of the node; those that a kubelet may not set itself are not written.
        taints: Taints of the node, startup taints among them, in the order they are written.
        instance_store: Whether pods write to the instance's own NVMe disks.
    """

    cluster: str
    endpoint: str
    certificate_authority: str
    service_cidr: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    kubelet: KubeletConfiguration = KubeletConfiguration()
    instance_store: bool = False

    def __post_init__(self) -> None:
        """Refuse labels and taints that Kubernetes does not accept.

        They are written into command lines and unit files, where other characters have a special
        meaning.

        Raises:
            InvalidManifestError: For the first such label or taint.
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
        """Addresses of the cluster's DNS: the user's, else the default of EKS.

        Source: https://docs.aws.amazon.com/eks/latest/userguide/cni-custom-network.html (2026-08):
        the tenth address of the cluster's services.
        """
        if self.kubelet.cluster_dns or not self.service_cidr:
            return self.kubelet.cluster_dns
        return (str(ipaddress.ip_network(self.service_cidr)[10]),)

    @property
    def is_ipv6(self) -> bool:
        """Whether the cluster's services have IPv6 addresses."""
        return ":" in self.service_cidr


# The smallest bootstrap options of any instance. Certificates of EKS have 1100 bytes or more before
# they become base64.
_LEAST: Final = BootstrapOptions(
    cluster="c",
    endpoint="https://e",
    certificate_authority="A" * 1400,
    service_cidr="",
    labels={},
    taints=(),
)


class ImageRequest(Struct, frozen=True, kw_only=True):
    """The instances that an image is requested for.

    Attributes:
        version: Kubernetes version of the cluster, as `1.33`.
        architecture: `amd64` or `arm64`.
        capacity: Capacity of the instance type: accelerators need an image with their driver.
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
    def kernel_architecture(self) -> str:
        """The kernel's name of the architecture."""
        return "x86_64" if self.architecture == "amd64" else self.architecture


class Family(Struct, frozen=True, kw_only=True):
    """One AMI family.

    Attributes:
        name: Its value of `amiFamily`.
        parameter: Returns the name of the SSM parameter of the recommended image; None where there
            is no such image.
        write: Returns user data from the bootstrap options and the user's part.
        check: Raises InvalidManifestError when the user's part cannot be read.
        settings: Returns what the user's part sets on a node, as far as it can be read.
        disks: Default disks of instances; empty leaves them to the image.
        supports_pods_per_core: Whether its kubelet gets `podsPerCore`.
        unsupported_families: Families of instance types that its images do not boot.
        has_accelerator_images: Whether it has separate images for instances with some accelerators.
        last_kubernetes_minor: The last minor version of Kubernetes that it has images for; None for
            no such limit.
        uses_kubelet_flags: Whether its kubelet gets command line flags, which replace whole maps of
            the configuration.
        reserves_for_max_pods: Whether memory for the kubelet is computed from `maxPods`, not from
            the limit by network interfaces.
    """

    name: str
    parameter: Callable[[ImageRequest], str] | None
    write: Callable[[BootstrapOptions, str], str]
    check: Callable[[str], object]
    settings: Callable[[str], NodeSettings]
    disks: tuple[BlockDevice, ...]
    supports_pods_per_core: bool = True
    unsupported_families: frozenset[str] = frozenset()
    has_accelerator_images: bool = True
    last_kubernetes_minor: int | None = None
    uses_kubelet_flags: bool = False
    reserves_for_max_pods: bool = False

    def is_discontinued(self, version: str) -> bool:
        """Return whether it has no images any more for a version of Kubernetes."""
        minor = ImageRequest(version=version, architecture="").minor
        return self.last_kubernetes_minor is not None and minor > self.last_kubernetes_minor

    def further_disks(self, disks: Sequence[BlockDevice]) -> int:
        """Return how many attachments of an instance its disks use; the first disk does not count.

        Args:
            disks: The user's disks; the family's default disks are added to these.
        """
        named = {disk.device_name for disk in disks}
        own = [disk for disk in self.disks if disk.device_name not in named]
        return max(len(disks) + len(own) - 1, 0)

    def effective_kubelet(self, kubelet: KubeletConfiguration) -> KubeletConfiguration:
        """Return the settings as they take effect on its kubelet."""
        found = (
            replace(kubelet, **maps_as_flags_set_them(kubelet))
            if self.uses_kubelet_flags
            else kubelet
        )
        return found if self.supports_pods_per_core else replace(found, pods_per_core=None)

    def user_data(self, options: BootstrapOptions, custom: str = "") -> str:
        """Return the user data of an instance, plain text, not yet base64.

        Args:
            custom: The user's part, in a format that this family reads.

        Raises:
            InvalidManifestError: If `custom` cannot be read, both together are too long, or the
                text cannot be encoded.
        """
        try:
            text = self.write(options, custom)
        except RecursionError as error:
            raise user_data_error("", custom, "is nested too deeply") from error
        refuse_too_long(text, custom)
        return text

    def refuse_wrong(self, custom: str) -> None:
        """Check the user's part of user data, on its own and with the smallest bootstrap options.

        Raises:
            InvalidManifestError: With line or part, and what to write instead.
        """
        refuse_too_long(custom, custom)
        if custom.strip():
            self.check(custom)
            self.user_data(_LEAST, custom)


def user_data_error(where: str, value: str, remedy: str) -> InvalidManifestError:
    """Return the error for a place in user data, its value shortened to one line."""
    place = f"userData, {where}" if where else "userData"
    line = value.strip().partition("\n")[0]
    return InvalidManifestError(field=place, value=line[:60], remedy=remedy)


def refuse_too_long(text: str, custom: str) -> None:
    """Raise InvalidManifestError if EC2 would not accept the text or it is too long for EC2.

    Args:
        custom: The user's part of it.
    """
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise user_data_error("", ascii(text[error.start]), SURROGATE_REMEDY) from error
    if size > USER_DATA_LIMIT_BYTES:
        both = "" if text == custom else " together with what makes an instance join"
        limit = f"EC2 takes {USER_DATA_LIMIT_BYTES}; fetch the rest at boot"
        raise user_data_error("", custom, f"is {size} bytes long{both}, {limit}")
