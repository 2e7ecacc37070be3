"""Images whose instances join by a script, `/etc/eks/bootstrap.sh`: Amazon Linux 2 and Ubuntu.

Source: https://github.com/awslabs/amazon-eks-ami (templates/al2/runtime/bootstrap.sh, 2025-11),
https://docs.aws.amazon.com/eks/latest/userguide/retrieve-ami-id.html and
https://documentation.ubuntu.com/aws/aws-how-to/instances/find-ubuntu-images/ (2026-08).
"""

import shlex
from typing import Final

from shared.instance_types.ami_families import mime
from shared.instance_types.ami_families.family import BootstrapOptions, Family, ImageRequest
from shared.instance_types.ami_families.kubelet_flags import (
    flag,
    kubelet_flags,
    labels_flag,
    taints_flag,
)
from shared.instance_types.ami_families.node_settings import NodeSettings, SettingsReader
from shared.instance_types.ami_families.scripts import BOOTSTRAP, add_unread_lines, read_script
from shared.model.provisioner import BlockDevice

_ACCELERATORS: Final = ("aws.amazon.com/neuron", "nvidia.com/gpu")
# First minor version of Kubernetes, Ubuntu release and volume type, the newest first.
_UBUNTU_RELEASES: Final = ((31, "24.04", "ebs-gp3"), (29, "22.04", "ebs-gp2"))
_FIRST_UBUNTU: Final = ("20.04", "ebs-gp2")


def _al2_parameter(request: ImageRequest) -> str:
    if any(request.capacity[value] for value in _ACCELERATORS):
        suffix = "-gpu"
    else:
        suffix = "-arm64" if request.architecture == "arm64" else ""
    named = f"amazon-eks{suffix}-node-{request.version}"
    release = f"{named}-{request.release}" if request.release else "recommended"
    published = f"/aws/service/eks/optimized-ami/{request.version}/amazon-linux-2{suffix}"
    return f"{published}/{release}/image_id"


def _ubuntu_parameter(request: ImageRequest) -> str:
    release, volume = next(
        ((name, kind) for since, name, kind in _UBUNTU_RELEASES if request.minor >= since),
        _FIRST_UBUNTU,
    )
    return (
        f"/aws/service/canonical/ubuntu/eks/{release}/{request.version}/stable/current/"
        f"{request.architecture}/hvm/{volume}/ami-id"
    )


def _check(custom: str) -> tuple[mime.MimePart, ...]:
    return mime.parts_of(custom, node_config=False)


def _settings(custom: str) -> NodeSettings:
    reader = SettingsReader()
    for where, part in mime.places(_check(custom)):
        read = read_script if part.content_type == mime.SCRIPT else add_unread_lines
        read(part.text, where, reader)
    return reader.found


def _write(options: BootstrapOptions, custom: str) -> str:
    kubelet, six = options.kubelet, options.is_ipv6
    # The script has its own arguments for these two.
    flags = [
        kubelet_flag
        for kubelet_flag in kubelet_flags(kubelet)
        if not kubelet_flag.startswith("--cluster-dns=")
    ]
    extra = " ".join((labels_flag(options.labels), taints_flag(options.taints), *flags))
    arguments = [
        options.cluster,
        "--apiserver-endpoint",
        options.endpoint,
        "--b64-cluster-ca",
        options.certificate_authority,
        *(
            word
            for dns_address in options.dns_addresses[:1]
            for word in _words("dns-cluster-ip", dns_address)
        ),
        *(("--ip-family", "ipv6", "--service-ipv6-cidr", options.service_cidr) if six else ()),
        *(("--use-max-pods", "false") if kubelet.max_pods is not None else ()),
        *(("--local-disks", "raid0") if options.instance_store else ()),
        "--kubelet-extra-args",
        extra,
    ]
    script = (
        "#!/bin/bash -xe",
        "exec > >(tee /var/log/user-data.log | logger -t user-data -s 2>/dev/console) 2>&1",
        f"{BOOTSTRAP} {shlex.join(arguments)}",
    )
    # The user's part comes first: once the script has run, pods may start.
    ours = mime.MimePart(content_type=f'{mime.SCRIPT}; charset="us-ascii"', text="\n".join(script))
    return mime.document((*_check(custom), ours))


def _words(name: str, value: str) -> list[str]:
    """Return an argument of the script, which writes it into the kubelet's configuration."""
    return flag(name, value).split("=", 1)


AL2: Final = Family(
    name="AL2",
    parameter=_al2_parameter,
    write=_write,
    check=_check,
    settings=_settings,
    uses_kubelet_flags=True,
    disks=(BlockDevice(device_name="/dev/xvda"),),
    # The image with drivers for GPUs is for amd64 only.
    # Source: https://docs.aws.amazon.com/eks/latest/userguide/retrieve-ami-id.html (2026-11).
    unsupported_families=frozenset({"g5g"}),
    # Source: https://docs.aws.amazon.com/eks/latest/userguide/eks-ami-deprecation-faqs.html (2026).
    last_kubernetes_minor=32,
)
UBUNTU: Final = Family(
    name="Ubuntu",
    parameter=_ubuntu_parameter,
    has_accelerator_images=False,
    write=_write,
    check=_check,
    settings=_settings,
    uses_kubelet_flags=True,
    disks=(BlockDevice(device_name="/dev/sda1"),),
)
