"""Amazon Linux 2023: nodeadm reads NodeConfig documents; a later one wins.

Source: https://docs.aws.amazon.com/eks/latest/userguide/retrieve-ami-id.html,
https://awslabs.github.io/amazon-eks-ami/nodeadm/doc/api/ and .../doc/examples/ (2026-08).
"""

import json
import shlex
from collections.abc import Mapping
from typing import Any, Final

import yaml

from shared.instance_types.ami_families import mime
from shared.instance_types.ami_families.family import BootstrapOptions, Family, ImageRequest
from shared.instance_types.ami_families.kubelet_flags import kubelet_config, labels_flag
from shared.instance_types.ami_families.node_settings import NodeSettings, SettingsReader
from shared.instance_types.ami_families.scripts import add_unread_lines
from shared.model.provisioner import BlockDevice

# A feature gate that lowers the pod limit, and with it what is reserved for the kubelet.
_LIMIT: Final = "MemoryLimitMaxPods"
_VARIANTS: Final = {"nvidia.com/gpu": "nvidia", "aws.amazon.com/neuron": "neuron"}


def _parameter(request: ImageRequest) -> str:
    variant = next(
        (v for name, v in sorted(_VARIANTS.items()) if request.capacity[name]), "standard"
    )
    named = f"amazon-eks-node-al2023-{request.kernel_architecture}-{variant}-{request.version}"
    release = f"{named}-{request.release}" if request.release else "recommended"
    return (
        f"/aws/service/eks/optimized-ami/{request.version}/amazon-linux-2023/"
        f"{request.kernel_architecture}/{variant}/{release}/image_id"
    )


def _check(custom: str) -> tuple[mime.MimePart, ...]:
    return mime.parts_of(custom, node_config=True)


def _settings(custom: str) -> NodeSettings:
    """Return the settings of NodeConfigs: `config` of a later one wins, flags are appended.

    Source: https://github.com/awslabs/amazon-eks-ami (nodeadm/internal/api/merge.go, 2026-11).
    """
    reader = SettingsReader()
    for where, part in mime.places(_check(custom)):
        if part.content_type == mime.NODE_CONFIG:
            _read(
                next(yaml.safe_load_all(part.text)), f"{where}, spec" if where else "spec", reader
            )
        else:
            add_unread_lines(part.text, where, reader)
    return reader.found


def _read(document: Mapping[str, Any], where: str, reader: SettingsReader) -> None:
    spec = document.get("spec") or {}
    kubelet, instance, gates = (
        found if isinstance(found := spec.get(name), Mapping) else {}
        for name in ("kubelet", "instance", "featureGates")
    )
    config, flags = kubelet.get("config"), kubelet.get("flags")
    reader.add_config(config if isinstance(config, Mapping) else {}, f"{where}.kubelet.config")
    written = (
        [entry for entry in flags if isinstance(entry, str)] if isinstance(flags, list) else []
    )
    # nodeadm hands them on in a variable, which systemd splits at spaces and unquotes. Source
    # (2026-12): https://www.freedesktop.org/software/systemd/man/latest/systemd.service.html
    try:
        reader.add_flags(shlex.split(" ".join(written)), f"{where}.kubelet.flags: ")
    except ValueError:
        reader.add_unread(f"{where}.kubelet.flags: a quotation mark that is not closed")
    disks = instance.get("localStorage")
    reader.instance_store |= isinstance(disks, Mapping) and disks.get("strategy") == "RAID0"
    if kubelet.get("maxPodsExpression"):
        reader.add_unread(f"{where}.kubelet.maxPodsExpression")
    if gates.get(_LIMIT):
        reader.add_unread(f"{where}.featureGates.{_LIMIT}")


def _write(options: BootstrapOptions, custom: str) -> str:
    taints = [
        {"key": taint.key, "value": taint.value, "effect": taint.effect.value}
        for taint in options.taints
    ]
    document: dict[str, Any] = {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "spec": {
            "cluster": {
                "name": options.cluster,
                "apiServerEndpoint": options.endpoint,
                "certificateAuthority": options.certificate_authority,
                "cidr": options.service_cidr,
            },
            "kubelet": {
                "config": {"registerWithTaints": taints, **kubelet_config(options.kubelet)},
                "flags": [labels_flag(options.labels)],
            },
        },
    }
    if options.instance_store:
        document["spec"]["instance"] = {"localStorage": {"strategy": "RAID0"}}
    # YAML is a superset of JSON. Dovetail's part comes last: it wins.
    ours = json.dumps(document, indent=2, sort_keys=True)
    return mime.document(
        (*_check(custom), mime.MimePart(content_type=mime.NODE_CONFIG, text=ours)),
    )


AL2023: Final = Family(
    name="AL2023",
    parameter=_parameter,
    write=_write,
    check=_check,
    settings=_settings,
    disks=(BlockDevice(device_name="/dev/xvda"),),
    # Built for ARMv8.2, which the first Graviton does not support.
    # Source: https://docs.aws.amazon.com/linux/al2023/ug/system-requirements.html (2026-11).
    unsupported_families=frozenset({"a1"}),
)
